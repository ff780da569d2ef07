"""Fake quantization, which training for narrow weights rounds by: ATen's ops of it in terms of others.

    fake_quantize(x)    ->    (clamp(round(x / scale) + zero, low, high) - zero) * scale

Each is one in f32, as torch has it, of f64 too: the reciprocal of a scale is rounded to f32.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import DynamicOutputShapeException

__all__ = ["FAKE_QUANTIZATION", "declare_fake_quantization"]

aten = torch.ops.aten


def _traced(function: Callable[..., object], mode: AbstractContextManager[object], op: object, *args: object,
            **named: object) -> object:
    with mode:
        return function(*args, **named)


def _where_inside(grad: Tensor, mask: Tensor) -> Tensor:
    return grad * mask


def _quantized(x: Tensor, scale: Tensor, zero: Tensor | int) -> Tensor:
    """The number that stands for x, whole and not yet clamped."""
    return torch.round(x * scale.to(torch.float32).reciprocal()) + zero


def _rounded(x: Tensor, scale: Tensor, zero: Tensor | int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """x as its numbers have it, and where these were not clamped, where the gradient passes."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = scale.to(torch.float32)
    whole = _quantized(wide, scale, zero)
    return ((whole.clamp(low, high) - zero) * scale).to(x.dtype), (whole >= low) & (whole <= high)


