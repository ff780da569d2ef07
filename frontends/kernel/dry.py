"""A machine that does nothing: what runs on it tells the types of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc.frontends.kernel.tile import Tile
from xcc.frontends.kernel.types import TileType

__all__ = ["DryMachine"]


class DryMachine:
    """See :class:`xcc.frontends.kernel.machine.Machine`; the data of its tiles is None."""

    concrete = False

    def _nothing(self, *_operands: object, **_attributes: object) -> None:
        return None

    constant = op = load = store = gather = scatter = atomic = compare_swap = program = size = check = show = _nothing

    def combine(self, _name: str, tiles: Sequence[Tile], _axis: int, step: Callable[..., Sequence[Tile]],
                _reverse: bool) -> Sequence[object]:
        step(*(Tile(TileType(t.dtype), None) for t in (*tiles, *tiles)))
        return [None] * len(tiles)

    def several(self, name: str, kinds: Sequence[TileType], x: Tile, descending: bool = False,
                keep: int = 0) -> Sequence[None]:
        return [None] * len(kinds)

    def branch(self, _condition: object, types: Sequence[TileType], _then: object, _orelse: object) -> Sequence[None]:
        return [None] * len(types)

    def loop(self, _start: object, _stop: object, _step: object, entries: Sequence[Tile],
             _body: object) -> Sequence[None]:
        return [None] * len(entries)

    def repeat(self, entries: Sequence[Tile], _test: object, _body: object) -> Sequence[None]:
        return [None] * len(entries)
