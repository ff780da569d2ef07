"""Views and movements of whole dims, and sizes as values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf
from operator import add

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Absent, Context, Shape, Tensor, TensorList
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.slicing import at_least
from xcc.frontends.shared.helpers import split, squeeze, unsqueeze
from xcc.symbolic import Dim, Expr


@onnx_op("Reshape")
def reshape(cx: Context) -> Value:
    """reshaped = Reshape(data, shape, allowzero): 0 copies a dim, -1 is inferred."""
    wanted = cx.dims_or_declared(1)
    old = cx.shape(0)
    zero_is_copy = not cx.attr("allowzero", 0)
    if cx.graph.model.values.behind(wanted):
        return xt.reshape(cx[0], shape=_by_values(cx, list(wanted), old, zero_is_copy))
    shape: list[Dim] = []
    for i, d in enumerate(wanted):
        if d == 0 and zero_is_copy:
            if i >= len(old):
                cx.misfit(f"the shape {_text(wanted)} copies dim {i}, which {_text(old)} lacks")
            d = old[i]
        shape.append(d)
    if shape.count(-1) > 1:
        cx.fail(f"the shape {_text(wanted)} has more than one -1")
    if -1 in shape:
        shape[shape.index(-1)] = _rest(symbolic.product(old), symbolic.product(d for d in shape if d != -1))
    return xt.reshape(cx[0], shape=tuple(shape))


def _by_values(cx: Context, shape: list[Dim], old: Shape, zero_is_copy: bool) -> Shape:
    """The shape that `shape` asks for, some elements of which are values of inputs: they too may be 0 or -1."""
    values = cx.graph.model.values
    inferred = [i for i, d in enumerate(shape) if d == -1 or values.may_be(d, -inf, -1)]
    if len(inferred) > 1:
        cx.fail(f"more than one of {_text(shape)} may be -1; bound the others from 0 on (--dim)")
    wanted = list(shape)
    for i, n in enumerate(old[:len(shape)]):
        if zero_is_copy and (shape[i] == 0 or values.may_be(shape[i], 0, 0)):
            shape[i] = shape[i] + n * symbolic.is_equal(shape[i], 0)
    for i in inferred:
        rest = symbolic.product(d for k, d in enumerate(shape) if k != i)
        rest = symbolic.floordiv(symbolic.product(old), at_least(cx, rest, 1))
        shape[i] = shape[i] + (rest - shape[i]) * symbolic.is_equal(symbolic.dim_min(wanted[i], 0), -1)
    return tuple(shape)


def _rest(total: Dim, known: Dim) -> Dim:
    if known == 0:
        return 0
    return symbolic.floordiv(total, known)


def _text(shape: Shape | list[Dim]) -> str:
    return f"[{', '.join(str(d) for d in shape)}]"


@onnx_op("Flatten")
def flatten(cx: Context) -> Value:
    """output = Flatten(input, axis): two dims."""
    rank = cx.rank(0)
    axis = cx.attr("axis", 1)
    if not -rank <= axis <= rank:
        cx.misfit(f"axis {axis} is out of range for rank {rank}")
    axis = axis + rank if axis < 0 else axis
    shape = cx.shape(0)
    return xt.reshape(cx[0], shape=(symbolic.product(shape[:axis]), symbolic.product(shape[axis:])))


@onnx_op("Squeeze")
def squeeze_attribute(cx: Context) -> Value:
    return _squeeze(cx, cx.attr("axes"))


@onnx_op("Squeeze", since=13)
def squeeze_operand(cx: Context) -> Value:
    return _squeeze(cx, cx.static_ints(1) if cx.has(1) else None)


def _squeeze(cx: Context, axes: Sequence[int] | None) -> Value:
    shape = cx.shape(0)
    if axes is None:
        axes = [i for i, d in enumerate(shape) if d == 1 or (isinstance(d, Expr) and cx.graph.model.sizes.is_single(d))]
    axes = [cx.normal_axis(a) for a in axes]
    for a in axes:
        if isinstance(shape[a], int) and shape[a] != 1:
            cx.misfit(f"dim {a} of {_text(shape)} is not 1 and cannot be squeezed")
    return squeeze(cx[0], axes)


@onnx_op("Unsqueeze")
def unsqueeze_attribute(cx: Context) -> Value:
    return _unsqueeze(cx, cx.attr("axes"))


@onnx_op("Unsqueeze", since=13)
def unsqueeze_operand(cx: Context) -> Value:
    return _unsqueeze(cx, cx.static_ints(1))


def _unsqueeze(cx: Context, axes: Sequence[int]) -> Value:
    rank = cx.rank(0) + len(axes)
    axes = [cx.normal_axis(a, rank) for a in axes]
    if len(set(axes)) != len(axes):
        cx.misfit(f"axes {axes} repeat")
    return unsqueeze(cx[0], axes)


@onnx_op("Transpose")
def transpose(cx: Context) -> Value:
    return xt.transpose(cx[0], perm=tuple(cx.attr("perm", range(cx.rank(0) - 1, -1, -1))))


@onnx_op("Identity")
def identity(cx: Context) -> Tensor | TensorList | Absent | None:
    return cx.inputs[0]


@onnx_op("Expand")
def expand(cx: Context) -> Value:
    """output = Expand(input, shape), numpy broadcasting both ways."""
    old, wanted = list(cx.shape(0)), list(cx.dims_or_declared(1))
    rank = max(len(old), len(wanted))
    x = cx.graph.materialize(cx.graph.model.sizes.beside(cx.tensor(0), [tuple(wanted)], cx.place))
    old = list(xt.shape_of(x))
    pairs = zip([*[1] * (rank - len(old)), *old], [*[1] * (rank - len(wanted)), *wanted], strict=True)
    return xt.broadcast(x, shape=tuple(_both_ways(cx, o, w) for o, w in pairs))


def _both_ways(cx: Context, old: Dim, wanted: Dim) -> Dim:
    """`old` and `wanted` broadcast; an input's value that may be 1 leaves the size as it is, or is the size."""
    if wanted == 1:
        return old
    if old == 1 or old == wanted or not cx.graph.model.values.may_be(wanted, 1, 1):
        return wanted
    xt.require(old, wanted + (old - wanted) * symbolic.is_equal(wanted, 1), cx.place)
    return old


