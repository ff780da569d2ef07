"""The right operand of a product, packed on the fly: a panel of its columns, just before its tiles of rows.

    memref.alloca %panel : memref<2x1024x32xf32>      (on the stack; in the L2 cache while its tiles last)
    for each panel of columns (of a block of depth):
      %panel[k, :] = %b[first + k, columns]           (or %b[columns, first + k], turned in tiles)
      for each tile of rows:
        for each line of 16 steps:
          (reads %panel; copies a piece of the next panel, or where columns are turned, asks for some of its lines)

As it lies, a panel is a short piece of each of many rows, which share few sets of the caches: each tile of rows would
fetch it from far away again. What a chunk packs is gone when it goes on to the next panel: nothing is written to
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING

from xcc._mlir import Value, ir
from xcc.passes.linalg.build.buffers import LINE_BYTES, prefetch
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.evaluate.keep import Part
from xcc.passes.linalg.kernel.domain import element_bytes
from xcc.passes.linalg.kernel.kernel import Tensor
from xcc.passes.linalg.kernel.right_columns import Columns, columns_packed
from xcc.passes.linalg.nests.panels import Panel, room_for
from xcc.passes.shared.packing import TURNED
from xcc.passes.shared.regions import for_loop, when

if TYPE_CHECKING:
    from xcc.passes.linalg.nests.nests import Nest

LINE = 16       # steps from one call of what is done along a product's loop to the next
AHEAD = 4       # calls that steps are asked for before they are copied: some 900 cycles of multiplications
BEFORE = 16     # the same where nothing is multiplied meanwhile, in steps
_EQ, _LESS = 0, 2   # arith.cmpi's eq and slt


@dataclass(frozen=True)
class Pieces:
    """How a panel is copied: `rows` steps of all columns at once. In the loops of its neighbour's first `shares` tiles,
    every `line` steps of these, a piece is copied, or where columns are turned, for which registers are short there, a
    part of its lines asked for. shares 0: neither."""

    rows: int
    shares: int
    line: int

    @staticmethod
    def of(steps: int, shares: int, turned: int) -> Pieces:
        """Of a panel of so many steps; `turned`: how many are turned together, 0 where none need to be."""
        line = gcd(steps, LINE)
        if turned:
            return Pieces(turned if steps % turned == 0 else 1, shares if line == LINE else 0, line)
        shares = min(shares, line)
        return Pieces(line // shares if shares else 1, shares, line)


@dataclass(frozen=True)
class _Place:
    """Where a panel begins: the index of each loop of the domain (-1: the step) in memory, the columns that there are
    (None: all), and which of the chunk's panels it is."""

    at: dict[int, Value]
    limit: Value | None
    slot: Value


@dataclass(frozen=True, eq=False)
class _Packed(Part):
    """A part whose dims are those of a panel, not those of `t`; `loops`: what walks these."""

    loops: tuple[int, ...]
    slot: Value

    def load(self, b: Builder, memory: Memory, indices: Sequence[Ix]) -> V:
        where = dict(zip(self.loops, indices, strict=True))
        last = max(self.loops)
        return super().load(b, memory, [b.ix_of(self.slot), where[-1], where[last]])


