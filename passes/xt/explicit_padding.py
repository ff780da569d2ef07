"""Convolutions lose their padding: an xt.pad before them makes it. Mirrored and wrapped ends of rows become pieces of
their own.

A CPU kernel reads each input element many times, so testing the border inside its innermost loop costs more than
writing the padded input once. A pad that only adds zeros around its input, or another constant (a zero point, in an
operator of its own), is marked ``xcc.stored``: the kernel that makes the input writes it to its place in the padded
buffer, and the constant around it (stage linalg: ``tensor.pad``).

The elements of a row with such ends are gathered one by one, but for tiles that are known to lie between them.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, ir, owner_op
from xcc.bounds import Bounds, interval
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.walk import ops_where
from xcc.passes.xt.graph.match import only_user
from xcc.passes.xt.graph.rewrite import dim_bounds, producer, rewrite
from xcc.symbolic import Dim

ROW = 32        # elements between the ends, of which a vector may lie apart from both


@register_pass
class ExplicitPadding(Pass):
    """Turns the padding of convolutions into xt.pad.

    Before: ``xt.convolution(x, w) {low = [1, 1], high = [1, 1]}``
    After:  ``xt.convolution(xt.pad(x) {xcc.stored, low = ..., high = ...}, w)``

    Before: ``xt.pad(x) {mode = "reflect", low = [2, 3], high = [0, 4]}``
    After:  ``xt.concatenate(xt.reverse(y[:, 1:4]), y, xt.reverse(y[:, -5:-1]))`` with
            ``y = xt.pad(x) {mode = "reflect", low = [2, 0], high = [0, 0]}``; the ends of a wrapped row
            (mode "wrap") are not reversed
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)
        rewrite(module, {"pad": lambda op: _in_pieces(op) if _has_long_rows(op, bounds) else None})
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


def _has_long_rows(op: Operation, bounds: Bounds) -> bool:
    """Whether both ends are elements of a row that is known to be long enough, or is a size of the call."""
    a, shape = xt.attrs_of(op), xt.shape_of(op.operands[0])
    if a.mode not in ("reflect", "wrap") or not shape:
        return False
    low, high, row = a.low[-1], a.high[-1], shape[-1]
    if not isinstance(low, int) or not isinstance(high, int) or (isinstance(row, int) and row < ROW):
        return False
    most = interval(bounds, row, 0)[0] - (a.mode == "reflect")
    return 0 <= low <= most and 0 <= high <= most and low + high > 0


def _in_pieces(op: Operation) -> Value:
    a, last = xt.attrs_of(op), len(xt.shape_of(op.operands[0])) - 1
    low, high = a.low[-1], a.high[-1]
    x = op.operands[0]
    if any((*a.low[:-1], *a.high[:-1])):
        x = xt.pad(x, **(vars(a) | {"low": (*a.low[:-1], 0), "high": (*a.high[:-1], 0)}))
    *rows, row = xt.shape_of(x)

    mirrored = a.mode == "reflect"      # without the edge

    def part(start: Dim, limit: Dim) -> Value:
        taken = xt.slice(x, starts=(*(0 for _ in rows), start), limits=(*rows, limit))
        return xt.reverse(taken, axes=(last,)) if mirrored else taken

    begin = [part(1, low + 1) if mirrored else part(row - low, row)] if low else []
    end = [part(row - 1 - high, row - 1) if mirrored else part(0, high)] if high else []
    return xt.concatenate(*begin, x, *end, axis=last)


def _all_dims(a: Attrs, spatial: tuple[int, ...]) -> tuple[int, ...]:
    """Values for the spatial dims as values for all dims, 0 for batch and channels."""
    return (0, 0, *spatial) if a.layout == "NCHW" else (0, *spatial, 0)
