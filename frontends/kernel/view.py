"""Arrays that a kernel is given: blocks are read from them and written to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error, no_attribute
from xcc.frontends.kernel.shapes import shape_of
from xcc.frontends.kernel.tile import Tile, as_tile, convert, stretch
from xcc.frontends.kernel.types import NUMBER_INT, DType, TileType, broadcast_shapes, promote

__all__ = ["ATOMICS", "View"]

ATOMICS = ("add", "max", "min", "and", "or", "xor", "exchange")


class View:
    """An argument of a kernel: an array of any strides, in which blocks lie at offsets of elements."""

    def __init__(self, name: str, dtype: DType, rank: int, data: Any) -> None:
        self.name, self.dtype, self.ndim, self.data = name, dtype, rank, data

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype} array of {self.ndim} dims"

    @property
    def shape(self) -> tuple[Tile, ...]:
        """Its sizes, known when the kernel runs."""
        return tuple(Tile(NUMBER_INT, machine().size(self, i)) for i in range(self.ndim))

    def tile(self, offsets: object, shape: int | Sequence[int], other: object = None, mask: object = None) -> Tile:
        """The block of `shape` that begins at `offsets`.

        Elements outside the array, or where `mask` does not hold, are `other`. Without it all of the block lies in the
        array: reading outside is an error that ``XCC_KERNEL=check`` finds.
        """
        kind = TileType(self.dtype, shape_of(shape))
        places = self._offsets(offsets)
        if len(kind.shape) != self.ndim:
            raise error(f"{self!r} takes a block of {self.ndim} dims, not of {list(kind.shape)}")
        return Tile(kind, machine().load(self, kind, places, self._other(other, mask), self._mask(mask, kind)))

    def store(self, offsets: object, value: object, mask: object = None) -> None:
        """Writes the tile `value` to the block at `offsets`; what lies outside the array, or where `mask` does not
        hold, is left out."""
        places, x = self._offsets(offsets), self._value(value)
        if x.ndim == 0:
            x = stretch(x, (1,) * self.ndim)
        if x.ndim != self.ndim:
            raise error(f"{self!r} takes tiles of {self.ndim} dims, not {x.type}; t[:, None] adds a dim of one")
        machine().store(self, places, x, self._mask(mask, x.type))

    def gather(self, indices: object, other: object = None, mask: object = None) -> Tile:
        """The elements at `indices`, one tile of integers for each dim, which broadcast.

        An index outside the array, or where `mask` does not hold, gives `other`; without it there may be none.
        """
        places, shape = self._indices(indices, mask)
        kind = TileType(self.dtype, shape)
        return Tile(kind, machine().gather(self, kind, places, self._other(other, mask), self._mask(mask, kind)))

    def scatter(self, indices: object, value: object, mask: object = None) -> None:
        """Writes the elements of `value` to `indices`; an index outside the array is left out. No two may be alike."""
        places, x = self._scattered(indices, value, mask)
        machine().scatter(self, places, x, self._mask(mask, x.type))

    def atomic(self, kind: str, indices: object, value: object, mask: object = None) -> Tile:
        """Combines the elements at `indices` with those of `value`, also where instances meet: `kind` is "add", "max",
        "min", "and", "or", "xor" or "exchange". What was there before; 0 where nothing is done."""
        if kind not in ATOMICS:
            raise error(f"there is no atomic '{kind}': give one of {', '.join(ATOMICS)}, by which locks are taken, too")
        if kind in ("and", "or", "xor") and not self.dtype.is_integer:
            raise error(f"atomic {kind} is for integers, not for {self!r}")
        places, x = self._scattered(indices, value, mask)
        return Tile(x.type, machine().atomic(kind, self, places, x, self._mask(mask, x.type)))

    def atomic_add(self, indices: object, value: object, mask: object = None) -> Tile:
        """Adds the elements of `value` to those at `indices`; each is added, however many are alike."""
        return self.atomic("add", indices, value, mask)

    def atomic_max(self, indices: object, value: object, mask: object = None) -> Tile:
        """Puts the larger of the elements of `value` and what is there to `indices`."""
        return self.atomic("max", indices, value, mask)

    def atomic_min(self, indices: object, value: object, mask: object = None) -> Tile:
        """Puts the smaller of the elements of `value` and what is there to `indices`."""
        return self.atomic("min", indices, value, mask)

    def compare_swap(self, indices: object, expected: object, value: object, mask: object = None) -> Tile:
        """Puts the elements of `value` to `indices` where `expected` is there, each with nothing between. What was
        there before: `expected` where it was put; 0 where nothing is done."""
        if not self.dtype.is_integer or self.dtype.bits < 32:
            raise error(f"compare_swap is for integers of 32 and 64 bits, not for {self!r}: t.bitcast(xcc.i32) makes "
                        "such of floats")
        want = self._value(expected)
        places, x = self._scattered(indices, value, mask, want)
        want = stretch(want, x.shape)
        return Tile(x.type, machine().compare_swap(self, places, want, x, self._mask(mask, x.type)))

    def no_value(self, *_others: object) -> NoReturn:
        """Raises the error of an array that stands where a tile or a number is wanted."""
        raise error(f"{self!r} is no tile: read a tile of it with .tile(offsets, shape)")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = no_value
    __lt__ = __le__ = __gt__ = __ge__ = no_value

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(repr(self), name, "arrays have .tile, .store, .gather, .scatter, the atomic ones, "
                           ".compare_swap, .shape, .dtype and .ndim")

    def __len__(self) -> int:
        raise error(f"how many elements {self!r} has is known when the kernel runs: use .shape[0]")

    def __getitem__(self, at: object) -> NoReturn:
        raise error(f"{self!r} is read with .tile(offsets, shape) or .gather(indices)")

    def __setitem__(self, at: object, value: object) -> None:
        raise error(f"{self!r} is written with .store(offsets, tile) or .scatter(indices, tile)")

    def _offsets(self, offsets: object) -> list[Tile]:
        given = offsets if isinstance(offsets, (tuple, list)) else (offsets,)
        if len(given) != self.ndim:
            raise error(f"{self!r} takes {self.ndim} offsets, not {len(given)}")
        found = [as_tile(o) for o in given]
        for o in found:
            if o.ndim or not o.dtype.is_integer:
                raise error(f"an offset is an integer, not {o.type}: .gather() and .scatter() take tiles of indices")
        return [convert(o, NUMBER_INT.dtype) for o in found]

    def _indices(self, indices: object, *also: object) -> tuple[list[Tile], tuple[int, ...]]:
        """A tile a dim, of one shape, to which that of `also` fits."""
        given: Sequence[object] = indices if isinstance(indices, (tuple, list)) else (indices,)
        if len(given) != self.ndim:
            raise error(f"{self!r} takes {self.ndim} tiles of indices, not {len(given)}")
        found = [as_tile(i) for i in given]
        shape: tuple[int, ...] | None = ()
        for i, t in enumerate((*found, *(as_tile(a) for a in also if a is not None))):
            if i < len(found) and not t.dtype.is_integer:
                raise error(f"indices are integers, not {t.type}")
            shape = broadcast_shapes(shape, t.shape) if shape is not None else None
        if shape is None:
            shapes = ", ".join(str(list(t.shape)) for t in found)
            raise error(f"the shapes of the indices {shapes} and of what goes with them do not broadcast")
        return [stretch(convert(t, NUMBER_INT.dtype), shape) for t in found], shape

    def _scattered(self, indices: object, value: object, *also: object) -> tuple[list[Tile], Tile]:
        x = self._value(value)
        places, shape = self._indices(indices, x, *also)
        return places, stretch(x, shape)

    def _value(self, value: object) -> Tile:
        """What is to be written, in the array's type."""
        x = as_tile(value)
        if self.dtype.kind == "bool" and x.constant in (0, 1) and x.type.weak:
            raise error(f"{self!r} cannot hold the number {x.constant}: give {bool(x.constant)}")
        if promote(x.type, TileType(self.dtype)) is None and x.dtype != self.dtype:
            raise error(f"{self!r} cannot hold {x.type}: convert it with .to(xcc.{self.dtype})")
        if x.dtype.is_float and not self.dtype.is_float:
            raise error(f"{self!r} cannot hold the fractions of {x.type}: convert it with .to(xcc.{self.dtype})")
        return convert(x, self.dtype)

    def _other(self, other: object, mask: object) -> Tile | None:
        if other is None:
            if mask is not None:
                raise error("a mask needs `other`, the value of what is not read")
            return None
        x = as_tile(other)
        if x.ndim:
            raise error(f"`other` is a scalar, not {x.type}")
        return self._value(x)

    def _mask(self, mask: object, kind: TileType) -> Tile | None:
        if mask is None:
            return None
        m = as_tile(mask)
        if m.dtype.kind != "bool" or broadcast_shapes(m.shape, kind.shape) != kind.shape:
            raise error(f"the mask is {m.type}: for a block of {list(kind.shape)} it is bools that broadcast to that")
        return stretch(m, kind.shape)
