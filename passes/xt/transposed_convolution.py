"""Transposed convolutions whose windows do not overlap become matrix products."""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import product

__all__ = ["TransposedConvolution"]


@register_pass
class TransposedConvolution(Pass):
    """A transposed convolution with stride s and a window of s elements puts s x s results in the place of each input.

    Before: ``xt.convolution(x, w) {lhs_dilation = [s, s], low = [s-1, s-1], high = [s-1, s-1]}``, NHWC, w: [s, s, I, O]
    After:  ``y = xt.dot_general(x, w')`` with w': [I, s*s*O] of the mirrored window, y's s x s parts moved between
            the spatial dims by a transpose
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convolution": lambda op: _product(op) if _disjoint(op) else None})


def _disjoint(op: Operation) -> bool:
    a = xt.attrs_of(op)
    if a.layout != "NHWC" or a.filter != "HWIO" or a.groups != 1:
        return False
    kernel = xt.shape_of(op.operands[1])[:-2]
    steps = tuple(a.lhs_dilation)
    return max(steps) > 1 and tuple(kernel) == steps and all(v == 1 for v in (*a.strides, *a.rhs_dilation)) \
        and all(tuple(p) == tuple(s - 1 for s in steps) for p in (a.low, a.high))


def _product(op: Operation) -> Value:
    a = xt.attrs_of(op)
    x, w = op.operands
    batch, *space, inputs = xt.shape_of(x)
    *kernel, _, outputs = xt.shape_of(w)
    n = len(space)
    mirrored = xt.reverse(w, axes=tuple(range(n)))
    flat = xt.reshape(xt.transpose(mirrored, perm=(n, *range(n), n + 1)), shape=(inputs, product(kernel) * outputs))
    y = xt.dot_general(x, flat, lhs_contract=(n + 1,), rhs_contract=(0,), dtype=a.dtype)
    y = xt.reshape(y, shape=(batch, *space, *kernel, outputs))
    order = [d for i in range(n) for d in (1 + i, 1 + n + i)]
    y = xt.transpose(y, perm=(0, *order, 2 * n + 1))
    return xt.reshape(y, shape=xt.shape_of(op.results[0]))
