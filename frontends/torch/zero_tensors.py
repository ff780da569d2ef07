"""Sums and products with tangents that are known to be zero, which forward derivatives of ``torch.func`` have.

torch's own rules, of C++ code, read their sizes as numbers: a model would be compiled again for each size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes, infer_size
from torch.utils import _pytree

__all__ = ["declare_zero_tensors"]

_FILLED = ("bmm.default", "cat.default", "clone.default", "convolution.default", "cumsum.default",
           "gather.default", "index.Tensor", "masked_fill.Scalar", "mean.dim", "mm.default", "mv.default",
           "prod.default", "prod.dim_int", "sum.default", "sum.dim_IntList", "where.self")
"""Ops of tangents that torch gives zeros in memory."""


@cache
def declare_zero_tensors() -> None:
    """From now on sums, products, quotients and views of such a tensor are traced at any size."""
    aten = torch.ops.aten
    rules = {aten.add.Tensor: _of_tensors(_add), aten.sub.Tensor: _of_tensors(_sub), aten.mul.Tensor: _of_tensors(_mul),
             aten.div.Tensor: _of_tensors(_div), aten.view.default: _view}
    for name in _FILLED:
        packet, overload = name.split(".")
        op = getattr(getattr(aten, packet), overload)
        rules[op] = _of_filled(op)
    for op, rule in rules.items():
        if DispatchKey.ZeroTensor not in op.py_kernels:
            op.py_impl(DispatchKey.ZeroTensor)(rule)


def _of_filled(op: Any) -> Callable[..., Any]:
    def rule(*args: Any, **kwargs: Any) -> Any:
        return op(*_pytree.tree_map(_filled, args), **_pytree.tree_map(_filled, kwargs))

    return rule


def _filled(x: Any) -> Any:
    zero = isinstance(x, torch.Tensor) and x._is_zerotensor()
    return torch.zeros(x.shape, dtype=x.dtype, device=x.device) if zero else x


def _of_tensors(rule: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`rule` of two tensors for a tensor and a number of Python's, too."""
    def tensor(x: torch.Tensor | float) -> torch.Tensor:
        return x if isinstance(x, torch.Tensor) else torch.full((), x)

    return lambda a, b, **named: rule(tensor(a), tensor(b), **named)


def _add(a: torch.Tensor, b: torch.Tensor, *, alpha: float = 1) -> torch.Tensor:
    if a._is_zerotensor() and b._is_zerotensor():
        return _zero(a, b)
    if b._is_zerotensor():
        return _like_result(a, a, b)
    out = _like_result(b, a, b)
    return out if alpha == 1 else out * alpha


def _sub(a: torch.Tensor, b: torch.Tensor, *, alpha: float = 1) -> torch.Tensor:
    return _add(a, b, alpha=-alpha)


def _mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _zero(a, b)


def _div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / _filled(b) if b._is_zerotensor() else _zero(a, b)


def _view(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return torch._efficientzerotensor(infer_size(tuple(shape), x.numel()), dtype=x.dtype, device=x.device)


def _shape(a: torch.Tensor, b: torch.Tensor) -> torch.Size:
    return torch.broadcast_shapes(a.shape, b.shape)     # type: ignore[no-untyped-call]


def _type(a: torch.Tensor, b: torch.Tensor) -> torch.dtype:
    kind: torch.dtype = elementwise_dtypes(a, b, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1]
    return kind


def _zero(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What stands for zeros of the shape and type that `a` and `b` give together."""
    device = b.device if not a.dim() and b.dim() else a.device
    return torch._efficientzerotensor(_shape(a, b), dtype=_type(a, b), device=device)


def _like_result(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A copy of `x` of the shape and type that `a` and `b` give together."""
    return x.expand(_shape(a, b)).to(_type(a, b), copy=True)
