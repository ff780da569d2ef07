"""Reads at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import broadcast_shapes
from xcc.frontends.shared.helpers import (
    along,
    convert,
    dim_scalar,
    element,
    full,
    rank_of,
    scalar,
    slice_axis,
    unsqueeze,
)
from xcc.frontends.shared.windows import frames
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.elementwise import truth
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


def line(x: Value) -> Value:
    """A tensor without dims as one of one element."""
    return x if rank_of(x) else xt.reshape(x, shape=(1,))


def wrapped(index: Value, size: Dim) -> Value:
    """Indices as i64 from 0 on; negative ones count from the end."""
    index = convert(index, "i64")
    return xt.select(xt.compare(index, xt.scalar(0, "i64"), direction="lt"),
                     xt.add(index, dim_scalar(size, "i64")), index)


@aten("gather")
def gather(cx: Context) -> Value:
    """self[.., index[.., i, ..], ..] along dim."""
    out, x, index = cx.out(), line(cx.tensor("self")), line(cx.tensor("index"))
    if rank_of(index) != rank_of(x):        # torch allows that of an empty index
        return full(out.shape, 0, out.dtype)
    return xt.reshape(xt.gather_elements(x, index, axis=cx.axis()), shape=out.shape)


@aten("index_select")
def index_select(cx: Context) -> Value:
    x = line(cx.tensor("self"))
    return xt.reshape(xt.gather(x, line(cx.tensor("index")), axis=cx.axis()), shape=cx.out().shape)


@aten("take")
def take(cx: Context) -> Value:
    """Elements of flat self."""
    flat = xt.reshape(cx.tensor("self"), shape=(symbolic.product(cx.shape("self")),))
    return xt.gather(flat, cx.tensor("index"), axis=0)


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(cx: Context) -> Value:
    """numpy's indexing by tensors: where they are neighbours their dims come in their place, else first."""
    x = cx.tensor("self")
    places = places_of(cx, x, cx["indices"])
    if not places.axes:
        return x
    if len(places.axes) == 1:
        axis, = places.axes
        return xt.gather(x, places.indices[0], axis=axis)
    if not places.neighbours:
        x = xt.transpose(x, perm=places.first())
    at, count = (places.axes[0] if places.neighbours else 0), len(places.axes)
    shape = xt.shape_of(x)
    flat = xt.reshape(x, shape=(*shape[:at], symbolic.product(shape[at:at + count]), *shape[at + count:]))
    return xt.gather(flat, flat_index(places), axis=at)


@dataclass(frozen=True)
class Places:
    """The indices that are no None, the dims that they index of a tensor of `shape`, and their `common` shape."""

    shape: tuple[Dim, ...]
    axes: tuple[int, ...]
    indices: tuple[Value, ...]

    @property
    def common(self) -> tuple[Dim, ...]:
        return broadcast_shapes(*(tuple(xt.shape_of(i)) for i in self.indices))

    @property
    def neighbours(self) -> bool:
        return self.axes == tuple(range(self.axes[0], self.axes[0] + len(self.axes)))

    def first(self) -> tuple[int, ...]:
        """The order of dims that has the indexed ones first."""
        return (*self.axes, *(d for d in range(len(self.shape)) if d not in self.axes))


def places_of(cx: Context, x: Value, given: Sequence[Value]) -> Places:
    """Masks are the coordinates of what they hold."""
    parts: list[Value] = []
    for value in given:
        if value is not None and element(value) in ("i1", "ui8"):
            parts += coordinates(truth(value), count_symbol(cx))
        else:
            parts.append(value)
    axes = tuple(n for n, part in enumerate(parts) if part is not None)
    return Places(tuple(xt.shape_of(x)), axes, tuple(parts[n] for n in axes))


def flat_index(places: Places) -> Value:
    """One index into the indexed dims taken as one."""
    out: Value | None = None
    for axis, part in zip(places.axes, places.indices, strict=True):
        own = wrapped(part, places.shape[axis])
        out = own if out is None else xt.add(xt.mul(out, dim_scalar(places.shape[axis], "i64")), own)
    return xt.broadcast(out, shape=places.common)


def index_vectors(places: Places) -> Value:
    """The index vectors in a last dim."""
    common = places.common
    parts = [xt.reshape(xt.broadcast(convert(i, "i64"), shape=common), shape=(*common, 1)) for i in places.indices]
    return parts[0] if len(parts) == 1 else xt.concatenate(*parts, axis=len(common))


def count_symbol(cx: Context) -> str:
    """The symbol of a size that the node counts: torch's own where it has one."""
    return cx.node.new[0][0] if cx.node.new else f"{cx.node.name}_count"


def coordinates(mask: Value, symbol: str) -> list[Value]:
    """An index vector for each dim of `mask`: where it is true."""
    mask = line(mask)
    found = xt.nonzero(mask, symbol=symbol)
    return [xt.reshape(slice_axis(found, 0, d, d + 1), shape=(symbolic.sym(symbol),)) for d in range(rank_of(mask))]


@aten("nonzero")
def nonzero(cx: Context) -> Value:
    """[count, rank] coordinates of what is not zero."""
    x = cx.tensor("self")
    found = xt.nonzero(truth(line(x)), symbol=count_symbol(cx))
    return xt.transpose(found if cx.rank() else slice_axis(found, 0, 0, 0), perm=(1, 0))


