"""The gradient of ``cumprod``: torch traces a loop over its elements, which is compiled once for each size.

Without a zero that is a sum from the end, divided by the elements. Ahead of the first zero of a row it is the same, as
products from there on are 0; of the zero itself the sum of the products without it; behind it 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

from xcc.frontends.torch.layers import traced_whole

__all__ = ["declare_cumprod"]

_OP = torch.ops.aten.cumprod.default


@cache
def declare_cumprod() -> None:
    """From now on traces of :func:`layers.whole_layers` have the gradient as ops of whole tensors."""
    for key in (DispatchKey.AutogradCPU, DispatchKey.AutogradCUDA):
        if key not in _OP.py_kernels:
            _OP.py_impl(key)(partial(_cumprod, key))


def _cumprod(key: DispatchKey, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    if not traced_whole() or torch._C._are_functorch_transforms_active() or not x.dim():
        return _OP._op_dk(key, x, dim, dtype=dtype)         # torch's own
    if dtype is None and not (x.is_floating_point() or x.is_complex()):
        dtype = torch.int64
    return _applied(x if dtype is None else x.to(dtype), dim)


class _Cumprod(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            out = _OP(x, dim)
        ctx.save_for_backward(x, out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, out = ctx.saved_tensors
        dim, zero = ctx.dim, x == 0
        zeros = zero.cumsum(dim)
        first = zero & (zeros == 1)
        ahead = _from_the_end(grad * out.conj(), dim) / x.masked_fill(zero, 1).conj()
        without = _from_the_end(grad * x.masked_fill(first, 1).cumprod(dim).conj(), dim)
        return torch.where(zeros == 0, ahead, torch.where(first, without, 0)), None


_applied: Callable[[Tensor, int], Tensor] = _Cumprod.apply


def _from_the_end(x: Tensor, dim: int) -> Tensor:
    return x.flip(dim).cumsum(dim).flip(dim)
