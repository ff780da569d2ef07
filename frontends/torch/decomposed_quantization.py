"""Ops of namespace ``quantized_decomposed``, which quantization of exported programs (PT2E) writes, in terms of ATen's,
but for those that are converted (:mod:`quantized`).

    quantize_per_token(x)      ->    clamp(round(x / scale) + zero, low, high), as bytes
    dequantize_per_token(q)    ->    (q - zero) * scale

The namespace is there once :func:`declare_quantized_ops`, the program or torchao imported torch's module of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

import torch
from torch import Tensor
from torch._C import DispatchKey

__all__ = ["NAMESPACE", "declare_quantized_ops", "quantized_decompositions"]

NAMESPACE = "quantized_decomposed"


def _whole(x: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """The number that stands for x, not yet clamped."""
    inverse = scale.reshape(()).double().reciprocal().to(torch.float32)
    return torch.round(x.to(torch.float32) * inverse) + zero.reshape(())


def _quantize_between(x: Tensor, scale: Tensor, zero: Tensor, low: Tensor, high: Tensor, dtype: torch.dtype) -> Tensor:
    return _whole(x, scale, zero).clamp(low.reshape(()), high.reshape(())).to(dtype)


def _dequantize(x: Tensor, scale: Tensor, zero: Tensor, low: int | Tensor, high: int | Tensor, dtype: torch.dtype, *,
                out_dtype: torch.dtype | None = None) -> Tensor:
    out = out_dtype or torch.float32
    return ((x.to(out) - zero.reshape(()).to(out)).to(torch.float32) * scale.reshape(()).to(torch.float32)).to(out)


def _reach(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.amin().clamp(max=0).reshape(1), x.amax().clamp(min=0).reshape(1)


def _choose(x: Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    least, most = _reach(x)
    scale = ((most - least) / float(high - low)).to(torch.float32).clamp(min=eps)
    zero = low - torch.round(least / scale).to(torch.int32)
    return scale.double(), zero.clamp(low, high).to(torch.int64)


def _choose_symmetric(x: Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    least, most = _reach(x)
    scale = (torch.maximum(-least, most) / (float(high - low) / 2)).to(torch.float32).clamp(min=eps)
    return scale.double(), torch.full_like(scale, 128 if dtype == torch.uint8 else 0, dtype=torch.int64)


def _quantize_groups(x: Tensor, scales: Tensor, zeros: Tensor, low: int, high: int, dtype: torch.dtype, size: int
                     ) -> Tensor:
    """Each `size` elements of a row by a scale of their own, or a whole row of fewer."""
    groups = x.reshape(-1, min(size, x.shape[-1]) if scales.shape[-1] == 1 else size)
    whole = torch.round(groups * (1.0 / scales.reshape(-1, 1)) + zeros.reshape(-1, 1))
    return whole.clamp(low, high).to(dtype).reshape(x.shape)


_OWN: dict[str, Callable[..., object]] = {
    "quantize_per_tensor.tensor2": _quantize_between, "dequantize_per_tensor.tensor2": _dequantize,
    "choose_qparams.tensor": _choose, "choose_qparams_symmetric.tensor": _choose_symmetric,
    "quantize_per_channel_group.default": _quantize_groups}
"""torch's own kernels read values of tensors (scales as numbers, whether there are NaNs), which a trace has not."""

_AS_TORCH = ("quantize_per_channel.default", "dequantize_per_channel.default", "choose_qparams_per_token.default",
             "choose_qparams_per_token_asymmetric.default", "quantize_per_token.default",
             "dequantize_per_token.default", "dequantize_per_channel_group.default",
             "convert_element_type.no_fuse")
"""torch's own kernels are of ATen's ops."""

_BY_CHANNEL = ("quantize_per_channel.default", "dequantize_per_channel.default")


def declare_quantized_ops() -> None:
    """From now on the namespace is there, for a file that has its ops."""
    import_module("torch.ao.quantization.fx._decomposed")


def quantized_decompositions() -> dict[object, Callable[..., object]]:
    """By the op: a function of its arguments. None where the namespace is not there."""
    table: dict[object, Callable[..., object]] = {}
    for name in (*_OWN, *_AS_TORCH):
        packet, overload = name.split(".")
        op = getattr(getattr(torch.ops.quantized_decomposed, packet, None), overload, None)
        if op is not None:
            rule = _OWN.get(name) or partial(op._op_dk, DispatchKey.CompositeExplicitAutograd)
            table[op] = partial(_of_float_zeros, rule) if name in _BY_CHANNEL else rule
    return table


def _of_float_zeros(rule: Callable[..., object], x: Tensor, scales: Tensor, zeros: Tensor | None, *rest: object,
                    **named: object) -> object:
    """Zero points that are no integers: the converters take those that are."""
    floats = zeros is not None and zeros.is_floating_point()
    return rule(x, scales, zeros, *rest, **named) if floats else NotImplemented
