"""Writes at computed places."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value, maker
from xcc.dialects import xt
from xcc.dialects.xt.reduce import neutral
from xcc.frontends.shared.helpers import along, convert, element, full, rank_of, scalar, slice_axis, unsqueeze
from xcc.frontends.torch.arithmetic import floor_divide
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.elementwise import cast, truth
from xcc.frontends.torch.indexing import (
    Places,
    flat_index,
    index_vectors,
    line,
    memory,
    places_of,
    stepped,
    strided_places,
)
from xcc.frontends.torch.promotion import category
from xcc.frontends.torch.registry import aten
from xcc.frontends.torch.slices import clamp_index
from xcc.symbolic import Dim

_KINDS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min", "mean": "add"}


def _operands(cx: Context) -> tuple[Value, Value, Value]:
    """self, index, and the updates in the index's shape."""
    x, index = line(cx.tensor("self")), line(cx.tensor("index"))
    given = "src" if "src" in cx.args else "value"
    updates = cx.value_of(cx[given], element(x))
    if given == "value":
        return x, index, xt.broadcast(updates, shape=xt.shape_of(index))
    updates, shape = line(updates), tuple(xt.shape_of(index))
    if tuple(xt.shape_of(updates)) != shape and rank_of(index) == rank_of(updates):
        updates = xt.slice(updates, starts=(0,) * len(shape), limits=shape)
    return x, index, updates


def _scattered(x: Value, index: Value, updates: Value, axis: int, kind: str) -> Value:
    """xt.scatter_elements; bools are combined as numbers are."""
    if element(x) == "i1" and kind != "none":
        out = _scattered(convert(x, "i32"), index, convert(updates, "i32"), axis, kind)
        return truth(out)
    return xt.scatter_elements(x, index, updates, axis=axis, reduction=kind)


def _nothing(index: Value) -> bool:
    return symbolic.product(xt.shape_of(index)) == 0


@aten("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add")
def scatter(cx: Context) -> Value:
    """self with src (or a value) stored or combined at index along dim."""
    x, index, updates = _operands(cx)
    if _nothing(index):
        return cx.tensor("self")
    kind = "add" if "scatter_add" in cx.node.op else _KINDS[cx["reduce"]] if "reduce" in cx.args else "none"
    return xt.reshape(_scattered(x, index, updates, cx.axis(), kind), shape=cx.out().shape)


@aten("scatter_reduce.two")
def scatter_reduce(cx: Context) -> Value:
    """Combined by sum, prod, mean, amax or amin; without include_self what is written to starts anew."""
    x, index, updates = _operands(cx)
    if _nothing(index):
        return cx.tensor("self")
    return xt.reshape(_combined(cx, x, index, updates), shape=cx.out().shape)


def _combined(cx: Context, x: Value, index: Value, updates: Value) -> Value:
    axis, kind, dtype = cx.axis(), cx["reduce"], element(x)
    mode = _KINDS[kind]
    if not cx["include_self"]:
        start = {"add": "sum", "mul": "prod"}.get(mode, mode)
        hit = _scattered(full(xt.shape_of(x), 0, "i32"), index, full(xt.shape_of(index), 1, "i32"), axis, "max")
        x = xt.select(truth(hit), xt.scalar(neutral(start, dtype), dtype), x)
    out = _scattered(x, index, updates, axis, mode)
    if kind != "mean":
        return out
    own = full(xt.shape_of(x), int(cx["include_self"]), dtype)
    count = _scattered(own, index, full(xt.shape_of(index), 1, dtype), axis, "add")
    count = xt.maximum(count, scalar(1, count))
    return xt.div(out, count) if category(dtype) == 2 else floor_divide(out, count)


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(cx: Context) -> Value:
    """self with values at numpy's index; added there where `accumulate`."""
    x, values = cx.tensor("self"), cx.value_of(cx["values"], element(cx.tensor("self")))
    masks = [i for i in cx["indices"] if i is not None]
    if not cx["accumulate"] and len(masks) == 1 and element(masks[0]) == "i1" and _one(values):
        return _masked(x, cx["indices"], xt.reshape(values, shape=()))
    places = places_of(cx, x, cx["indices"])
    if not places.axes:
        return xt.broadcast(values, shape=xt.shape_of(x))
    kind = "add" if cx["accumulate"] else "none"
    flags = element(x) == "i1" and kind == "add"
    added = convert(values, "i32") if flags else values
    start = convert(x, "i32") if flags else x
    out = _put_inside(start, places, added, kind) if places.neighbours and places.axes[0] else \
        _put_first(start, places, added, kind)
    return truth(out) if flags else out


