"""Views of buffers, and what reads and writes them."""

from collections.abc import Callable, Sequence

import numpy as np

from xcc.dialects.tile.op import Attrs, InferError, TileOp
from xcc.dialects.tile.types import TileType, check_shape, is_float, is_integer, view_type
from xcc.dialects.xt.fields import boolean, integers, operand, text, variadic
from xcc.dialects.xt.numeric import Array

Arrays = tuple[Array, ...]

ATOMIC = ("add", "max", "min", "umax", "umin", "and", "or", "xor", "exchange")


def _check_buffer(buffer: TileType, places: tuple[TileType, ...], what: str) -> None:
    if not buffer.is_buffer:
        raise InferError(f"the buffer is {buffer}")
    if len(places) != buffer.rank:
        raise InferError(f"{len(places)} {what} for a {buffer}")


def _check_offsets(buffer: TileType, offsets: tuple[TileType, ...]) -> None:
    _check_buffer(buffer, offsets, "offsets")
    for t in offsets:
        if t.shape or t.dtype != "index":
            raise InferError(f"an offset is {t}, not an index")


def _check_positions(buffer: TileType, like: TileType, positions: tuple[TileType, ...]) -> None:
    _check_buffer(buffer, positions, "positions")
    for t in positions:
        if t.shape != like.shape or not is_integer(t.dtype):
            raise InferError(f"a position is {t}, not integers of the shape {list(like.shape)}")


def _check_element(what: str, t: TileType, buffer: TileType) -> None:
    if t.dtype != buffer.dtype:
        raise InferError(f"{what} is {t}, the buffer's elements are {buffer.dtype}")


def _block(shape: tuple[int, ...], offsets: Arrays) -> list[Array]:
    """The index of each element of a tile of `shape` that starts at `offsets`, an array a dim."""
    return [np.broadcast_to((int(o) + np.arange(n)).reshape([-1 if i == d else 1 for i in range(len(shape))]), shape)
            for d, (o, n) in enumerate(zip(offsets, shape, strict=True))]


def inside(buffer: Array, indices: Sequence[Array]) -> Array:
    """Which of the elements at `indices` the buffer has."""
    out: Array = np.asarray(True)
    for i, n in zip(indices, buffer.shape, strict=True):
        out = out & (np.asarray(i) >= 0) & (np.asarray(i) < n)
    return out


def _read(buffer: Array, indices: Sequence[Array], active: Array, other: Array) -> Array:
    safe = tuple(np.where(active, i, 0) for i in indices)
    if not buffer.size:
        return np.broadcast_to(np.asarray(other, buffer.dtype), np.shape(active)).copy()
    return np.where(active, buffer[safe], np.asarray(other, buffer.dtype))