@onnx_op("Tile")
def tile(cx: Context) -> Value:
    """output = Tile(input, repeats), as broadcast and reshape."""
    x, shape = cx[0], cx.shape(0)
    if cx.tensor(1).data is None and cx.declared() is not None:
        declared = cx.declared()
        assert declared is not None
        repeats: Shape = tuple(symbolic.floordiv(o, n) for o, n in zip(declared, shape, strict=True))
    else:
        repeats = cx.dims(1)
    if len(repeats) != len(shape):
        cx.misfit(f"{len(repeats)} repeats for {len(shape)} dims")
    wide: list[Dim] = [d for r, n in zip(repeats, shape, strict=True) for d in (r, n)]
    spread = xt.reshape(x, shape=tuple(d for n in shape for d in (1, n)))
    return xt.reshape(xt.broadcast(spread, shape=tuple(wide)),
                      shape=tuple(r * n for r, n in zip(repeats, shape, strict=True)))


@onnx_op("Concat")
def concat(cx: Context) -> Value:
    values = cx.values()
    return xt.concatenate(*values, axis=cx.axis(default=1)) if len(values) > 1 else values[0]


@onnx_op("Split")
def split_attribute(cx: Context) -> list[Value]:
    return _split(cx, cx.attr("split"))


@onnx_op("Split", since=13)
def split_operand(cx: Context) -> list[Value]:
    return _split(cx, _split_sizes(cx) if cx.has(1) else None)


def _split_sizes(cx: Context) -> Shape:
    axis = cx.axis()
    declared = [cx.declared(i) for i in range(len(cx.node.output))]
    if cx.tensor(1).data is None and all(d is not None for d in declared):
        return tuple(d[axis] for d in declared if d is not None)
    sizes = cx.dims(1)
    if cx.graph.model.values.behind(sizes):
        xt.require(reduce(add, sizes), cx.shape(0)[axis], cx.place)
    return sizes


def _split(cx: Context, sizes: Shape | None) -> list[Value]:
    axis = cx.axis()
    size, parts = cx.shape(0)[axis], len(cx.node.output)
    if sizes is None:
        each = symbolic.ceildiv(size, parts)
        sizes = (*[each] * (parts - 1), size - each * (parts - 1))
    return split(cx[0], axis, list(sizes))


@onnx_op("Shape")
def shape(cx: Context) -> Tensor:
    """shape = Shape(data; start, end): known at import, as symbols."""
    rank = cx.rank(0)
    start, end = cx.attr("start", 0), cx.attr("end", rank)
    low, high = (min(max(v + rank if v < 0 else v, 0), rank) for v in (start, end))
    dims = np.empty(max(high - low, 0), object)
    dims[:] = cx.shape(0)[low:high]
    return Tensor.of_dims(dims, np.dtype(np.int64))


@onnx_op("Size")
def size(cx: Context) -> Tensor:
    """The number of elements."""
    out = np.empty((), object)
    out[()] = symbolic.product(cx.shape(0))
    return Tensor.of_dims(out, np.dtype(np.int64))


@onnx_op("DepthToSpace")
def depth_to_space(cx: Context) -> Value:
    """[n, c*b*b, h, w] -> [n, c, h*b, w*b]; mode DCR or CRD says where the block dims are in c."""
    b = cx.attr("blocksize")
    n, c, h, w = cx.shape(0)
    depth = symbolic.floordiv(c, b * b)
    if cx.attr("mode", "DCR") == "DCR":
        x = xt.transpose(xt.reshape(cx[0], shape=(n, b, b, depth, h, w)), perm=(0, 3, 4, 1, 5, 2))
    else:
        x = xt.transpose(xt.reshape(cx[0], shape=(n, depth, b, b, h, w)), perm=(0, 1, 4, 2, 5, 3))
    return xt.reshape(x, shape=(n, depth, h * b, w * b))


@onnx_op("SpaceToDepth")
def space_to_depth(cx: Context) -> Value:
    """[n, c, h, w] -> [n, b*b*c, h/b, w/b]."""
    b = cx.attr("blocksize")
    n, c, h, w = cx.shape(0)
    rows, columns = symbolic.floordiv(h, b), symbolic.floordiv(w, b)
    if cx.attr("mode", "DCR") == "CRD":
        x = xt.transpose(xt.reshape(cx[0], shape=(n, c, rows, b, columns, b)), perm=(0, 1, 3, 5, 2, 4))
    else:
        x = xt.transpose(xt.reshape(cx[0], shape=(n, c, rows, b, columns, b)), perm=(0, 3, 5, 1, 2, 4))
    return xt.reshape(x, shape=(n, c * (b * b), rows, columns))