@dataclass(eq=False, kw_only=True)
class PackedColumns(Panel):
    """The memory of a chunk's panels: one, or two of which one is copied along the loops of the other's tiles.

    low, high: where the chunk's columns begin and end. count: steps of a panel, at most those there is room for.
    """

    columns: Columns
    stored: Tensor
    memref: Value
    count: Value
    pieces: Pieces
    low: Value
    high: Value

    @staticmethod
    def of(nest: Nest, ranges: dict[int, tuple[Value, Value | None]]) -> PackedColumns | None:
        """Room for them at the insertion point, the top of the chunk of `ranges`; None where none are wanted."""
        cpu, b, last = nest.schedule.cpu, nest.b, len(nest.dims) - 1
        if not cpu.columns:
            return None
        found = columns_packed(nest.ev.kernel)
        wide, known = nest.schedule.vector[-1], isinstance(found.steps, int)
        steps = cpu.depth or found.room(wide)
        one_by_one = not cpu.strips and all(lanes == 1 for lanes in nest.ev.reduce[found.op].values())
        turned = min(TURNED, wide) if found.turned else 0
        pieces = Pieces.of(steps, cpu.shares if one_by_one and known else 0, turned)
        panels = 2 if pieces.shares and not turned else 1
        stored = replace(found.t, dims=(panels, steps, wide), arg=-1, value=None)
        low, high = ranges.get(last, (b.int(0), b.dim(nest.dims[last])))
        high = b.add(low, b.int(nest.schedule.block[last])) if high is None else high
        count = b.int(steps) if known else b.dim(found.steps)
        fits = None if known else _compare(b, _LESS, count, b.int(steps + 1))
        return PackedColumns(nest=nest, always=found.turned, fits=fits, columns=found, stored=stored, count=count,
                             memref=room_for(nest, stored), pieces=pieces, low=low, high=high)

    @property
    def _two(self) -> bool:
        """Whether a panel is copied while the other one is read."""
        return self.stored.dims[0] == 2

    @property
    def _steps(self) -> int:
        return int(self.stored.dims[1])     # type: ignore[arg-type]

    @property
    def _wide(self) -> int:
        return int(self.stored.dims[2])     # type: ignore[arg-type]

    @contextmanager
    def filled(self, at: dict[int, Ix], rows: Sequence[tuple[Value, int]]) -> Iterator[None]:
        """Copies the panel `at`, where it was not along the loops of the one before; inside, it is read from memory,
        and `ev.copied` says what else is copied."""
        ev, b, last = self.nest.ev, self.nest.b, len(self.nest.dims) - 1
        place, all_pieces = self._place(at), b.binary("arith.divui", self.count, b.int(self.pieces.rows))
        if self._two:
            is_first = _compare(b, _EQ, place.at[last], self.low)
            self._when(is_first, lambda: self._copy_all(place, b.int(0), all_pieces))
        else:
            self._copy_all(place, b.int(0), all_pieces)
        origin = (Ix(), b.ix_of(place.at[-1]), b.ix_of(place.at[last]))
        dims = tuple(int(d) for d in self.stored.dims)     # type: ignore[arg-type]
        ev.kept[self.columns.t] = _Packed(self.columns.t, dims, self.stored, self.memref, origin, {},
                                          self.columns.loops, place.slot)
        yield
        del ev.kept[self.columns.t]
        ev.fetches = []
        if self._two:
            self._rest(at, rows, all_pieces)

    def _place(self, at: dict[int, Ix]) -> _Place:
        b, last = self.nest.b, len(self.nest.dims) - 1
        step = b.int(0) if self.nest.ev.block is None else self.nest.ev.block.low
        where = {d: step if d < 0 else b.scalar(at[d]) for d in self.columns.loops}
        axes = at[last].axes
        return _Place(where, axes[0].limit if axes else None, self._slot(where[last]))

    def _slot(self, column: Value) -> Value:
        b = self.nest.b
        if not self._two:
            return b.int(0)
        number = b.binary("arith.divui", b.sub(column, self.low), b.int(self._wide))
        return b.binary("arith.remui", number, b.int(2))

    def _next(self, at: dict[int, Ix]) -> tuple[_Place, Value]:
        """The panel behind that `at`, and whether there is one in the chunk."""
        b, last, place = self.nest.b, len(self.nest.dims) - 1, self._place(at)
        column = b.add(place.at[last], b.int(self._wide))
        size, wide = self.nest.dims[last], self._wide
        whole = isinstance(size, int) and size % wide == 0
        limit = None if whole else b.binary("arith.minsi", b.int(wide), b.sub(self.high, column))
        there = _compare(b, _LESS, column, self.high)
        return _Place({**place.at, last: column}, limit, b.sub(b.int(1), place.slot)), there

    def _rest(self, at: dict[int, Ix], rows: Sequence[tuple[Value, int]], all_pieces: Value) -> None:
        """Copies what is left of the next panel where there were fewer tiles of rows than shares."""
        b, pieces = self.nest.b, self.pieces
        (size, tile), = rows
        tiles = b.binary("arith.ceildivui", size, b.int(tile))
        part = self._steps // pieces.rows // pieces.shares
        done = b.mul(b.binary("arith.minsi", tiles, b.int(pieces.shares)), b.int(part))
        if b.as_int(done) == b.as_int(all_pieces):
            return
        place, there = self._next(at)
        self._when(there, lambda: self._copy_all(place, done, all_pieces))

    def lines(self, at: dict[int, Ix], tile: Value) -> Callable[[Value], None]:
        """What is done for the panel behind that `at`, called every `line` steps of tile number `tile` of its rows with
        the step."""
        b, pieces = self.nest.b, self.pieces
        place, there = self._next(at)
        works = b.pure("arith.andi", b.i1, [there, _compare(b, _LESS, tile, b.int(pieces.shares))])
        before = b.mul(tile, b.int(self._steps // pieces.line))

        def call(step: Value) -> None:
            number = b.add(before, b.binary("arith.divui", step, b.int(pieces.line)))
            if self._two:
                rows = pieces.rows
                self._when(works, lambda: self._copy(place, b.mul(number, b.int(rows)), rows, AHEAD))
            else:
                self._ask(place, number)

        return call

    def _ask(self, place: _Place, number: Value) -> None:
        """Asks for part `number` of the lines of a panel that is to be turned; an address past the end is as good as
        any."""
        b, last, each = self.nest.b, len(self.nest.dims) - 1, -(-self._wide // self.pieces.shares)
        first = b.mul(b.binary("arith.remui", number, b.int(self.pieces.shares)), b.int(each))
        step = b.mul(b.binary("arith.divui", number, b.int(self.pieces.shares)), b.int(self.pieces.line))
        for n in range(each):
            where = {**place.at, -1: b.add(place.at[-1], step), last: b.add(place.at[last], b.add(first, b.int(n)))}
            prefetch(self.nest.ev.memory.buffers[self.columns.t], [where[d] for d in self.columns.loops], locality=2)

    def _copy_all(self, place: _Place, first: Value, end: Value) -> None:
        """Copies the pieces [first, end), and what is left of a panel whose steps are not known."""
        b, rows = self.nest.b, self.pieces.rows
        with for_loop(first, end, b.int(1)) as piece, b.scope():
            self._copy(place, b.mul(piece, b.int(rows)), rows, max(1, BEFORE // rows))
        if rows > 1 and self.fits is not None:
            with for_loop(b.mul(end, b.int(rows)), self.count, b.int(1)) as step, b.scope():
                self._copy(place, step, 1, BEFORE)

    def _copy(self, place: _Place, step: Value, rows: int, ahead: int) -> None:
        """Copies a piece of so many `rows`, and asks for that which is `ahead` pieces behind it; nothing is read there:
        an address past the end is as good as any."""
        b, memory, last, t = self.nest.b, self.nest.ev.memory, len(self.nest.dims) - 1, self.columns.t
        wide, turned = self._wide, self.columns.turned
        part = wide if not turned else TURNED if wide > TURNED else max(1, wide // 2)     # a vector
        for low in range(0, wide, part):
            limit = place.limit if low == 0 or place.limit is None else \
                b.binary("arith.maxsi", b.sub(place.limit, b.int(low)), b.int(0))
            row = ((Axis(rows, 0), 1),) if rows > 1 else ()
            column = ((Axis(min(part, wide - low), 1, limit), 1),)
            walks = {-1: Ix(b.add(place.at[-1], step), 0, row), last: Ix(b.add(place.at[last], b.int(low)), 0, column)}
            value = memory.load(t, [walks.get(d, b.ix_of(place.at[d])) for d in self.columns.loops])
            memory.store(self.stored, self.memref, value,
                         [b.ix_of(place.slot), Ix(step, 0, row), Ix(b.int(low), 0, column)])
        later = b.add(place.at[-1], b.add(step, b.int(ahead * rows)))
        lanes = LINE_BYTES // element_bytes(t.element)
        every = (range(1), range(wide)) if turned else (range(rows), range(0, wide, lanes))
        places = [(n, m) for n in every[0] for m in every[1]]
        for n, m in places:
            where = {**place.at, -1: b.add(later, b.int(n)), last: b.add(place.at[last], b.int(m))}
            prefetch(memory.buffers[t], [where[d] for d in self.columns.loops], locality=2)

    def _when(self, condition: Value, body: Callable[[], None]) -> None:
        with when(condition), self.nest.b.scope():
            body()


def _compare(b: Builder, predicate: int, a: Value, c: Value) -> Value:
    return b.pure("arith.cmpi", b.i1, [a, c],
                  predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate))
