"""Makes a tile program of a kernel: its operations become those of :mod:`xcc.tile`, each at its place in the source.

Integers of 64 bits are of MLIR's type index, as sizes and offsets are, but where they come from memory or go there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from xcc import tile
from xcc.diagnostics import UserError
from xcc.frontends.kernel.arguments import called
from xcc.frontends.kernel.callees import traced
from xcc.frontends.kernel.elsewhere import STUMBLES, located
from xcc.frontends.kernel.machine import no_result, running_on
from xcc.frontends.kernel.place import error, here
from xcc.frontends.kernel.tile import Tile
from xcc.frontends.kernel.types import DTYPES, NUMBER_FLOAT, NUMBER_INT, Number, TileType
from xcc.frontends.kernel.view import View
from xcc.tile import Value

__all__ = ["TraceMachine", "trace"]

_OPERATORS: dict[str, Callable[..., Value]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": operator.lshift, "shr": operator.rshift, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "maximum": tile.maximum, "minimum": tile.minimum,
    "where": tile.where, "neg": operator.neg, "abs": tile.abs}
_FUNCTIONS = {name: getattr(tile, name) for name in
              ("acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor", "log", "log1p",
               "log2", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh")}
_NARROW = ("f16", "bf16", "f8E4M3FN", "f8E5M2")


def trace(function: Callable[..., Any], name: str, given: Mapping[str, Any], parameters: Mapping[str, Any],
          grid: Sequence[str] = ("grid_0", "grid_1", "grid_2"), numbers: Sequence[str] = (),
          config: Mapping[str, int] | None = None, small: bool = False) -> tile.Program:
    """The program of `function`: `given` has its constants, `parameters` what the others are (BufferOf, ScalarOf).

    `numbers` are parameters that the function has as numbers, and the program as buffers of one element. `config` is
    what the strategy is not to choose.
    """

    def body(*handles: Value | tile.Buffer) -> None:
        values = {p: _argument(p, h) for p, h in zip(parameters, handles, strict=True)}
        with running_on(TraceMachine()):
            for p in numbers:
                values[p] = _number(values[p].tile(0, 1).reshape(()).data)
            try:
                no_result(function, called(function, traced(function), {**given, **values}))
            except STUMBLES as e:
                found = None if isinstance(e, UserError) else located(e)
                raise found or e from None

    return tile.build(name, parameters, body, grid, config, small)


def _argument(name: str, handle: Value | tile.Buffer) -> View | Tile:
    """What the function gets for a parameter: numbers of Python's are weak, as in the eager mode."""
    if isinstance(handle, tile.Buffer):
        return View(name, DTYPES[handle.dtype], handle.rank, handle)
    return _number(handle)


def _number(handle: Value) -> Tile:
    weak = {"i64": NUMBER_INT, "f64": NUMBER_FLOAT}.get(handle.dtype)
    if weak is NUMBER_INT:
        handle = tile.convert(handle, "index")
    return Tile(weak or TileType(DTYPES[handle.dtype]), handle)


def _needed(x: Tile) -> Value:
    """The value of a tile; what only ran for its types has none."""
    if x.data is None:
        raise error("this was made in a loop or branch of the program, and cannot be used behind it: assign it to a "
                    "variable")
    return x.data


def _stored(x: Tile) -> Value:
    """The value as it lies in memory."""
    return tile.convert(_needed(x), x.dtype.name)


def _wide(x: Value) -> Value:
    return tile.convert(x, "f32") if x.dtype in _NARROW else x


