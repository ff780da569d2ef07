"""Buffers of a tile program, and what reads and writes them: functions of :mod:`xcc.tile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import arith_d, ir
from xcc.dialects.tile.types import TileType, is_float
from xcc.tile.functions import arange, full
from xcc.tile.places import place
from xcc.tile.values import Value, as_value, broadcast, common, complain, convert, emit, index_of

__all__ = ["Buffer", "atomic", "compare_swap", "gather", "load", "scatter", "store"]

Mask = Value | bool | None


class Buffer:
    """Memory that a program is given, or a view of it. `dtype` as of a Value, `shape` are its sizes in a run, numbers
    where they are known and else index scalars."""

    def __init__(self, value: Any, dtype: str = "", name: str = "") -> None:
        self.ir, self.name = value, name
        self.type = TileType.of(value)
        self.dtype = dtype or self.type.dtype

    @property
    def rank(self) -> int:
        return self.type.rank

    ndim = rank

    @property
    def shape(self) -> tuple[int | Value, ...]:
        return tuple(self.size(d) for d in range(self.rank))

    def size(self, axis: int) -> int | Value:
        """The size along `axis`."""
        known = self.type.shape[axis]
        if known >= 0:
            return known
        with place():
            at = arith_d.constant(ir.IndexType.get(), axis % self.rank)
            return Value(ir.Operation.create("memref.dim", results=[ir.IndexType.get()], operands=[self.ir, at]).result)

    def view(self, offsets: Sequence[int | Value], sizes: Sequence[int | Value],
             order: Sequence[int] | None = None) -> Buffer:
        """The window of `sizes` from `offsets` on, its dims in `order`."""
        bounds = [index_of(v) for v in (*offsets, *sizes)]
        return Buffer(emit("view", self.ir, *bounds, order=None if order is None else tuple(order)), self.dtype)

    def transpose(self, *order: int) -> Buffer:
        """The buffer with its dims in another order (reversed where none is given)."""
        return self.view([0] * self.rank, self.shape, order or tuple(reversed(range(self.rank))))

    def tile(self, offsets: Sequence[int | Value], shape: Sequence[int], other: float | Value | None = None,
             mask: Mask = None) -> Value:
        """`load`."""
        return load(self, offsets, shape, other, mask)

    def store(self, offsets: Sequence[int | Value], value: Value, mask: Mask = None) -> None:
        """`store`."""
        store(self, offsets, value, mask)

    def gather(self, *positions: int | Value, mask: Mask = None, other: float | Value | None = None) -> Value:
        """`gather`."""
        return gather(self, *positions, mask=mask, other=other)

    def scatter(self, *positions: int | Value, value: float | Value, mask: Mask = None) -> None:
        """`scatter`."""
        scatter(self, *positions, value=value, mask=mask)

    def atomic(self, kind: str, *positions: int | Value, value: float | Value, mask: Mask = None) -> Value:
        """`atomic`."""
        return atomic(self, kind, *positions, value=value, mask=mask)

    def compare_swap(self, *positions: int | Value, expected: float | Value, value: float | Value,
                     mask: Mask = None) -> Value:
        """`compare_swap`."""
        return compare_swap(self, *positions, expected=expected, value=value, mask=mask)

    def __repr__(self) -> str:
        return f"<{self.type}>"


def load(buffer: Buffer, offsets: Sequence[int | Value], shape: Sequence[int], other: float | Value | None = None,
         mask: Mask = None) -> Value:
    """The tile of `shape` from `offsets` on, an offset and a size for each dim of the buffer. What is outside the
    buffer, or where the `mask` is off, reads `other`. Without `other` the program says that nothing is outside: it
    reads 0 where that is wrong, and a checking run reports it."""
    if mask is not None:
        return gather(buffer, *_places(offsets, shape), mask=mask, other=0 if other is None else other)
    return Value(emit("load", buffer.ir, _other(buffer, other), *map(index_of, offsets), shape=tuple(shape),
                      inside=other is None), buffer.dtype)


def store(buffer: Buffer, offsets: Sequence[int | Value], value: Value, mask: Mask = None) -> None:
    """Writes a tile from `offsets` on, where that is inside the buffer and the `mask` on. A scalar, or a tile of fewer
    dims, gets dims of size 1 in front; the value takes the buffer's dtype."""
    v = convert(as_value(value, buffer.dtype), buffer.dtype)
    shape = (1,) * (buffer.rank - v.rank) + v.shape
    v = broadcast(v, shape) if not v.shape else v.reshape(shape)
    if mask is None:
        emit("store", v.ir, buffer.ir, *map(index_of, offsets))
        return
    m = as_value(mask, "i1", shape)
    scatter(buffer, *_places(offsets, shape), value=v, mask=m.reshape((1,) * (len(shape) - m.rank) + m.shape))