def _by_numbers(x: Tensor, scale: float, zero: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    return _rounded(x, x.new_full((), scale, dtype=torch.float32), zero, low, high)


def _by_tensors(x: Tensor, scale: Tensor, zero: Tensor, enabled: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    out, mask = _rounded(x, scale.reshape(()), zero.reshape(()), low, high)
    on = enabled.reshape(()) != 0
    return torch.where(on, out, x), mask | ~on


def _along(x: Tensor, parameter: Tensor, axis: int) -> Tensor:
    """A number for each place along `axis` of x, to broadcast."""
    return parameter.reshape([-1 if d == axis % x.dim() else 1 for d in range(x.dim())])


def _by_channel(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    return _rounded(x, _along(x, scale, axis), _along(x, zero, axis), low, high)


def _learnable(x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int, factor: float = 1.0) -> Tensor:
    return _rounded(x, scale.reshape(()), _whole_zero(zero, low, high).reshape(()), low, high)[0]


def _learnable_by_channel(x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int, factor: float = 1.0
                          ) -> Tensor:
    return _rounded(x, _along(x, scale, axis), _along(x, _whole_zero(zero, low, high), axis), low, high)[0]


def _whole_zero(zero: Tensor, low: int, high: int) -> Tensor:
    return torch.round(zero).clamp(low, high)


def _slopes(grad: Tensor, x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int, factor: float
            ) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, and each element's part of those of its scale and its zero (Learned Step Size Quantization,
    Esser et al. 2020)."""
    whole = _quantized(x, scale, zero)
    inside = (whole >= low) & (whole <= high)
    end = torch.where(whole < low, low - zero, high - zero)
    by_scale = torch.where(inside, ((whole - zero) * scale - x) / scale, end)
    return grad * inside, grad * by_scale * factor, torch.where(inside, 0, -grad * scale) * factor


def _learnable_backward(grad: Tensor, x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int, factor: float = 1.0
                        ) -> tuple[Tensor, Tensor, Tensor]:
    own, by_scale, by_zero = _slopes(grad, x, scale.reshape(()), _whole_zero(zero, low, high).reshape(()), low, high,
                                     factor)
    return own, by_scale.sum().reshape(1), by_zero.sum().reshape(1)


def _learnable_by_channel_backward(grad: Tensor, x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int,
                                   factor: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    own, *parts = _slopes(grad, x, _along(x, scale, axis), _along(x, _whole_zero(zero, low, high), axis), low, high,
                          factor)
    rest = [d for d in range(x.dim()) if d != axis % x.dim()]
    by_scale, by_zero = (p.sum(rest) if rest else p for p in parts)
    return own, by_scale, by_zero



def _qparams(least: Tensor, most: Tensor, low: int, high: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """The scale (f32) and the zero (i32) whose numbers from low to high reach from `least` to `most` (f32), zero
    among them (FBGEMM's ChooseQuantizationParams, to the bit)."""
    if symmetric:
        below, above = -((high - low) // 2 + 1), (high - low) // 2
        step, both = torch.maximum((least / below).abs(), (most / above).abs()), (least < 0) & (most > 0)
        least, most = torch.where(both, step * below, least), torch.where(both, step * above, most)
    least, most = least.clamp(max=0).double(), most.clamp(min=0).double()
    scale = ((most - least) / (high - low)).to(torch.float32)
    scale = torch.where((scale == 0) | scale.reciprocal().isinf(), 0.1, scale)
    grown = (_SMALLEST_SCALE / scale).clamp(min=1).double()         # the range grows where its scale is too small
    scale = scale.clamp(min=_SMALLEST_SCALE)
    first, last = least * grown / scale.double(), most * grown / scale.double()
    zero = torch.where(abs(low) + first.abs() < abs(high) + last.abs(), low - first, high - last)
    if symmetric:
        zero = torch.where(both, (low + high) / 2, zero)
    return scale, torch.round(zero.clamp(low, high)).to(torch.int32)


def _extremes(x: Tensor, axis: int | None) -> tuple[Tensor, Tensor]:
    """The least and the greatest element of x, or those at each place along `axis`."""
    over = [d for d in range(x.dim()) if axis is None or d != axis % x.dim()]
    return (x.amin(over), x.amax(over)) if over else (x, x)


def _moved(running: Tensor, now: Tensor, share: float) -> Tensor:
    return torch.where(running.isinf(), now, running + share * (now - running))


def _observed(x: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor,
              scale: Tensor, zero: Tensor, share: float, low: int, high: int, axis: int, by_channel: bool = False,
              symmetric: bool = False) -> tuple[Tensor, ...]:
    """What `_rounded` gives, by the moving averages of x's extremes, and these, the scale and the zero as they are
    after it."""
    observes, rounds = observer_on.reshape(()) != 0, fake_quant_on.reshape(()) != 0
    least, most = (torch.where(observes, _moved(running, now.to(running.dtype), share), running) for running, now in
                   zip((running_min, running_max), _extremes(x, axis if by_channel else None), strict=True))
    found = _qparams(least, most, low, high, symmetric)
    new_scale, new_zero = (torch.where(rounds, new.reshape(old.shape).to(old.dtype), old)
                           for new, old in zip(found, (scale, zero), strict=True))
    places = (lambda t: _along(x, t, axis)) if by_channel else (lambda t: t.reshape(()))
    out, mask = _rounded(x, places(new_scale), places(new_zero), low, high)
    return torch.where(rounds, out, x), mask | ~rounds, least, most, new_scale, new_zero


def _refuse_unsized(mode: object, op: torch._ops.OpOverload, x: Tensor, observer_on: Tensor, fake_quant_on: Tensor,
                    running_min: Tensor, *rest: object, **named: object) -> object:
    """An observer of channels that saw nothing yet has no sizes: the op gives it some, in torch, and later ones are
    traced. (torch's own rule leaves it as it is.)"""
    if running_min.dim() == 1 and running_min.shape[0] == 0:
        raise DynamicOutputShapeException(op)
    return NotImplemented


_SMALLEST_SCALE = 6.1e-5
_BACKWARD = aten.fake_quantize_per_channel_affine_cachemask_backward.default
FAKE_QUANTIZATION: dict[object, Callable[..., object]] = {
    aten.fake_quantize_per_tensor_affine_cachemask.default: _by_numbers,
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _by_tensors,
    aten.fake_quantize_per_channel_affine_cachemask.default: _by_channel,
    aten._fused_moving_avg_obs_fq_helper_functional.default: _observed,
    aten._fake_quantize_learnable_per_tensor_affine.default: _learnable,
    aten._fake_quantize_learnable_per_channel_affine.default: _learnable_by_channel,
    aten._fake_quantize_learnable_per_tensor_affine_backward.default: _learnable_backward,
    aten._fake_quantize_learnable_per_channel_affine_backward.default: _learnable_by_channel_backward}
"""By the op: a function of its arguments."""


@cache
def declare_fake_quantization(register: Callable[[object], Callable[[object], object]]) -> None:
    """From now on the ops are traced: torch has no rule for what they give for tensors without data. `register` takes
    an op, then the rule."""
    for op, function in FAKE_QUANTIZATION.items():
        if op not in fake_impls.op_implementations_dict:
            register(op)(partial(_traced, function))
    if (observer := aten._fused_moving_avg_obs_fq_helper.default) not in fake_impls.op_implementations_dict:
        register(observer)(_refuse_unsized)
    own_kernel, backward = DispatchKey.CompositeImplicitAutograd, _BACKWARD
    if own_kernel not in backward.py_kernels:       # torch's own reads the sizes as numbers
        backward.py_impl(own_kernel)(_where_inside)