class TraceMachine:
    """Builds at MLIR's current insertion point. The data of tiles are values of the builder, those of views buffers."""

    concrete = False

    def constant(self, value: Number, result: TileType) -> Value:
        with self._here():
            return tile.constant(value, _held(result))

    def op(self, name: str, result: TileType, *operands: Tile, **attributes: Any) -> Value:
        data = [_needed(t) for t in operands]
        with self._here():
            if name == "pow":
                return tile.convert(tile.power(*map(_wide, data)), result.dtype.name)
            if name in _OPERATORS:
                return _OPERATORS[name](*data)
            if name in _FUNCTIONS:
                return tile.convert(_FUNCTIONS[name](_wide(data[0])), result.dtype.name)
            made = getattr(self, f"_{name}")(result, *(_stored(t) for t in operands) if name in _IN_MEMORY else data,
                                             **attributes)
            return made

    def program(self, name: str, axis: int) -> Value:
        with self._here():
            return (tile.program_id if name == "id" else tile.num_programs)(axis)

    def size(self, view: View, axis: int) -> Value:
        with self._here():
            size = view.data.size(axis)
            return tile.constant(size, "index") if isinstance(size, int) else size

    def load(self, view: View, result: TileType, offsets: Sequence[Tile],
             other: Tile | None, mask: Tile | None) -> Value:
        with self._here():
            return tile.load(view.data, self._places(offsets), result.shape, None if other is None else _stored(other),
                             None if mask is None else _needed(mask))

    def store(self, view: View, offsets: Sequence[Tile], value: Tile, mask: Tile | None) -> None:
        with self._here():
            tile.store(view.data, self._places(offsets), _stored(value), None if mask is None else _needed(mask))

    def gather(self, view: View, result: TileType, indices: Sequence[Tile],
               other: Tile | None, mask: Tile | None) -> Value:
        with self._here():
            return tile.gather(view.data, *self._places(indices), mask=None if mask is None else _needed(mask),
                               other=None if other is None else _stored(other))

    def scatter(self, view: View, indices: Sequence[Tile], value: Tile, mask: Tile | None) -> None:
        with self._here():
            tile.scatter(view.data, *self._places(indices), value=_stored(value),
                         mask=None if mask is None else _needed(mask))

    def atomic(self, kind: str, view: View, indices: Sequence[Tile], value: Tile, mask: Tile | None) -> Value:
        with self._here():
            return tile.atomic(view.data, kind, *self._places(indices), value=_stored(value),
                               mask=None if mask is None else _needed(mask))

    def compare_swap(self, view: View, indices: Sequence[Tile], expected: Tile, value: Tile,
                     mask: Tile | None) -> Value:
        with self._here():
            return tile.compare_swap(view.data, *self._places(indices), expected=_stored(expected),
                                     value=_stored(value), mask=None if mask is None else _needed(mask))

    def combine(self, name: str, tiles: Sequence[Tile], axis: int, step: Callable[..., Sequence[Tile]],
                reverse: bool) -> Sequence[Value]:
        kinds = [TileType(t.dtype) for t in (*tiles, *tiles)]

        def combine(*sides: Value) -> list[Value]:
            made = traced(step)(*(Tile(k, s) for k, s in zip(kinds, sides, strict=True)))
            return [_stored(t) for t in made]

        with self._here():
            given = [_stored(t) for t in tiles]
            return tile.reduce(given, axis, combine) if name == "reduce" else tile.scan(given, axis, combine, reverse)

    def several(self, name: str, kinds: Sequence[TileType], x: Tile, descending: bool = False,
                keep: int = 0) -> Sequence[Value]:
        with self._here():
            return tile.split(_needed(x)) if name == "split" else tile.order(_stored(x), descending, keep)

    def check(self, condition: Tile, message: str) -> None:
        with self._here():
            tile.assert_(_needed(condition), message)

    def show(self, label: str, shown: Tile) -> None:
        with self._here():
            tile.print_(_stored(shown), prefix=label)

    def branch(self, condition: Tile, types: Sequence[TileType], then: Callable[[], Sequence[Tile]],
               orelse: Callable[[], Sequence[Tile]]) -> Sequence[Value]:
        with self._here():
            return tile.if_(_needed(condition), lambda: self._carried(then()), lambda: self._carried(orelse()))

    def loop(self, start: Tile, stop: Tile, step: Tile, entries: Sequence[Tile],
             body: Callable[[Value, Sequence[Value]], Sequence[Tile]]) -> Sequence[Value]:
        with self._here():
            low, high, by = self._places((start, stop, step))
            return tile.for_(low, high, by, self._carried(entries),
                             lambda i, *carried: self._carried(body(i, carried)))

    def repeat(self, entries: Sequence[Tile], test: Callable[[Sequence[Value]], Tile],
               body: Callable[[Sequence[Value]], Sequence[Tile]]) -> Sequence[Value]:
        with self._here():
            return tile.while_(self._carried(entries), lambda *carried: _needed(test(carried)),
                               lambda *carried: self._carried(body(carried)))

    @staticmethod
    def _here() -> AbstractContextManager[None]:
        place = here()
        return tile.located(place.file, place.line, place.column)

    @staticmethod
    def _places(offsets: Sequence[Tile]) -> list[Value]:
        return [tile.convert(_needed(o), "index") for o in offsets]

    @staticmethod
    def _carried(tiles: Sequence[Tile]) -> list[Value]:
        return [tile.convert(_needed(t), _held(t.type)) for t in tiles]

    @staticmethod
    def _convert(result: TileType, x: Value) -> Value:
        return tile.convert(x, _held(result))

    @staticmethod
    def _bitcast(result: TileType, x: Value) -> Value:
        return tile.bitcast(x, result.dtype.name)

    @staticmethod
    def _broadcast(result: TileType, x: Value) -> Value:
        return tile.broadcast_to(x, result.shape)

    @staticmethod
    def _reshape(result: TileType, x: Value) -> Value:
        return x.reshape(result.shape)

    @staticmethod
    def _transpose(_result: TileType, x: Value, order: tuple[int, ...]) -> Value:
        return tile.transpose(x, *order)

    @staticmethod
    def _arange(result: TileType, start: int) -> Value:
        x = tile.arange(result.shape[0], _held(result))
        return x + start if start else x

    @staticmethod
    def _reduce(result: TileType, x: Value, kind: str, axes: tuple[int, ...], keepdims: bool) -> Value:
        made = getattr(tile, kind)(_wide(x) if kind in ("sum", "prod") else x, axes, keepdims)
        return tile.convert(made, result.dtype.name)

    @staticmethod
    def _scan(result: TileType, x: Value, kind: str, axis: int, reverse: bool) -> Value:
        x = x if kind == "max" else _wide(x)
        made = {"sum": tile.cumsum, "prod": tile.cumprod, "max": tile.cummax}[kind](x, axis, reverse)
        return tile.convert(made, result.dtype.name)

    @staticmethod
    def _argmax(_result: TileType, x: Value, axis: int) -> Value:
        return tile.argmax(x, axis)

    @staticmethod
    def _argmin(_result: TileType, x: Value, axis: int) -> Value:
        return tile.argmin(x, axis)

    @staticmethod
    def _sort(_result: TileType, x: Value, descending: bool) -> Value:
        return tile.sort(x, descending)

    @staticmethod
    def _join(_result: TileType, a: Value, b: Value) -> Value:
        return tile.join(a, b)

    @staticmethod
    def _dot(result: TileType, a: Value, b: Value, acc: Value | None = None) -> Value:
        return tile.dot(a, b, tile.zeros(result.shape, result.dtype.name) if acc is None else acc)


_IN_MEMORY = ("bitcast", "reduce", "scan", "argmax", "argmin", "sort", "dot")


def _held(kind: TileType) -> str:
    """The builder's name of a type that operations make: see the top."""
    return "index" if kind.dtype.name == "i64" else kind.dtype.name
