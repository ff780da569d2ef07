"""Functions whose numbers torch takes as constants (``int``, not ``SymInt``), or that Dynamo does not trace, in terms
of those that take sizes.

torch reads a size or an argument there as a number, which would compile a model anew for each:

    torch.linspace(-1, 1, x.shape[1])    F.avg_pool2d(x, x.shape[2:])    F.one_hot(x, i)

Dynamo traces these where a number is one that a run tells, and torch's own elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Frame
from torch._dynamo.variables import TensorVariable, UserFunctionVariable
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.lists import BaseListVariable
from torch._dynamo.variables.tensor import SymNodeVariable
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable as Builtin
from torch.fx.experimental import _config as sizes
from torch.fx.experimental.symbolic_shapes import statically_known_true

Numbers = int | Sequence[int]
Function = Callable[..., object]
Called = Callable[[Builtin, Frame, Sequence[VariableTracker], dict[str, VariableTracker]], VariableTracker]
Method = Callable[[TensorVariable, Frame, str, list[VariableTracker], dict[str, VariableTracker]], VariableTracker]

__all__ = ["by_sizes", "method_by_sizes"]


def by_sizes(function: Called) -> Called:
    """``TorchInGraphFunctionVariable.call_function``."""

    def call_function(own: Builtin, tx: Frame, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
                      ) -> VariableTracker:
        traced = SIZED.get(own.value) if sizes.backed_size_oblivious else None
        if traced is None or not _has_numbers((*args, *kwargs.values())):
            return function(own, tx, args, kwargs)
        return UserFunctionVariable(cast(FunctionType, traced)).call_function(tx, list(args), kwargs)

    return call_function


def method_by_sizes(function: Method) -> Method:
    """``TensorVariable.call_method``."""

    def call_method(own: TensorVariable, tx: Frame, name: str, args: list[VariableTracker],
                    kwargs: dict[str, VariableTracker]) -> VariableTracker:
        traced = METHODS.get(name) if sizes.backed_size_oblivious else None
        if traced is None or not _has_numbers((*args, *kwargs.values())):
            return function(own, tx, name, args, kwargs)
        return UserFunctionVariable(cast(FunctionType, traced)).call_function(tx, [own, *args], kwargs)

    return call_method


def _has_numbers(args: Iterable[VariableTracker]) -> bool:
    """Whether there is a number among them, or in lists of them, that a run tells."""
    given = [a.realize() for a in args]
    lists = [a for a in given if isinstance(a, BaseListVariable)]
    return any(isinstance(a, SymNodeVariable) for a in given) or any(_has_numbers(a.items) for a in lists)


def _linspace(start: float | Tensor, end: float | Tensor, steps: int, *, dtype: torch.dtype | None = None,
              device: torch.device | str | None = None) -> Tensor:
    """As torch's kernels have it: from the start and from the end, to the middle."""
    kind = dtype or torch.get_default_dtype()
    inner = kind if kind.is_floating_point else torch.float64
    at = torch.arange(steps, dtype=inner, device=device)
    step = (end - start) / max(steps - 1, 1)
    return torch.where(at < max(steps // 2, 1), start + step * at, end - step * (steps - 1 - at)).to(kind)


def _logspace(start: float | Tensor, end: float | Tensor, steps: int, base: float = 10.0, *,
              dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Tensor:
    return torch.pow(base, _linspace(start, end, steps, dtype=dtype, device=device))


def _one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    return (x.unsqueeze(-1) == torch.arange(num_classes, device=x.device)).to(torch.int64)


def _adaptive_avg_pool1d(x: Tensor, output_size: Numbers) -> Tensor:
    return F.adaptive_avg_pool2d(x.unsqueeze(-2), (1, _each(output_size, 1)[0])).squeeze(-2)


def _group_norm(x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
                ) -> Tensor:
    groups = x.reshape(x.shape[0], num_groups, -1)
    y = F.layer_norm(groups, groups.shape[2:], eps=eps).reshape(x.shape)
    each = (-1, *[1] * (x.dim() - 2))
    y = y if weight is None else y * weight.reshape(each)
    return y if bias is None else y + bias.reshape(each)


def _pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    r = upscale_factor
    h, w = x.shape[-2:]
    before = (*x.shape[:-3], x.shape[-3] // (r * r))
    return x.reshape(*before, r, r, h, w).movedim((-4, -3), (-3, -1)).reshape(*before, h * r, w * r)


def _pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    r = downscale_factor
    h, w = x.shape[-2] // r, x.shape[-1] // r
    apart = x.reshape(*x.shape[:-2], h, r, w, r).movedim((-3, -1), (-4, -3))
    return apart.reshape(*x.shape[:-3], x.shape[-3] * r * r, h, w)


def _quantile(function: Callable[..., Tensor]) -> Function:
    def quantile(x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *,
                 interpolation: str = "linear") -> Tensor:
        q = q if isinstance(q, Tensor) else torch.full((), q, dtype=x.dtype, device=x.device)
        return function(x, q, dim, keepdim, interpolation=interpolation)

    return quantile


def _diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view still: that of offset 0 of what is left of the columns, or of the rows."""
    rest = torch.ops.aten.slice(x, dim2, offset) if offset >= 0 else torch.ops.aten.slice(x, dim1, -offset)
    return torch.diagonal(rest, 0, dim1, dim2)


def _affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    counts = [torch.arange(n, dtype=theta.dtype, device=theta.device) for n in size[2:]]
    lines = [(2 * at - (n - 1)) / max(n - 1 if align_corners else n, 1) for at, n in zip(counts, size[2:], strict=True)]
    places = torch.meshgrid(*lines, indexing="ij")
    base = torch.stack((*reversed(places), torch.ones_like(places[0])), -1)
    return (base.reshape(1, -1, len(lines) + 1) @ theta.transpose(1, 2)).reshape(size[0], *size[2:], len(lines))


def _avg_pool(pool: Callable[..., Tensor], dims: int) -> Function:
    def avg_pool(x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None
                 ) -> Tensor:
        k, p = _each(kernel_size, dims), _each(padding, dims)
        s = _each(stride or kernel_size, dims)
        whole = _whole(x, k, p) if divisor_override is None else []
        x = x.mean(whole, keepdim=True) if whole else x
        rest = () if divisor_override is None else (divisor_override,)
        k, s = _of_others(k, whole), _of_others(s, whole)
        return x if whole and k == s == [1] * dims else pool(x, k, s, p, ceil_mode, count_include_pad, *rest)

    return avg_pool


def _max_pool(pool: Callable[..., Tensor], dims: int) -> Function:
    both = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices")

    def max_pool(x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0,
                 dilation: Numbers = 1, ceil_mode: bool = False, return_indices: bool = False) -> object:
        k, p = _each(kernel_size, dims), _each(padding, dims)
        s, apart = _each(stride or kernel_size, dims), _each(dilation, dims)
        if return_indices:
            return both(x, k, s, p, apart, ceil_mode)
        whole = _whole(x, k, p) if apart == [1] * dims else []
        for d in reversed(whole):       # the last one first: of equal elements the first one has the gradient
            x = x.max(d, keepdim=True).values
        k, s = _of_others(k, whole), _of_others(s, whole)
        return x if whole and k == s == [1] * dims else pool(x, k, s, p, apart, ceil_mode)

    return max_pool


def _conv(op: Callable[..., Tensor], dims: int) -> Function:
    """With the padding apart; strides and the like are constants."""

    def conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = 1, padding: Numbers | str = 0,
             dilation: Numbers = 1, groups: int = 1) -> Tensor:
        s, apart = _each(stride, dims), _each(dilation, dims)
        if isinstance(padding, str):
            return op(x, weight, bias, s, padding, apart, groups)
        around = [p for p in reversed(_each(padding, dims)) for _ in range(2)]
        return op(F.pad(x, around), weight, bias, s, [0] * dims, apart, groups)

    return conv


def _each(numbers: Numbers, dims: int) -> list[int]:
    given = [numbers] if isinstance(numbers, int) else list(numbers)
    return given * dims if len(given) == 1 else given


def _whole(x: Tensor, window: list[int], padding: list[int]) -> list[int]:
    """The dims, from the end, all of which is in one window, whatever their size."""
    dims = len(window)
    return [d for d in range(-dims, 0) if padding[d] == 0 and statically_known_true(window[d] == x.shape[d])]


def _of_others(numbers: list[int], whole: list[int]) -> list[int]:
    return [1 if n - len(numbers) in whole else number for n, number in enumerate(numbers)]


def _root_of_size(n: int) -> int:
    """The same as ``math.isqrt`` for numbers below 2^52."""
    return int(n ** 0.5)


def _power_of_e(x: float) -> float:
    return math.e ** x


def _logarithm(x: float, base: float = math.e) -> float:
    return math.log2(x) / math.log2(base)


SIZED: dict[Function, Function] = {
    math.isqrt: _root_of_size, math.exp: _power_of_e, math.log: _logarithm,
    torch.linspace: _linspace, torch.logspace: _logspace, torch.diagonal: _diagonal,
    torch.quantile: _quantile(torch.quantile), torch.nanquantile: _quantile(torch.nanquantile),
    F.adaptive_avg_pool1d: _adaptive_avg_pool1d, F.affine_grid: _affine_grid,
    F.group_norm: _group_norm, F.one_hot: _one_hot,
    F.pixel_shuffle: _pixel_shuffle, F.pixel_unshuffle: _pixel_unshuffle,
    **{getattr(F, name): of(getattr(torch.ops.aten, name), n)
       for kind, of in (("conv", _conv), ("avg_pool", _avg_pool), ("max_pool", _max_pool))
       for n in (1, 2, 3) for name in (f"{kind}{n}d",)}}
"""By a function of torch's or of Python's: what is traced where one of its numbers is not a constant."""

METHODS: dict[str, Function] = {
    "diagonal": _diagonal, "quantile": SIZED[torch.quantile],
    "nanquantile": SIZED[torch.nanquantile]}
"""The same of methods of tensors."""
