"""Attention and encoder layers that torch has as one op each, which ``torch.nn`` takes without gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["transformer_decompositions"]


def transformer_decompositions() -> dict[object, Callable[..., object]]:
    """For a table of decompositions."""
    return {torch.ops.aten._native_multi_head_attention.default: _attention,
            torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}


def _attention(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor,
               out_weight: Tensor, out_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
               average: bool = True, mask_type: int | None = None) -> tuple[Tensor, Tensor]:
    """What attends, and the weights of it where they are wanted. A mask is true where nothing is to be seen."""
    if query is key and key is value:
        parts = F.linear(query, weight, bias).chunk(3, -1)
    else:
        each = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
        parts = tuple(F.linear(x, w, b) for x, w, b in each)
    q, k, v = (p.reshape(*p.shape[:2], heads, width // heads).transpose(1, 2) for p in parts)
    if mask is not None:
        mask = mask.to(torch.bool)
        mask = mask[:, None, None] if mask_type == 1 else mask      # 1: of keys [batch, key]
    if need_weights:
        scores = q @ k.transpose(-2, -1) / (width // heads) ** 0.5
        seen = scores.softmax(-1) if mask is None else scores.masked_fill(mask, float("-inf")).softmax(-1)
        out = seen @ v
        weights = seen.mean(1) if average else seen
    else:
        out = F.scaled_dot_product_attention(q, k, v, None if mask is None else ~mask)
        weights = query.new_empty(0)
    return F.linear(out.transpose(1, 2).flatten(-2), out_weight, out_bias), weights


def _encoder_layer(x: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor,
                   out_bias: Tensor, gelu: bool, norm_first: bool, eps: float, norm_weight: Tensor, norm_bias: Tensor,
                   last_norm_weight: Tensor, last_norm_bias: Tensor, up_weight: Tensor, up_bias: Tensor,
                   down_weight: Tensor, down_bias: Tensor, mask: Tensor | None = None,
                   mask_type: int | None = None) -> Tensor:
    first = (width,), norm_weight, norm_bias, eps
    last = (width,), last_norm_weight, last_norm_bias, eps
    y = F.layer_norm(x, *first) if norm_first else x
    x = x + _attention(y, y, y, width, heads, weight, bias, out_weight, out_bias, mask, False, True, mask_type)[0]
    x = x if norm_first else F.layer_norm(x, *first)
    y = F.linear(F.layer_norm(x, *last) if norm_first else x, up_weight, up_bias)
    x = x + F.linear(F.gelu(y) if gelu else F.relu(y), down_weight, down_bias)
    return x if norm_first else F.layer_norm(x, *last)
