"""``flex_attention`` as the ops that it stands for.

torch traces it as one op with graphs of scalars, for score and mask, which its own compilers make a kernel of. In
:func:`composed` traces the graphs are of whole tensors, between two products and a softmax: ordinary ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

import torch
from torch._C import DispatchKey

from xcc.frontends.torch.layers import Within

__all__ = ["composed"]

Tensors = tuple[torch.Tensor, ...]
_COMPOSED = Within()


def composed() -> Within:
    """In this context traces have no ``flex_attention``."""
    _install()
    return _COMPOSED


@cache
def _install() -> None:
    """Puts a rule in front of torch's own."""
    op = torch.ops.higher_order.flex_attention
    op.py_kernels[DispatchKey.Autograd] = _ruled(op.py_kernels[DispatchKey.Autograd])
    op._dispatch_cache.clear()


def _ruled(own: Callable[..., Tensors]) -> Callable[..., Tensors]:
    return lambda *args: _attention(*args) if _COMPOSED.depth else own(*args)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, score_mod: Callable[..., torch.Tensor],
               block_mask: Sequence[Callable[..., torch.Tensor]], scale: float, _options: object,
               of_score: Tensors = (), of_mask: Tensors = ()) -> Tensors:
    """The result [batch, heads, queries, features] and for each query the log2 of the sum of its scores' exponentials
    and its largest score, in f32 at least. Of the block mask the function counts, as in eager."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    wide = torch.promote_types(q.dtype, torch.float32)
    group = q.shape[1] // k.shape[1]
    if group != 1:
        k, v = (t.unsqueeze(2).expand(-1, -1, group, -1, -1).flatten(1, 2) for t in (k, v))
    scores = q.to(wide) @ k.to(wide).transpose(2, 3) * scale
    places = [torch.arange(n, device=q.device) for n in scores.shape]
    with TransformGetItemToIndex():
        scores = _everywhere(score_mod, (0,), of_score)(scores, *places, *of_score)
        seen = _everywhere(block_mask[-1], (), of_mask)(*places, *of_mask)
    scores = torch.where(seen, scores, -math.inf)
    out = torch._safe_softmax(scores, -1).to(q.dtype) @ v
    laid = import_module("torch._higher_order_ops.flex_attention")     # of that name the package has the function
    return (laid._permute_strides(out, q.stride()), scores.logsumexp(-1) / math.log(2), scores.amax(-1) / math.log(2))


def _everywhere(function: Callable[..., torch.Tensor], first: tuple[int, ...], rest: Tensors
                ) -> Callable[..., torch.Tensor]:
    """A function of single scores and places for all of them."""
    from torch.nn.attention.flex_attention import _vmap_for_bhqkv

    made: Callable[..., torch.Tensor] = _vmap_for_bhqkv(function, first, (None,) * len(rest))
    return made
