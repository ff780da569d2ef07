"""Kernels in numpy, one instance after the other: what each operation means, and ``XCC_KERNEL=eager``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf as exact_erf
from typing import Any

import numpy as np

from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile
from xcc.frontends.kernel.types import Number, TileType
from xcc.frontends.kernel.view import View

__all__ = ["NumpyMachine"]

Array = np.ndarray[Any, Any]

_UFUNCS: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift,
    "shr": np.right_shift, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal, "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative,
    "abs": np.abs, "where": np.where, "pow": np.power}
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "expm1": np.expm1, "log1p": np.log1p, "floor": np.floor,
    "ceil": np.ceil, "roundeven": np.rint,
    "erf": np.vectorize(exact_erf, otypes=[np.float64])}
_REDUCTIONS: dict[str, np.ufunc] = {"max": np.maximum, "min": np.minimum, "sum": np.add, "prod": np.multiply,
                               "any": np.logical_or, "all": np.logical_and}
_ATOMICS: dict[str, np.ufunc] = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
                            "or": np.bitwise_or, "xor": np.bitwise_xor}


class NumpyMachine:
    """Runs one instance of a kernel. The data of tiles and views are arrays, those of scalars of rank 0."""

    concrete = True

    def __init__(self, instance: tuple[int, ...], grid: tuple[int, ...]) -> None:
        self._instance, self._grid = (*instance, 0, 0), (*grid, 1, 1)

    def constant(self, value: Number, result: TileType) -> Array:
        return np.asarray(value, result.dtype.numpy)

    def op(self, name: str, result: TileType, *operands: Tile, **attributes: Any) -> Array:
        data = [t.data for t in operands]
        with np.errstate(all="ignore"):
            if name in _UFUNCS:
                made = _UFUNCS[name](*data)
            elif name in _FUNCTIONS:
                made = _FUNCTIONS[name](_wide(data[0]))
            else:
                made = getattr(self, f"_{name}")(result, *data, **attributes)
            return np.asarray(made).astype(result.dtype.numpy, copy=False)

    def program(self, name: str, axis: int) -> Array:
        return np.asarray((self._instance if name == "id" else self._grid)[axis], np.int64)

    def size(self, view: View, axis: int) -> Array:
        return np.asarray(view.data.shape[axis], np.int64)

    def load(self, view: View, result: TileType, offsets: Sequence[Tile],
             other: Tile | None, mask: Tile | None) -> Array:
        begin = [int(o.data) for o in offsets]
        inside, there = _overlap(begin, result.shape, view.data.shape)
        if other is None:
            if [s.stop - s.start for s in there] != list(result.shape):
                raise error(f"{_block(begin, result.shape)} is not all inside '{view.name}' of shape "
                            f"{list(view.data.shape)}: give `other` for what is outside")
            return view.data[inside].copy()
        block = np.full(result.shape, other.data, result.dtype.numpy)
        block[there] = view.data[inside]
        return block if mask is None else np.where(mask.data, block, other.data)

    def store(self, view: View, offsets: Sequence[Tile], value: Tile, mask: Tile | None) -> None:
        inside, there = _overlap([int(o.data) for o in offsets], value.shape, view.data.shape)
        target, block = _writable(view)[inside], value.data[there]
        target[...] = block if mask is None else np.where(mask.data[there], block, target)

    def gather(self, view: View, result: TileType, indices: Sequence[Tile],
               other: Tile | None, mask: Tile | None) -> Array:
        at = [i.data for i in indices]
        valid = self._valid(view, at, result.shape, mask)
        safe = tuple(np.where(valid, i, 0) for i in at)
        if other is None:
            if not valid.all():
                raise error(f"{_outside(view, at, valid)}: give `other` for what is outside")
            return view.data[safe]
        return np.where(valid, view.data[safe], other.data) if view.data.size else np.full(result.shape, other.data)

    def scatter(self, view: View, indices: Sequence[Tile], value: Tile, mask: Tile | None) -> None:
        at = [i.data for i in indices]
        valid = self._valid(view, at, value.shape, mask)
        _writable(view)[tuple(i[valid] for i in at)] = value.data[valid]

    def atomic(self, kind: str, view: View, indices: Sequence[Tile], value: Tile, mask: Tile | None) -> Array:
        def new(old: Array, place: tuple[int, ...]) -> Array:
            given: Array = value.data[place]
            return given if kind == "exchange" else np.asarray(_ATOMICS[kind](old, given))

        return self._update(view, [i.data for i in indices], value, mask, new)

    def compare_swap(self, view: View, indices: Sequence[Tile], expected: Tile, value: Tile,
                     mask: Tile | None) -> Array:
        return self._update(view, [i.data for i in indices], value, mask,
                            lambda old, place: value.data[place] if old == expected.data[place] else old)

    def _update(self, view: View, at: Sequence[Array], like: Tile, mask: Tile | None,
                new: Callable[[Array, tuple[int, ...]], Array]) -> Array:
        valid = self._valid(view, at, like.shape, mask)
        target, old = _writable(view), np.zeros(like.shape, like.dtype.numpy)
        for place in zip(*np.nonzero(valid), strict=True) if like.shape else [()] * int(valid):
            where = tuple(int(i[place]) for i in at)
            old[place] = target[where]
            target[where] = new(target[where], place)
        return old

    def combine(self, name: str, tiles: Sequence[Tile], axis: int, step: Callable[..., Sequence[Tile]],
                reverse: bool) -> Sequence[Array]:
        kinds = [t.type.shaped(t.shape[:axis] + t.shape[axis + 1:]) for t in tiles]
        parts: list[Sequence[Tile]] = [[Tile(k, np.take(t.data, i, axis)) for k, t in zip(kinds, tiles, strict=True)]
                                      for i in range(tiles[0].shape[axis])]
        if name == "reduce":
            while len(parts) > 1:
                parts = [step(*a, *b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            return [t.data for t in parts[0]]
        parts = parts[::-1] if reverse else parts
        for i in range(1, len(parts)):
            parts[i] = step(*parts[i - 1], *parts[i])
        parts = parts[::-1] if reverse else parts
        return [np.stack([p[n].data for p in parts], axis) for n in range(len(tiles))]

    def several(self, name: str, kinds: Sequence[TileType], x: Tile, descending: bool = False,
                keep: int = 0) -> Sequence[Array]:
        if name == "split":
            return [x.data[..., 0], x.data[..., 1]]
        return _ordered(x.data, descending, keep)

    def check(self, condition: Tile, message: str) -> None:
        if not condition.data.all():
            raise error(f"the assertion does not hold in {self._name()}{message and ': '}{message}")

    def show(self, label: str, tile: Tile) -> None:
        import sys

        sys.stdout.write(f"{self._name()}: {label} {tile!r}\n")

    def _name(self) -> str:
        return f"instance {list(self._instance[:max(1, len(self._instance) - 2)])}"

    @staticmethod
    def _valid(view: View, at: Sequence[Array], shape: tuple[int, ...], mask: Tile | None) -> Array:
        """Where the indices are inside the view and the mask holds."""
        valid = np.ones(shape, np.bool_) if mask is None else mask.data.copy()
        for i, n in zip(at, view.data.shape, strict=True):
            valid &= (i >= 0) & (i < n)
        return valid

    @staticmethod
    def _convert(result: TileType, x: Array) -> Array:
        if result.dtype.kind == "bool":
            return x != 0
        return np.trunc(_wide(x)) if x.dtype.kind not in "iub" and result.dtype.is_integer else x

    @staticmethod
    def _bitcast(result: TileType, x: Array) -> Array:
        return x.view(result.dtype.numpy)

    @staticmethod
    def _broadcast(result: TileType, x: Array) -> Array:
        return np.broadcast_to(x, result.shape)

    @staticmethod
    def _reshape(result: TileType, x: Array) -> Array:
        return x.reshape(result.shape)

    @staticmethod
    def _transpose(_result: TileType, x: Array, order: tuple[int, ...]) -> Array:
        return x.transpose(order)

    @staticmethod
    def _arange(result: TileType, start: int) -> Array:
        return np.arange(start, start + result.shape[0])

    @staticmethod
    def _reduce(result: TileType, x: Array, kind: str, axes: tuple[int, ...], keepdims: bool) -> Array:
        return _REDUCTIONS[kind].reduce(_wide(x), axis=axes, keepdims=keepdims, dtype=_sum_type(result, kind))

    @staticmethod
    def _scan(result: TileType, x: Array, kind: str, axis: int, reverse: bool) -> Array:
        x = _wide(x)
        x = np.flip(x, axis) if reverse else x
        done = _REDUCTIONS[kind].accumulate(x, axis=axis, dtype=_sum_type(result, kind))
        return np.flip(done, axis) if reverse else done

    @staticmethod
    def _argmax(_result: TileType, x: Array, axis: int) -> Array:
        return np.argmax(x, axis)

    @staticmethod
    def _argmin(_result: TileType, x: Array, axis: int) -> Array:
        return np.argmin(x, axis)

    @staticmethod
    def _sort(_result: TileType, x: Array, descending: bool) -> Array:
        return np.flip(np.sort(x, -1), -1) if descending else np.sort(x, -1)

    @staticmethod
    def _join(_result: TileType, a: Array, b: Array) -> Array:
        return np.stack([a, b], -1)

    @staticmethod
    def _dot(result: TileType, a: Array, b: Array, acc: Array | None = None) -> Array:
        product = np.matmul(a.astype(result.dtype.numpy), b.astype(result.dtype.numpy))
        return product if acc is None else product + acc


def _ordered(x: Array, descending: bool, keep: int) -> Sequence[Array]:
    """The first `keep` elements along the last dim in their order, and their places: of those that are alike the first
    one first, NaN last, first with `descending`."""
    if descending:
        places = x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), axis=-1, kind="stable"), -1)
    else:
        places = np.argsort(x, axis=-1, kind="stable")
    places = places[..., :keep]
    return [np.take_along_axis(x, places, -1), places.astype(np.int32)]


def _wide(x: Array) -> Array:
    """Narrow floats as f32, in which functions and sums are computed."""
    return x.astype(np.float32) if x.dtype.kind not in "iub" and x.dtype.itemsize < 4 else x


def _sum_type(result: TileType, kind: str) -> np.dtype[Any] | None:
    """The type in which sums are kept: numpy would widen integers."""
    return result.dtype.numpy if kind in ("sum", "prod") and result.dtype.is_integer else None


def _overlap(begin: Sequence[int], shape: Sequence[int], sizes: Sequence[int],
             ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """What of the block lies in the array: as slices of the array, and of the block."""
    first = [min(max(b, 0), n) for b, n in zip(begin, sizes, strict=True)]
    last = [max(f, min(b + s, n)) for f, b, s, n in zip(first, begin, shape, sizes, strict=True)]
    inside = tuple(slice(f, e) for f, e in zip(first, last, strict=True))
    return inside, tuple(slice(f - b, e - b) if e > f else slice(0, 0)
                         for f, e, b in zip(first, last, begin, strict=True))


def _block(begin: Sequence[int], shape: Sequence[int]) -> str:
    return f"the block [{', '.join(f'{b}:{b + n}' for b, n in zip(begin, shape, strict=True))}]"


def _outside(view: View, at: Sequence[Array], valid: Array) -> str:
    place = tuple(np.argwhere(~valid)[0])
    return f"the index {[int(i[place]) for i in at]} is outside '{view.name}' of shape {list(view.data.shape)}"


def _writable(view: View) -> Array:
    if not view.data.flags.writeable:
        raise error(f"'{view.name}' is an array that is not to be written to: give a copy")
    return view.data
