"""Slices whose bounds only a run can tell. No option has to bound them: none is longer than the dim that it cuts.

    Slice(x, [0], ReduceMax(lengths), axes=[1])

    %flags = iota(t) >= %start and iota(t) < %end       of both counted from the front
    %kept = "xt.compress"(%flags, %flags) {symbol = "y_size"}
    %y = "xt.dynamic_slice"(%x, ..., %start, ...) {sizes = [..., "y_size", ...]}

Slices of equal dims with the same bounds have the same size, so that they can be read together.
"""

from __future__ import annotations

from collections.abc import Sequence

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.loop_ranges import known_length
from xcc.frontends.shared.helpers import convert, dim_scalar
from xcc.symbolic import Dim

__all__ = ["counted_slice"]


def counted_slice(cx: Context, axes: Sequence[int], steps: Sequence[int]) -> Value:
    """Slice of operand 0 from operand 1 to operand 2, whose elements are computed; `steps` are positive."""
    rank = cx.rank(0)
    starts, sizes, strides = [xt.scalar(0, "i64")] * rank, list(cx.shape(0)), [1] * rank
    given = [convert(cx[i], "i64") for i in (1, 2)]
    for n, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        axis = cx.normal_axis(axis)
        start, end = (xt.reshape(xt.slice(v, starts=(n,), limits=(n + 1,)) if len(axes) > 1 else v, shape=())
                      for v in given)
        size, known = sizes[axis], known_length(cx.graph.model, sizes[axis], start, end)
        starts[axis], strides[axis] = _from_front(start, size) if known is None else start, step
        sizes[axis] = _length(cx, n, size, starts[axis], _from_front(end, size)) if known is None else known
    out = xt.dynamic_slice(cx[0], *starts, sizes=tuple(sizes))
    if all(step == 1 for step in steps):
        return out
    return xt.slice(out, starts=(0,) * rank, limits=tuple(sizes), strides=tuple(strides))


def _from_front(bound: Value, size: Dim) -> Value:
    """The scalar `bound` of a dim of `size` elements, counted from the back where it is negative, clamped at 0."""
    zero = xt.scalar(0, "i64")
    behind = xt.add(bound, dim_scalar(size, "i64"))
    return xt.maximum(xt.select(xt.compare(bound, zero, direction="lt"), behind, bound), zero)


def _length(cx: Context, n: int, size: Dim, start: Value, end: Value) -> Dim:
    """How many elements of a dim of `size` are between the scalars, which bounds `n` of the node are."""
    model = cx.graph.model
    key = (_bound(cx, 1, n), _bound(cx, 2, n), size)
    if key in model.lengths:
        return symbolic.sym(model.lengths[key])
    at = xt.iota(shape=(size,), axis=0, dtype="i64")
    flags = xt.and_(xt.compare(at, start, direction="ge"), xt.compare(at, end, direction="lt"))
    symbol = model.fresh_symbol(f"{cx.node.output[0]}_size")
    xt.compress(flags, flags, symbol=symbol, axis=0, flat=False)
    if ir.InsertionPoint.current.block == model.entry:      # what a branch or a step counts is not known outside
        model.lengths[key] = symbol
    return symbolic.sym(symbol)


def _bound(cx: Context, i: int, n: int) -> object:
    """What tells element `n` of operand `i` from others."""
    tensor = cx.tensor(i)
    return (tensor.value, n) if tensor.data is None else tensor.data.reshape(-1)[n]
