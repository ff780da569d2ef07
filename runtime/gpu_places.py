"""Where the buffers of a program lie in runs on a GPU, for each set of symbol values and each stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import compress, repeat
from operator import ne
from typing import Any

from xcc.runtime import poison
from xcc.runtime.arena import ArenaPlan, ArenaPlanner
from xcc.runtime.dim_values import DimValues
from xcc.runtime.gpu_graphs import Base
from xcc.runtime.known_sizes import KnownSizes
from xcc.runtime.placed_shape import PlacedShape, PlacedShapes, Rooms
from xcc.runtime.program import DTYPE_BYTES, Program

__all__ = ["GpuPlaces"]

_ARENA = -1                # its number among what moves; inputs and outputs have those of their buffers


class GpuPlaces:
    """Inputs, outputs and the arena move from run to run; weights, what is made of them, and state stay.

    Attributes:
        moves_with: of each buffer, the input or output that it lies in, -1 for the arena, None where it stays.
        own: the outputs that are buffers of their own, by buffer.
        rooms: by stream (None is the driver's own) memory for what a caller has no place for.
        elsewhere: gives addresses of temporaries that do not lie in the arena, for symbol values.
    """

    def __init__(self, driver: Any, program: Program, weights: Mapping[int, int], known: KnownSizes) -> None:
        """`weights`: addresses of what stays, which may still be filled."""
        self._driver, self._program, self._weights, self._known = driver, program, weights, known
        self.planner = ArenaPlanner(program)
        self.planner.guard = poison.GUARD if poison.wanted() else 0
        self.shapes = PlacedShapes(driver.synchronize_all)
        self.rooms: dict[int | None, Rooms] = {}
        self.elsewhere: Callable[[Mapping[str, int]], Mapping[int, int]] = lambda _symbols: {}
        self.own = [i for i in program.outputs if program.buffers[i].kind == "output"]
        self._outside = [*program.inputs, *self.own]
        self._bases = [*self._outside, _ARENA]
        self._numbers = range(len(self._bases))
        self._outside_bytes = DimValues([(*b.shape, DTYPE_BYTES[b.dtype]) for i in self._outside
                                         for b in [program.buffers[i]]], self.planner.limits)
        self._empty = [i for i, b in enumerate(program.buffers)
                       if b.kind in ("weight", "kept", "state") and program.nbytes(i) == 0]
        self.moves_with = [self._base(program.root(i)) for i in range(len(program.buffers))]

    def _base(self, root: int) -> Base:
        kind = self._program.buffers[root].kind
        if kind in ("input", "output"):
            return root
        return _ARENA if kind == "temp" or root in self._empty else None      # empty ones: see ArenaPlan.void

    def shape(self, symbols: Mapping[str, int], stream: int | None) -> PlacedShape:
        """The one of these symbol values on the stream."""
        return self.shapes.get((stream, *[symbols[s] for s in self._program.symbols]), lambda: self.new(symbols))

    def new(self, symbols: Mapping[str, int]) -> PlacedShape:
        """One that nobody keeps."""
        sizes = self._known(symbols)
        aliases: dict[Base, list[tuple[int, int]]] = defaultdict(list)
        for i, offset in self._known.offsets(sizes):
            aliases[self.moves_with[i]].append((i, offset))
        shape = PlacedShape(dict(symbols), dict(self._weights), sizes, self.planner.plan(symbols), aliases,
                            self.elsewhere(symbols), bases=dict.fromkeys(self._bases, 0))
        self._follow(shape, None)
        return shape

    def of_setup(self) -> PlacedShape:
        """For the launches of the setup, which have no symbols."""
        return PlacedShape({}, dict(self._weights), [], ArenaPlan({}, 0), {})

    def put_in_rooms(self, shape: PlacedShape, lying: Mapping[int, int], stream: int | None) -> None:
        """Has runs of `shape` find inputs and outputs at the addresses `lying`, the others and the arena in rooms."""
        sizes = dict(zip(self._outside, self._outside_bytes(shape.env), strict=True))
        needed = {i: n for i, n in sizes.items() if i not in lying} | {_ARENA: shape.plan.size}
        if stream not in self.rooms:
            self.rooms[stream] = Rooms(self._driver)
        rooms = self.rooms[stream]
        if not rooms.suffice(needed):
            if rooms:       # what is given back may be in use
                self._driver.synchronize()
            rooms.grow(needed)
        found = rooms.pointers() | dict(lying)
        self.put(shape, [*[found[i] if sizes[i] else 0 for i in self._outside], found[_ARENA]])

    def put(self, shape: PlacedShape, place: list[int]) -> None:
        """Has runs of `shape` find inputs, outputs and arena at the addresses `place`; 0 is what has no element."""
        before = shape.place
        if place == before:
            return
        shape.place = place
        void = place[-1] + shape.plan.void if shape.plan.void else 0       # see ArenaPlan
        moved: Iterable[int] = compress(self._numbers, map(ne, place, before or repeat(None)))
        if void:
            moved = {*moved, *(n for n, address in enumerate(place) if not address)}
        moved = tuple(moved)
        if not all(g.follows(self._bases[n] for n in moved) for g in shape.graphs.values()):
            self._driver.synchronize_all()
            shape.free()
        for n in moved:
            self._move(shape, n, place[n] or void, void)

    def _move(self, shape: PlacedShape, n: int, address: int, void: int) -> None:
        base = self._bases[n]
        shape.bases[base] = shape.addresses[base] = address
        if base == _ARENA:
            self._follow_arena(shape, void)
        if base in shape.aliases:
            self._follow(shape, base)
        for graph in shape.graphs.values():
            graph.move(base, address)

    def _follow_arena(self, shape: PlacedShape, void: int) -> None:
        for i, offset in shape.plan.offsets.items():
            shape.addresses[i] = shape.bases[_ARENA] + offset
        shape.addresses.update(shape.elsewhere)
        if void:
            shape.addresses.update(dict.fromkeys(self._empty, void))

    def _follow(self, shape: PlacedShape, base: Base) -> None:
        """The addresses of aliases of what moves with `base`."""
        for i, offset in shape.aliases[base]:
            shape.addresses[i] = shape.addresses[self._program.buffers[i].base] + offset