def _put_inside(x: Value, places: Places, values: Value, kind: str) -> Value:
    """Behind dims that no index has: the indexed ones become one, whose elements are written where they lie."""
    at, count, shape = places.axes[0], len(places.axes), places.shape
    lead, rest = shape[:at], shape[at + count:]
    wide = xt.broadcast(values, shape=(*lead, *places.common, *rest))
    size = symbolic.product(places.common)
    flat = xt.reshape(x, shape=(*lead, symbolic.product(shape[at:at + count]), *rest))
    index = along(xt.reshape(flat_index(places), shape=(size,)), at, rank_of(flat))
    out = xt.scatter_elements(flat, index, xt.reshape(wide, shape=(*lead, size, *rest)), axis=at, reduction=kind)
    return xt.reshape(out, shape=shape)


def _put_first(x: Value, places: Places, values: Value, kind: str) -> Value:
    """With the indexed dims first."""
    order = places.first()
    rest = tuple(places.shape[d] for d in order[len(places.axes):])
    moved = x if order == tuple(range(len(order))) else xt.transpose(x, perm=order)
    shape = (*places.common, *rest)
    given = xt.shape_of(values)
    whole = len(given) == len(shape) and all(g != 1 for g in given)      # sizes that differ in name alone are equal
    updates = values if whole else xt.broadcast(values, shape=shape)
    out = xt.scatter_nd(moved, index_vectors(places), updates, reduction=kind)
    return out if moved is x else xt.transpose(out, perm=tuple(order.index(d) for d in range(len(order))))


def _one(x: Value) -> bool:
    return symbolic.product(xt.shape_of(x)) == 1


def _masked(x: Value, indices: tuple[Value, ...], value: Value) -> Value:
    """`value` where a mask over some dims is true."""
    at = next(n for n, i in enumerate(indices) if i is not None)
    mask = indices[at]
    after = rank_of(x) - at - rank_of(mask)
    return xt.select(xt.reshape(mask, shape=(*xt.shape_of(mask), *[1] * after)), value, x)


@aten("index_add", "index_copy", "index_reduce")
def index_add(cx: Context) -> Value:
    """Slices of source added to, stored at, or combined with those of self that index names along dim."""
    x, index, source = line(cx.tensor("self")), line(cx.tensor("index")), line(cx.tensor("source"))
    axis, kind = cx.axis(), element(x)
    source = convert(source, kind)
    if cx.get("alpha", 1) != 1:
        source = xt.mul(source, cx.value_of(cx["alpha"], kind))
    if _nothing(index):
        return cx.tensor("self")
    places = along(convert(index, "i64"), axis, rank_of(x))
    if "index_reduce" in cx.node.op:
        out = _combined(cx, x, xt.broadcast(places, shape=xt.shape_of(source)), source)
    else:
        out = _scattered(x, places, source, axis, "add" if "index_add" in cx.node.op else "none")
    return xt.reshape(out, shape=cx.out().shape)


@aten("select_scatter")
def select_scatter(cx: Context) -> Value:
    """self with src at one index of a dim."""
    x, axis, shape = cx.tensor("self"), cx.axis(), cx.shape("self")
    at = cx.value_of(cx.position("index", shape[axis]), "i64")
    src = xt.reshape(convert(cx.tensor("src"), element(x)), shape=(*shape[:axis], 1, *shape[axis + 1:]))
    here = xt.compare(along(stepped(shape[axis], 1, 0), axis, len(shape)), at, direction="eq")
    return xt.select(here, src, x)


@aten("slice_scatter")
def slice_scatter(cx: Context) -> Value:
    """self with src at [start:end:step] of a dim."""
    x, axis, step = cx.tensor("self"), cx.axis(), cx.get("step", 1)
    shape, src = cx.shape("self"), convert(cx.tensor("src"), element(cx.tensor("self")))
    start = clamp_index(cx.get("start"), shape[axis], 0, cx.graph.bounds)
    length = xt.shape_of(src)[axis]
    if length == 0:
        return x
    if step == 1 and length == shape[axis]:
        return src
    if step == 1:
        return xt.concatenate(slice_axis(x, axis, 0, start), src, slice_axis(x, axis, start + length, shape[axis]),
                              axis=axis)
    first = cx.get("start") or 0
    if isinstance(first, int) and 0 <= first < step and shape[axis] == length * step and _in_parts(x):
        return _one_of_each(x, src, axis, first, step)
    covered = length + symbolic.dim_max(length - 1, 0) * (step - 1)     # 0 of none
    low: list[Dim]
    high: list[Dim]
    low, high, inner = [0] * len(shape), [0] * len(shape), [0] * len(shape)
    low[axis], high[axis], inner[axis] = start, shape[axis] - start - covered, step - 1
    wide = xt.pad(cast(src, "i32") if element(x) == "i1" else src, low=tuple(low), high=tuple(high),
                  interior=tuple(inner))
    wide = truth(wide) if element(x) == "i1" else wide
    return xt.select(_inside(shape, axis, start, covered, step), wide, x)


