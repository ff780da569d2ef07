"""Sorting and selecting."""

from __future__ import annotations

import math

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import along, convert, element


@onnx_op("TopK")
def top_k_attribute(cx: Context) -> Value:
    return xt.top_k(cx[0], k=cx.attr("k"), axis=cx.axis(default=-1), largest=True)


@onnx_op("TopK", since=10)
def top_k_operand(cx: Context) -> Value:
    """Values, Indices = TopK(X, K, axis, largest, sorted)."""
    axis = cx.axis(default=-1)
    declared = cx.declared()
    k = declared[axis] if cx.tensor(1).data is None and declared is not None else cx.dims(1)[0]
    return xt.top_k(cx[0], k=k, axis=axis, largest=bool(cx.attr("largest", 1)))


@onnx_op("Hardmax")
def hardmax_flat(cx: Context) -> Value:
    """Before opset 13 the dims from `axis` on are one."""
    shape, axis = cx.shape(0), cx.axis(default=1)
    flat = xt.reshape(cx[0], shape=(symbolic.product(shape[:axis]), symbolic.product(shape[axis:])))
    return xt.reshape(_hardmax(cx, flat, 1), shape=shape)


@onnx_op("Hardmax", since=13)
def hardmax(cx: Context) -> Value:
    """1 at the first maximum along `axis`, 0 elsewhere."""
    return _hardmax(cx, cx[0], cx.axis(default=-1))


def _hardmax(cx: Context, x: Value, axis: int) -> Value:
    shape = xt.shape_of(x)
    never_empty = x
    if not cx.graph.model.sizes.has_one(shape[axis]):
        never_empty = xt.pad(x, low=(0,) * len(shape), high=tuple(int(d == axis) for d in range(len(shape))),
                             value=-math.inf)
    best = xt.arg_reduce(never_empty, kind="argmax", axis=axis, keepdims=True)
    line = along(xt.iota(shape=(shape[axis],), axis=0, dtype="i64"), axis, len(shape))
    return convert(xt.compare(line, best, direction="eq"), element(x))


