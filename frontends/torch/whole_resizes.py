"""Resizes as one op each in traces: torch takes them apart into gathers of computed places, and their gradients into
scatters, whose numbers differ from those of its kernels where a size stays or doubles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch._C import DispatchKey

from xcc.frontends.torch.layers import traced_whole

__all__ = ["RESIZES", "declare_whole_resizes"]

RESIZES = (*(f"{kind}{n}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
           "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
"""Resizes of namespace aten that torch takes apart."""


@cache
def declare_whole_resizes() -> None:
    """Puts rules in front of torch's own, which serve traces that are not :func:`layers.whole_layers`."""
    for name in RESIZES:
        op = getattr(torch.ops.aten, name)
        gradient = getattr(torch.ops.aten, f"{name}_backward").default
        of_sizes, whole = _of_sizes(op.default), partial(_applied, op.default, gradient)
        for key, rule in ((DispatchKey.Autograd, whole), (DispatchKey.CompositeImplicitAutograd, _in_parts)):
            _put(op.vec, key, of_sizes)
            _put(op.default, key, rule)


def _put(op: torch._ops.OpOverload, key: DispatchKey, rule: Callable[..., object]) -> None:
    own = op.py_kernels.get(key)
    if own is None:
        return

    def chosen(*args: object, **kwargs: object) -> object:
        apart = not traced_whole() or torch._C._are_functorch_transforms_active() or kwargs
        return own(*args, **kwargs) if apart else rule(*args)

    op.py_kernels[key] = chosen
    op._dispatch_cache.clear()


def _of_sizes(op: torch._ops.OpOverload) -> Callable[..., object]:
    """`op` of the sizes that factors give, where these are given."""
    from torch._decomp.decompositions import upsample_compute_output_size

    def rule(x: torch.Tensor, sizes: object, *rest: Any) -> object:
        *corners, factors = rest
        wanted = upsample_compute_output_size(x.size(), sizes, factors)     # type: ignore[no-untyped-call]
        return op(x, wanted, *corners, *(factors or [None] * len(wanted)))

    return rule


class _Resize(torch.autograd.Function):
    """A resize with its gradient, an op each."""

    @staticmethod
    def forward(ctx: Any, op: Any, gradient: Any, x: torch.Tensor, sizes: Any, *rest: object) -> Any:
        ctx.form = gradient, sizes, x.shape, rest
        with torch._C._AutoDispatchBelowAutograd():
            return op(x, sizes, *rest)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[object, ...]:
        gradient, sizes, shape, rest = ctx.form
        return None, None, gradient(grad, sizes, shape, *rest), None, *(None for _ in rest)


_applied: Callable[..., object] = _Resize.apply


def _in_parts(*args: object) -> object:
    """What ``decompose`` of an op gives that has no parts."""
    return NotImplemented