def gather(buffer: Buffer, *positions: int | Value, mask: Mask = None, other: float | Value | None = None) -> Value:
    """The elements at `positions`, integers for each dim of the buffer, which stretch to each other and to the mask.
    Where the mask is off or a position outside the buffer it is `other`. Without `other` the program says that none
    is outside where the mask is on."""
    m, places, shape = _masked(mask, positions)
    return Value(emit("gather", buffer.ir, _other(buffer, other), m.ir, *(p.ir for p in places), inside=other is None),
                 buffer.dtype).reshape(shape)


def scatter(buffer: Buffer, *positions: int | Value, value: float | Value, mask: Mask = None) -> None:
    """Writes `value`, stretched to the positions, to them where the mask is on and they are inside the buffer."""
    m, places, _ = _masked(mask, positions, value)
    emit("scatter", _fitting(value, buffer, m), buffer.ir, m.ir, *(p.ir for p in places))


def atomic(buffer: Buffer, kind: str, *positions: int | Value, value: float | Value, mask: Mask = None) -> Value:
    """Combines `value` with the elements at `positions` (scalars will do), nothing between; what was there before.
    `kind` is add, max, min, and, or, xor or exchange."""
    m, places, shape = _masked(mask, positions, value)
    kind = f"u{kind}" if buffer.dtype[0] == "u" and kind in ("max", "min") else kind
    return Value(emit("atomic", _fitting(value, buffer, m), buffer.ir, m.ir, *(p.ir for p in places), kind=kind),
                 buffer.dtype).reshape(shape)


def compare_swap(buffer: Buffer, *positions: int | Value, expected: float | Value, value: float | Value,
                 mask: Mask = None) -> Value:
    """Puts `value` to the positions (scalars will do) where what is there is `expected`, nothing between; what was
    there before."""
    m, places, shape = _masked(mask, positions, value, expected)
    return Value(emit("compare_swap", _fitting(value, buffer, m), buffer.ir, m.ir, _fitting(expected, buffer, m),
                      *(p.ir for p in places)), buffer.dtype).reshape(shape)


def _places(offsets: Sequence[int | Value], shape: Sequence[int]) -> list[Value]:
    """The position of each element of a block, a tile a dim."""
    return [arange(n, "index").reshape((1,) * d + (n,) + (1,) * (len(shape) - d - 1)) + o
            for d, (n, o) in enumerate(zip(shape, offsets, strict=True))]


def _other(buffer: Buffer, other: float | Value | None) -> Any:
    if not isinstance(buffer, Buffer):
        raise complain(f"{buffer!r} is no buffer")
    v = convert(as_value(0 if other is None else other, buffer.dtype), buffer.dtype)
    if v.shape:
        raise complain(f"other is {v!r}, not a number")
    return v.ir


def _fitting(value: float | Value, buffer: Buffer, mask: Value) -> Any:
    return broadcast(convert(as_value(value, buffer.dtype), buffer.dtype), mask.shape).ir


def _masked(mask: Mask, positions: Sequence[int | Value], *values: float | Value) -> tuple[
        Value, list[Value], tuple[int, ...]]:
    """The mask and the positions, all of one shape, and that which the result is to have: scalars are tiles of 1."""
    places = [as_value(p, "index") for p in positions]
    for p in places:
        if is_float(p.dtype) or p.dtype == "i1":
            raise complain(f"{p!r} is no position")
    m = as_value(True if mask is None else mask)
    if m.dtype != "i1":
        raise complain(f"the mask is {m!r}, not i1")
    shape: tuple[int, ...] = ()
    for v in (*places, m, *(as_value(v) for v in values if not isinstance(v, (bool, int, float)))):
        shape = common(full(shape, 0) if shape else v, full(v.shape, 0) if v.shape else v)[0].shape \
            if shape and v.shape else shape or v.shape
    return broadcast(m, shape or (1,)), [broadcast(p, shape or (1,)) for p in places], shape