class View(TileOp, name="view"):
    """A window of a buffer: it has `sizes` from `offsets` on, and its dim i is the buffer's dim order[i]. What is
    outside the window is outside the view; the window must lie inside the buffer. `bounds` are the offsets, then the
    sizes, each an index for a dim of the buffer."""

    buffer = operand()
    bounds = variadic()
    order = integers(None)

    def normalize(a: Attrs, buffer: TileType, bounds: tuple[TileType, ...]) -> None:
        a.order = tuple(range(buffer.rank)) if a.order is None else tuple(a.order)

    def infer(a: Attrs, buffer: TileType, bounds: tuple[TileType, ...]) -> TileType:
        _check_offsets(buffer, bounds[:len(bounds) // 2])
        _check_offsets(buffer, bounds[len(bounds) // 2:])
        if sorted(a.order) != list(range(buffer.rank)):
            raise InferError(f"order {list(a.order)} is no order of {buffer.rank} dims")
        return view_type(buffer.dtype, buffer.rank)

    def evaluate(a: Attrs, buffer: Array, bounds: Arrays) -> Array:
        offsets, sizes = bounds[:buffer.ndim], bounds[buffer.ndim:]
        return buffer[tuple(slice(int(o), int(o) + int(n)) for o, n in zip(offsets, sizes, strict=True))] \
            .transpose(a.order)


class Load(TileOp, name="load"):
    """The tile of `shape` that starts at `offsets`, which may be anywhere: what is outside the buffer reads `other`.
    With `inside` the program says that nothing is outside; a checking run reports where that is wrong."""

    effects = "read"
    buffer = operand()
    other = operand()
    offsets = variadic()
    shape = integers()
    inside = boolean(False)

    def infer(a: Attrs, buffer: TileType, other: TileType, offsets: tuple[TileType, ...]) -> TileType:
        _check_offsets(buffer, offsets)
        if len(a.shape) != buffer.rank:
            raise InferError(f"a tile of shape {list(a.shape)} from a {buffer}: give a size for each dim")
        if other.shape:
            raise InferError(f"other is {other}, not a scalar")
        _check_element("other", other, buffer)
        return TileType(check_shape(a.shape), buffer.dtype)

    def places(a: Attrs, buffer: Array, other: Array, offsets: Arrays) -> tuple[Sequence[Array], Array]:
        return _block(a.shape, offsets), np.ones(a.shape, bool)

    def evaluate(a: Attrs, buffer: Array, other: Array, offsets: Arrays) -> Array:
        indices = _block(a.shape, offsets)
        return _read(buffer, indices, inside(buffer, indices), other)


class Store(TileOp, name="store"):
    """Writes the tile `value` from `offsets` on; what is outside the buffer is not written."""

    effects = "write"
    result_names = ()
    value = operand()
    buffer = operand()
    offsets = variadic()

    def infer(a: Attrs, value: TileType, buffer: TileType, offsets: tuple[TileType, ...]) -> None:
        _check_offsets(buffer, offsets)
        if value.rank != buffer.rank:
            raise InferError(f"{value} into a {buffer}: give it a size for each dim")
        _check_element("the value", value, buffer)

    def places(a: Attrs, value: Array, buffer: Array, offsets: Arrays) -> tuple[Sequence[Array], Array]:
        return _block(value.shape, offsets), np.ones(value.shape, bool)

    def evaluate(a: Attrs, value: Array, buffer: Array, offsets: Arrays) -> None:
        indices = _block(value.shape, offsets)
        there = inside(buffer, indices)
        buffer[tuple(i[there] for i in indices)] = value[there]


class Gather(TileOp, name="gather"):
    """The elements at `positions`, a tile of integers for each dim of the buffer; `other` where the mask is off, and
    where a position is outside the buffer. With `inside` the program says that none is where the mask is on."""

    effects = "read"
    buffer = operand()
    other = operand()
    mask = operand()
    positions = variadic()
    inside = boolean(False)

    def infer(a: Attrs, buffer: TileType, other: TileType, mask: TileType, positions: tuple[TileType, ...]) -> TileType:
        _check_mask(mask)
        _check_positions(buffer, mask, positions)
        if other.shape:
            raise InferError(f"other is {other}, not a scalar")
        _check_element("other", other, buffer)
        return TileType(check_shape(mask.shape), buffer.dtype)

    def places(a: Attrs, buffer: Array, other: Array, mask: Array, positions: Arrays) -> tuple[Sequence[Array], Array]:
        return list(positions), mask

    def evaluate(a: Attrs, buffer: Array, other: Array, mask: Array, positions: Arrays) -> Array:
        return _read(buffer, positions, mask & inside(buffer, positions), other)


class Scatter(TileOp, name="scatter"):
    """Writes the elements of `value` to `positions`, where the mask is on and the position inside the buffer. Of
    several with one position any one stays."""

    effects = "write"
    result_names = ()
    value = operand()
    buffer = operand()
    mask = operand()
    positions = variadic()

    def infer(a: Attrs, value: TileType, buffer: TileType, mask: TileType, positions: tuple[TileType, ...]) -> None:
        _check_mask(mask, value)
        _check_positions(buffer, value, positions)
        _check_element("the value", value, buffer)

    def places(a: Attrs, value: Array, buffer: Array, mask: Array, positions: Arrays) -> tuple[Sequence[Array], Array]:
        return list(positions), mask

    def evaluate(a: Attrs, value: Array, buffer: Array, mask: Array, positions: Arrays) -> None:
        there = mask & inside(buffer, positions)
        buffer[tuple(i[there] for i in positions)] = value[there]


class Atomic(TileOp, name="atomic"):
    """Combines the elements of `value` with those at `positions`, each as one step that nothing comes between, and
    gives what was there before; where the mask is off or a position outside the buffer nothing is done, and the result
    is 0. The order is any. `max` and `min` of integers are signed, `umax` and `umin` not; of floats they and `add`
    alone are there, and `exchange`."""

    effects = "both"
    value = operand()
    buffer = operand()
    mask = operand()
    positions = variadic()
    kind = text(choices=ATOMIC)

    def infer(a: Attrs, value: TileType, buffer: TileType, mask: TileType, positions: tuple[TileType, ...]) -> TileType:
        Scatter.infer(a, value, buffer, mask, positions)
        if is_float(value.dtype) and a.kind not in ("add", "max", "min", "exchange"):
            raise InferError(f"kind {a.kind} does not take {value.dtype}")
        if value.dtype not in ("i32", "i64", "f32", "f64", "f16", "bf16"):
            raise InferError(f"there are no atomic updates of {value.dtype}")
        return value

    def places(a: Attrs, value: Array, buffer: Array, mask: Array, positions: Arrays) -> tuple[Sequence[Array], Array]:
        return list(positions), mask

    def evaluate(a: Attrs, value: Array, buffer: Array, mask: Array, positions: Arrays) -> Array:
        return _updated(buffer, mask, positions, value, lambda old, at: combined(a.kind, old, value[at]))


class CompareSwap(TileOp, name="compare_swap"):
    """Puts the elements of `value` to `positions` where what is there is that of `expected`, each as one step that
    nothing comes between, and gives what was there before; where the mask is off or a position outside the buffer
    nothing is done, and the result is 0. Of integers; the order is any."""

    effects = "both"
    value = operand()
    buffer = operand()
    mask = operand()
    expected = operand()
    positions = variadic()

    def infer(a: Attrs, value: TileType, buffer: TileType, mask: TileType, expected: TileType,
              positions: tuple[TileType, ...]) -> TileType:
        Scatter.infer(a, value, buffer, mask, positions)
        if expected != value:
            raise InferError(f"expected is {expected}, the value {value}")
        if value.dtype not in ("i32", "i64"):
            raise InferError(f"there is no compare and swap of {value.dtype}")
        return value

    def places(a: Attrs, value: Array, buffer: Array, mask: Array, expected: Array, positions: Arrays
               ) -> tuple[Sequence[Array], Array]:
        return list(positions), mask

    def evaluate(a: Attrs, value: Array, buffer: Array, mask: Array, expected: Array, positions: Arrays) -> Array:
        return _updated(buffer, mask, positions, value, lambda old, at: value[at] if old == expected[at] else old)


def _updated(buffer: Array, mask: Array, positions: Arrays, value: Array,
             new: Callable[[Array, tuple[int, ...]], Array]) -> Array:
    """Puts `new` of what is there, and of a place among the positions, to each of them; what was there before."""
    there = mask & inside(buffer, positions)
    old = np.zeros_like(value)
    for at in zip(*np.nonzero(there), strict=True):
        place = tuple(int(i[at]) for i in positions)
        old[at] = buffer[place]
        buffer[place] = new(buffer[place], at)
    return old


def combined(kind: str, old: Array, new: Array) -> Array:
    """What an atomic update leaves."""
    if kind == "exchange":
        return new
    if kind in ("umax", "umin"):
        unsigned = np.dtype(f"u{old.dtype.name}")
        return (np.maximum if kind == "umax" else np.minimum)(old.view(unsigned), new.view(unsigned)).view(old.dtype)
    by = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
          "xor": np.bitwise_xor}[kind]
    with np.errstate(all="ignore"):
        return by(old, new)


def _check_mask(mask: TileType, like: TileType | None = None) -> None:
    if mask.dtype != "i1" or (like is not None and mask.shape != like.shape):
        raise InferError(f"the mask is {mask}, not i1{list(like.shape) if like is not None else ''}")