@aten("nonzero_static")
def nonzero_static(cx: Context) -> Value:
    """[size, rank] coordinates of the first that are not zero; `fill_value` in rows that are left."""
    x, size = cx.tensor("self"), cx.out().shape[0]
    count = symbolic.product(cx.shape("self"))
    flags = xt.reshape(truth(x), shape=(count,))
    row = xt.cumulative(convert(flags, "i64"), kind="sum", axis=0, exclusive=True)
    row = xt.select(flags, xt.minimum(row, cx.value_of(size, "i64")), cx.value_of(size, "i64"))
    none = full((size + 1,), -1, "i64")
    own = xt.scatter_elements(none, row, xt.iota(shape=(count,), axis=0, dtype="i64"), axis=0)
    own = unsqueeze(slice_axis(own, 0, 0, size), [1])
    left = xt.compare(own, scalar(0, own), direction="lt")
    parts = []
    for d in range(cx.rank()):
        inner = cx.value_of(symbolic.product(cx.shape("self")[d + 1:]), "i64")
        parts.append(xt.rem(xt.div(own, inner), cx.value_of(cx.shape("self")[d], "i64")))
    found = xt.concatenate(*parts, axis=1) if parts else full((size, 0), 0, "i64")
    return xt.select(left, cx.value_of(cx["fill_value"], "i64"), found)


@aten("masked_select")
def masked_select(cx: Context) -> Value:
    """The elements where mask, both stretched to one shape."""
    x, mask = cx.tensor("self"), cx.tensor("mask")
    shape = broadcast_shapes(tuple(xt.shape_of(x)), tuple(xt.shape_of(mask)))
    flat = [xt.reshape(xt.broadcast(v, shape=shape), shape=(symbolic.product(shape),)) for v in (x, mask)]
    return xt.compress(*flat, symbol=count_symbol(cx), flat=True)


@aten("diagonal", "diagonal_copy")
def diagonal(cx: Context) -> Value:
    """The elements whose places along dim1 and dim2 differ by offset, in a last dim."""
    first, second, offset = cx.axis("dim1"), cx.axis("dim2"), cx.get("offset", 0)
    length = cx.out().shape[-1]
    rest = [d for d in range(cx.rank()) if d not in (first, second)]
    x = xt.transpose(cx.tensor("self"), perm=(first, second, *rest))
    rows, columns = (along(stepped(length, 1, start), 0, 2) for start in (max(-offset, 0), max(offset, 0)))
    made = xt.gather_nd(x, xt.concatenate(rows, columns, axis=1))
    return xt.transpose(made, perm=(*range(1, len(rest) + 1), 0))


def stepped(length: Dim, step: Dim, start: Dim) -> Value:
    """start, start + step, ...: `length` indices."""
    line = xt.mul(xt.iota(shape=(length,), axis=0, dtype="i64"), dim_scalar(step, "i64"))
    return xt.add(line, dim_scalar(start, "i64"))


@aten("unfold", "unfold_copy")
def unfold(cx: Context) -> Value:
    """Windows of size elements along a dim, step apart; the elements of a window are the last dim."""
    axis, size, step = cx.axis("dimension"), cx["size"], cx["step"]
    x = line(cx.tensor("self"))
    count = cx.out().shape[axis] if cx.rank() else 1
    windows = frames(x, axis, size, step, count)
    rank = rank_of(windows)
    order = (*(d for d in range(rank) if d != axis + 1), axis + 1)
    return xt.reshape(xt.transpose(windows, perm=order), shape=cx.out().shape)


@aten("as_strided", "as_strided_copy")
def as_strided(cx: Context) -> Value:
    """Elements of the memory that self lies in, at any strides."""
    flat = memory(cx, "self")
    return xt.gather(flat, strided_places(cx), axis=0)


def strided_places(cx: Context) -> Value:
    """Where in the memory each element of the shape `size` lies."""
    sizes, strides = cx.dims("size"), cx.dims("stride")
    out = dim_scalar(cx.get("storage_offset", 0), "i64")
    for d, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        out = xt.add(out, along(stepped(size, stride, 0), d, len(sizes)))
    return xt.broadcast(out, shape=sizes)


def memory(cx: Context, name: str) -> Value:
    """A tensor's elements as they lie in torch's memory; it must fill that."""
    x, shape, strides = cx.tensor(name), cx.shape(name), cx.strides(name)
    names = sorted({name for d in (*shape, *strides) for name in symbolic.symbols_of(d)})
    some = {name: 1009 + 14 * n for n, name in enumerate(names)}      # sizes whose products differ
    sizes, apart = ([symbolic.evaluate(d, some) for d in dims] for dims in (shape, strides))
    order = sorted(range(len(shape)), key=lambda d: -apart[d])
    if not _dense(sizes, apart, order):
        cx.fail(f"'{name}' does not fill the memory that it lies in: clone it before as_strided")
    if order != sorted(order):
        x = xt.transpose(x, perm=tuple(order))
    return xt.reshape(x, shape=(symbolic.product(shape),))


def _dense(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    expected = 1
    for d in reversed(order):
        if shape[d] > 1 and strides[d] != expected:
            return False
        expected *= max(shape[d], 1)
    return True


