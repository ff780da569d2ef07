"""A machine that does nothing: what runs on it tells the types of its results."""

from __future__ import annotations

from typing import Any

from xcc.frontends.kernel.tile import Tile
from xcc.frontends.kernel.types import TileType

__all__ = ["DryMachine"]


class DryMachine:
    """See :class:`xcc.frontends.kernel.machine.Machine`; the data of its tiles is None."""

    concrete = False

    def _nothing(self, *_operands: Any, **_attributes: Any) -> None:
        return None

    constant = op = load = store = gather = scatter = atomic = program = size = check = show = _nothing

    def combine(self, _name: Any, tiles: Any, _axis: Any, step: Any, _reverse: Any) -> Any:
        step(*(Tile(TileType(t.dtype), None) for t in (*tiles, *tiles)))
        return [None] * len(tiles)

    def branch(self, _condition: Any, types: Any, _then: Any, _orelse: Any) -> Any:
        return [None] * len(types)

    def loop(self, _start: Any, _stop: Any, _step: Any, entries: Any, _body: Any) -> Any:
        return [None] * len(entries)

    def repeat(self, entries: Any, _test: Any, _body: Any) -> Any:
        return [None] * len(entries)