def _in_parts(x: Value) -> bool:
    """Whether nothing is read of memory for the elements of x that are not written: one number, or parts joined."""
    made = maker(x)
    while made is not None and made.name == "xt.slice":
        made = maker(made.operands[0])
    if made is not None and made.name == "xt.reshape":
        made = maker(made.operands[0])
        return made is not None and made.name == "xtv.concatenate"
    return made is not None and made.name == "xt.broadcast" and rank_of(made.operands[0]) == 0


def _one_of_each(x: Value, src: Value, axis: int, at: int, step: int) -> Value:
    """x with element `at` of each `step` along `axis` from src, as parts along a dim of their own: these alone are
    joined where each of them is written in its turn."""
    shape = xt.shape_of(x)
    blocks = xt.reshape(x, shape=(*shape[:axis], xt.shape_of(src)[axis], step, *shape[axis + 1:]))
    return xt.reshape(xt.concatenate(slice_axis(blocks, axis + 1, 0, at), unsqueeze(src, (axis + 1,)),
                                     slice_axis(blocks, axis + 1, at + 1, step), axis=axis + 1), shape=shape)


def _inside(shape: tuple[Dim, ...], axis: int, start: Dim, covered: Dim, step: int) -> Value:
    """i1 along `axis`: which places [start:start+covered:step] holds."""
    offset = xt.sub(along(stepped(shape[axis], 1, 0), axis, len(shape)), _i64(start))
    inside = xt.and_(xt.compare(offset, _i64(0), direction="ge"), xt.compare(offset, _i64(covered), direction="lt"))
    return inside if step == 1 else xt.and_(inside, xt.compare(xt.rem(offset, _i64(step)), _i64(0), direction="eq"))


def _i64(value: Dim) -> Value:
    return xt.scalar(value, "i64") if isinstance(value, int) else xt.dim(value=value)


@aten("masked_scatter")
def masked_scatter(cx: Context) -> Value:
    """Where mask, the elements of source one after the other."""
    x, shape = cx.tensor("self"), cx.out().shape
    count = symbolic.product(shape)
    mask = xt.broadcast(cx.tensor("mask"), shape=shape)
    source = convert(cx.tensor("source"), element(x))
    flat = xt.reshape(source, shape=(symbolic.product(xt.shape_of(source)),))
    if _nothing(flat) or count == 0:
        return xt.broadcast(x, shape=shape)
    if not isinstance(xt.shape_of(flat)[0], int):
        flat = xt.pad(flat, low=(0,), high=(1,), value=0)       # it may be empty, and is read all the same
    places = xt.cumulative(convert(xt.reshape(mask, shape=(count,)), "i64"), kind="sum", axis=0, exclusive=True)
    return xt.select(mask, xt.reshape(xt.gather(flat, places, axis=0), shape=shape), x)


@aten("diagonal_scatter")
def diagonal_scatter(cx: Context) -> Value:
    """self with src on the diagonal of dim1 and dim2."""
    x, shape = cx.tensor("self"), cx.shape("self")
    first, second, offset = cx.axis("dim1"), cx.axis("dim2"), cx.get("offset", 0)
    rows, columns = (along(stepped(shape[d], 1, 0), d, len(shape)) for d in (first, second))
    here = xt.compare(xt.add(rows, _i64(offset)), columns, direction="eq")
    src = convert(cx.tensor("src"), element(x))
    if _nothing(src):
        return x
    last = rank_of(src) - 1
    if not isinstance(xt.shape_of(src)[last], int):     # it may be empty, and is read all the same
        src = xt.pad(src, low=(0,) * (last + 1), high=(*(0,) * last, 1), value=0)
    wide = xt.gather(src, rows_of(shape[first], offset), axis=last)
    rest = [d for d in range(len(shape)) if d not in (first, second)]
    placed = xt.reshape(wide, shape=(*(shape[d] for d in rest), shape[first], 1))
    order = [[*rest, first, second].index(d) for d in range(len(shape))]
    return xt.select(here, xt.transpose(placed, perm=tuple(order)), x)


def rows_of(size: Dim, offset: int) -> Value:
    """For each row the place on the diagonal that it has, any for a row that has none."""
    return xt.maximum(xt.add(stepped(size, 1, 0), _i64(min(offset, 0))), _i64(0))


@aten("as_strided_scatter")
def as_strided_scatter(cx: Context) -> Value:
    """self with src in the memory's places of the strides."""
    places = strided_places(cx)
    count = symbolic.product(xt.shape_of(places))
    src = xt.reshape(convert(cx.tensor("src"), cx.dtype()), shape=(count,))
    flat = xt.scatter_elements(memory(cx, "self"), xt.reshape(places, shape=(count,)), src, axis=0)
    return xt.reshape(flat, shape=cx.out().shape)
