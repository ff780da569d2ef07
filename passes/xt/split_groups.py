"""Convolutions of groups whose numbers of channels are symbols become one convolution a group."""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim, floordiv


@register_pass
class SplitGroups(Pass):
    """Which group a channel is in is an index of a loop over as many as a group has, which must be a number for that.

    Before: ``xt.convolution(x, w) {groups = 2}``, x: [N, 2*c, H, W], w: ["o", "c", 3, 3]
    After:  ``xt.concatenate(xt.convolution(x[:, :c], w[:o/2]), xt.convolution(x[:, c:], w[o/2:])) {axis = 1}``
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convolution": lambda op: _split(op) if _has_symbols(op) else None})


def _has_symbols(op: Operation) -> bool:
    a = xt.attrs_of(op)
    channels = xt.shape_of(op.operands[1])[:2]
    return a.groups > 1 and a.filter == "OIHW" and not all(isinstance(d, int) for d in channels)


def _split(op: Operation) -> Value:
    a = xt.attrs_of(op)
    x, w = op.operands
    axis = 1 if a.layout == "NCHW" else len(xt.shape_of(x)) - 1
    outputs, inputs = xt.shape_of(w)[:2]
    rest = vars(a) | {"groups": 1}
    parts = [xt.convolution(_part(x, axis, inputs, n), _part(w, 0, floordiv(outputs, a.groups), n), **rest)
             for n in range(a.groups)]
    return xt.reshape(xt.concatenate(*parts, axis=axis), shape=xt.shape_of(op.results[0]))


def _part(x: Value, axis: int, size: Dim, n: int) -> Value:
    """Part `n` of `x`, `size` long along `axis`."""
    shape = xt.shape_of(x)
    starts: list[Dim] = [0] * len(shape)
    limits = list(shape)
    starts[axis], limits[axis] = n * size, (n + 1) * size
    return xt.slice(x, starts=tuple(starts), limits=tuple(limits))
