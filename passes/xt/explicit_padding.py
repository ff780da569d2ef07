"""Convolutions lose their padding: an xt.pad before them makes it.

A CPU kernel reads each input element many times, so testing the border inside its innermost loop costs more than
writing the padded input once. A pad that only adds zeros around its input, or another constant (a zero point, in an
operator of its own), is marked ``xcc.stored``: the kernel that makes the input writes it to its place in the padded
buffer, and the constant around it (stage linalg: ``tensor.pad``).
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, ir, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.walk import ops_where
from xcc.passes.xt.graph.match import only_user
from xcc.passes.xt.graph.rewrite import producer


@register_pass
class ExplicitPadding(Pass):
    """Turns the padding of convolutions into xt.pad.

    Before: ``xt.convolution(x, w) {low = [1, 1], high = [1, 1]}``
    After:  ``xt.convolution(xt.pad(x) {xcc.stored, low = ..., high = ...}, w)``
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in ops_where(module, lambda o: o.name == "xt.convolution"):
            _rewrite(op)


def _rewrite(op: Operation) -> None:
    a = xt.attrs_of(op)
    spread = any(d != 1 for d in a.lhs_dilation)
    x, w = op.operands
    if not spread and all(d == 0 for d in (*a.low, *a.high)):
        _store(x)
        return
    with ir.InsertionPoint(op), op.location:
        padded = xt.pad(x, low=_all_dims(a, a.low), high=_all_dims(a, a.high),
                        interior=_all_dims(a, tuple(d - 1 for d in a.lhs_dilation)))
        if not spread and all(isinstance(d, int) and d >= 0 for d in (*a.low, *a.high)):
            owner_op(padded).attributes["xcc.stored"] = ir.UnitAttr.get()
        rest = {k: v for k, v in vars(a).items() if k not in ("low", "high", "lhs_dilation")}
        new = xt.convolution(padded, w, **rest)
    op.results[0].replace_all_uses_with(new)
    op.erase()


def _store(x: Value) -> None:
    """Marks a padding that the convolution of `x` had before, such as one by a zero point."""
    pad = producer(x, "pad")
    if pad is None or not only_user(x):
        return
    a = xt.attrs_of(pad)
    if a.mode == "constant" and not any(a.interior) and all(isinstance(d, int) and d >= 0 for d in (*a.low, *a.high)):
        pad.attributes["xcc.stored"] = ir.UnitAttr.get()


def _all_dims(a: Attrs, spatial: tuple[int, ...]) -> tuple[int, ...]:
    """Values for the spatial dims as values for all dims, 0 for batch and channels."""
    return (0, 0, *spatial) if a.layout == "NCHW" else (0, *spatial, 0)
