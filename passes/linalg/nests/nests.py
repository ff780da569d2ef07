"""The loops around the tiles of a kernel's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.evaluate.depth_blocks import each_block, store_partial
from xcc.passes.linalg.evaluate.keep import kept_parts
from xcc.passes.linalg.evaluate.staged_rows import room_for_rows, stage_rows
from xcc.passes.linalg.evaluate.tile_eval import Evaluator
from xcc.passes.linalg.kernel.domain import contraction_of
from xcc.passes.linalg.kernel.kernel import Tensor
from xcc.passes.linalg.nests.border import BorderedResult
from xcc.passes.linalg.nests.dealt_rows import DealtRows
from xcc.passes.linalg.nests.decoded_panels import DecodedPanel
from xcc.passes.linalg.nests.forall import forall
from xcc.passes.linalg.nests.inserted import InsertedResult
from xcc.passes.linalg.nests.packed_columns import PackedColumns
from xcc.passes.linalg.nests.panels import Panel
from xcc.passes.linalg.nests.row_results import store_row, walks_rows
from xcc.passes.linalg.nests.strips import Strips, product_in_strips
from xcc.passes.linalg.nests.tile_loops import TileLoops
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim


@dataclass(frozen=True)
class Result:
    """A result of the kernel and its buffer."""

    t: Tensor
    memref: Any
    bordered: BorderedResult | InsertedResult | None


class Nest:
    """The loops around the tiles of results of one shape; `origin`: where `dims` begin in the results' own.

    rows: results of the first dims alone, stored where the loops have fixed these (passes/linalg/nests/row_results.py).
    """

    def __init__(self, ev: Evaluator, schedule: Schedule, dims: tuple[Dim, ...],
                 results: list[Result], origin: Sequence[Ix] = (), rows: Sequence[Result] = ()) -> None:
        self.ev, self.b, self.schedule, self.results, self.origin = ev, ev.b, schedule, results, origin
        self.rows = rows
        groups = iter(dims)
        self.parts = [tuple(next(groups) for _ in range(n)) for n in schedule.flatten or [1] * len(dims)]
        self.dims = tuple(symbolic.product(part) for part in self.parts)
        self.product = product_in_strips(ev.kernel) if schedule.cpu.strips else None
        # where the last tiles are peeled; masks would be in a product's innermost loop
        self.peels = schedule.tail == "peel" and contraction_of(ev.kernel) is not None
        self.loops = TileLoops(self.b, schedule, len(self.dims) - 1, not self.peels)
        self.panel: Panel | None = None

    def emit(self) -> None:
        tiled = [d for d in self.schedule.chunks or self.schedule.order if self.schedule.block[d]]
        if not tiled and not self._outer_dims():
            self._one_block()
            return
        if self.schedule.cpu.parts and self.schedule.cpu.depth:
            each_block(self.ev, self.results[0].memref, self.schedule.cpu.depth, self._one_by_one,
                       lambda: self._chunks(tiled))
        else:
            self._chunks(tiled)

    def _chunks(self, tiled: list[int]) -> None:
        """The forall over all chunks, for all steps of a product or a block of them."""
        outer = self._outer_dims()
        sizes = [*map(self.b.dim, outer), *(self.b.dim(self.dims[d]) for d in tiled)]
        steps = [*([1] * len(outer)), *(self.schedule.block[d] for d in tiled)]
        dealt = DealtRows.of(self.b, self.schedule, self.dims, outer, self.ev.kernel.name)
        if dealt is not None:
            sizes, steps = dealt.forall()
        dynamic = [s for s in sizes if self.b.as_int(s) is None]
        loop = forall([self.b.as_int(s) for s in sizes], dynamic, steps, self.schedule.parallel)
        block = loop.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block), self.b.scope():
            at = list(block.arguments)
            self._enter(at[:len(outer)])
            if dealt is not None:
                part, left, number = at
                ranges = {0: self._range(0, *dealt.chunk(part, number)), 1: self._range(1, left)}
            else:
                ranges = {d: self._range(d, low) for d, low in zip(tiled, at[len(outer):], strict=True)}
            if self.schedule.cpu.stream and self.schedule.cpu.park >= 0:
                self.ev.parking.on_stack()
            self._chunk(ranges)

    def _range(self, d: int, low: Value, end: Value | None = None) -> tuple[Value, Value | None]:
        """Where the chunk that begins at `low` of dim d begins and ends; None: a whole block further on. `end`: of the
        chunk's part of the dim, which begins at any tile."""
        size, step, b = self.dims[d], self.schedule.block[d], self.b
        b.multiples[low] = step if end is None else self.schedule.vector[d]
        if isinstance(size, int) and size % step == 0 and end is None:
            return low, None
        if isinstance(size, int):
            self.loops.left[d] = size % self.schedule.vector[d]
        high = b.binary("arith.minsi", b.add(low, b.int(step)), b.dim(size))
        return low, high if end is None else b.binary("arith.maxsi", low, b.binary("arith.minsi", high, end))

    def _one_by_one(self, low: Value, high: Value, step: int, body: Callable[[Any], None]) -> None:
        """`body` for each of some known indices: a forall stands in no loop."""
        first, end = self.b.as_int(low), self.b.as_int(high)
        assert first is not None and end is not None
        for i in range(first, end, step):
            body(self.b.int(i))

    def _outer_dims(self) -> list[Dim]:
        """Dims of the forall beside those of the results."""
        return []

    def _enter(self, outer: list[Any]) -> None:
        """Called in the forall with its variables for the outer dims."""

    def _one_block(self) -> None:
        loop = forall([1], [], [1], False)
        with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), self.b.scope():
            self._chunk({})

    def _chunk(self, ranges: dict[int, tuple[Value, Value | None]]) -> None:
        """What the chunk keeps, then its tiles."""
        for part, kept in zip(kept_parts(self.ev.kernel, self.schedule, self.results[0].t, self.ev.memory, ranges),
                              self.schedule.cpu.kept, strict=True):
            plan = replace(self.schedule.with_cpu(kept=(), shares=0, ahead=0, stream=False), chunks=(),
                           block=(0,) * len(kept.vector), vector=kept.vector, order=kept.order)
            zero = self.b.int(0)
            with self.b.scope():
                nest = Nest(self.ev, plan, part.dims, [Result(part.t, part.memref, None)], part.origin)
                nest._tiles(list(kept.order), {}, {d: (zero, end) for d, end in part.ends.items()})
            self.ev.kept[part.t] = part
        self.panel = DecodedPanel.of(self) or PackedColumns.of(self, ranges)
        copy = room_for_rows(self.ev, self.schedule.block[0]) if self.schedule.cpu.staged else None
        if self.schedule.cpu.depth and self.ev.block is None:
            each_block(self.ev, self.results[0].memref, self.schedule.cpu.depth, self.loops.loop,
                       lambda: self._block(ranges, copy))
        else:
            self._block(ranges, copy)
        self.ev.kept.clear()

    def _block(self, ranges: dict[int, tuple[Value, Value | None]], copy: Value | None) -> None:
        """The tiles of a chunk, for all steps of a product or a block of them. `copy`: where staged rows go."""
        def tiles() -> None:
            self._tiles(list(self.schedule.order), {}, ranges)

        if copy is not None:
            stage_rows(self.ev, copy, ranges[0][0], ranges[1][0] if 1 in ranges else self.b.int(0), tiles)
        else:
            tiles()

    def _tiles(self, order: list[int], at: dict[int, Ix], ranges: dict[int, tuple[Value, Value | None]]) -> None:
        """Loops over the dims of `order` around the tiles; `ranges` are the forall's chunks."""
        self.ev.progress = self._progress(at, ranges) if self.schedule.cpu.shares else None
        if not order:
            self._tile(at, ranges)
            return
        self._hoist(at)
        self._store_rows(at)
        d, rest = order[0], order[1:]
        lanes, size, block = self.schedule.vector[d], self.dims[d], self.schedule.block[d]

        def inner(i: Ix) -> None:
            if self.panel is not None and d + 1 == len(self.dims) and rest:
                self.panel.around({**at, d: i}, self._rows(rest, ranges),
                                  lambda: self._tiles(rest, {**at, d: i}, ranges))
            else:
                self._tiles(rest, {**at, d: i}, ranges)

        if self._overlaps(d):
            low, high = ranges.get(d, (self.b.int(0), self.b.dim(size)))
            high = self.b.add(low, self.b.int(block)) if high is None else high
            most = self.b.int(int(size) - lanes)        # type: ignore[arg-type]
            self.loops.loop(low, high, lanes, lambda iv: inner(
                self.loops.index(d, self.b.binary("arith.minsi", iv, most), None)))
            return
        if d in ranges:
            low, high = ranges[d]
            if 0 < block < lanes or block == lanes and (high is None or not self.peels or d + 1 == len(self.dims)):
                inner(self.loops.index(d, low, self._limit(d, low, high)))
            elif high is None:
                self.loops.whole(d, low, self.b.add(low, self.b.int(block)), inner)
            else:
                self.loops.peeled(d, low, high, inner)
            return
        zero = self.b.int(0)
        if isinstance(size, int) and lanes > 1 and size <= lanes:
            outer = d != len(self.dims) - 1 and self.schedule.tail == "peel"
            inner(Ix(coefs=((Axis(size, d) if outer else self.ev.full_axis(size, lanes, []), 1),)))
        elif isinstance(size, int) and self.schedule.tail == "peel":
            whole = size - size % lanes
            if whole:
                self.loops.whole(d, zero, self.b.int(whole), inner)
            if size % lanes:
                self.loops.rest(d, self.b.int(whole), self.b.int(size), size % lanes, inner)
        else:
            self.loops.peeled(d, zero, self.b.dim(size), inner)

    def _limit(self, d: int, low: Value, high: Value | None) -> Value | None:
        """How many lanes are on of the one tile along `d` from `low` to `high`; None: all of them."""
        if self.schedule.block[d] == self.schedule.vector[d]:
            return None if high is None else self.b.sub(high, low)
        most = self.b.int(self.schedule.block[d])
        return most if high is None else self.b.binary("arith.minsi", most, self.b.sub(self.b.dim(self.dims[d]), low))

    def _rows(self, order: list[int], ranges: dict[int, tuple[Value, Any]]) -> list[tuple[Value, int]]:
        """How far the loops over the dims of `order` go, and their steps."""
        out = []
        for d in order:
            low, high = ranges.get(d, (self.b.int(0), self.b.dim(self.dims[d])))
            out.append((self.b.int(self.schedule.block[d]) if high is None else self.b.sub(high, low),
                        self.schedule.vector[d]))
        return out

    def _tile(self, at: dict[int, Ix], ranges: dict[int, tuple[Value, Value | None]]) -> None:
        """The tile at `at`."""
        if self.product is not None and any(i.axes for d, i in at.items() if d + 1 < len(self.dims)):
            Strips(self.ev, self.product, self.store).emit(at)
            return
        if self.ev.staged is not None:
            self.ev.fetches = [self.ev.staged.lines(self.ev, [at[0], at[1]])]
        if isinstance(self.panel, PackedColumns) and self.panel.pieces.shares and self.ev.progress is not None:
            self.ev.fetches = [*(self.ev.fetches if self.ev.staged is not None else ()),
                               self.panel.lines(at, self.ev.progress)]
        if self.ev.block is not None and not self.ev.block.final:
            store_partial(self.ev, [at[d] for d in range(len(self.dims))])
            return
        self._hoist(at)
        self.store(at)

    def _overlaps(self, d: int) -> bool:
        """Whether the last tile along `d` begins early and makes some rows again, so that it is a whole one.

        Where tiles are large (strips), code for each number of rows that may be left would be, too.
        """
        size, lanes = self.dims[d], self.schedule.vector[d]
        return self.product is not None and d + 1 < len(self.dims) and isinstance(size, int) and size > lanes > 1 \
            and size % lanes != 0

    def _progress(self, at: dict[int, Ix], ranges: dict[int, tuple[Value, Value | None]]) -> Value | None:
        """Which tile of its chunk the first dim inside the loop over panels stands at; None outside of it."""
        order = self.schedule.order
        d = next((d for d in order[order.index(len(order) - 1) + 1:] if d in at), None)
        if d is None:
            return None
        low = ranges[d][0] if d in ranges else self.b.int(0)
        return self.b.binary("arith.divui", self.b.sub(self.b.scalar(at[d]), low), self.b.int(self.schedule.vector[d]))

    def _hoist(self, at: dict[int, Ix]) -> None:
        """Evaluates what depends only on the dims fixed so far, before the loops over the others begin."""
        access = tuple(symbolic.sym(f"i{d}") for d in range(sum(len(part) for part in self.parts)))
        self.ev.hoist([(r.t, access) for r in self.results],
                      {f"i{d}": self._moved(d, i) for d, i in self.coordinates(at).items()})

    def _store_rows(self, at: dict[int, Ix]) -> None:
        """Stores the results whose dims are just those fixed so far."""
        for r in self.rows:
            if set(at) == set(range(len(r.t.dims))) and walks_rows(self.schedule, r.t):
                store_row(self.ev, r.t, r.memref, [at[d] for d in range(len(at))])

    def coordinates(self, at: dict[int, Ix]) -> dict[int, Ix]:
        """The coordinates in the results' dims of the tile dims fixed so far."""
        out, first = dict[int, Ix](), 0
        for d, part in enumerate(self.parts):
            if d in at:
                found = self.b.parts(at[d], part) if len(part) > 1 else [at[d]]
                out.update({first + n: i for n, i in enumerate(found)})
            first += len(part)
        return out

    def _moved(self, d: int, i: Ix) -> Ix:
        """The index in the whole result."""
        return self.b.ix_add(i, self.origin[d]) if self.origin else i

    def prepare(self, at: dict[int, Ix]) -> list[Ix]:
        """Evaluates the online sums behind the results; gives the results' indices."""
        coordinates = [self._moved(d, i) for d, i in self.coordinates(at).items()]
        access = tuple(symbolic.sym(f"i{d}") for d in range(len(coordinates)))
        self.ev.online.prepare([(r.t, access) for r in self.results], {f"i{d}": i for d, i in enumerate(coordinates)})
        return coordinates

    def store(self, at: dict[int, Ix]) -> None:
        """Evaluates and stores the tile at the coordinates `at`."""
        indices = self.prepare(at)
        values: list[V] = [self.ev.tile(r.t, indices) for r in self.results]
        if self.schedule.cpu.ahead:
            for t in self.ev.alike(self.results[0].t):
                self.ev.memory.fetch(t, indices, self.schedule.cpu.ahead)
        for r, v in zip(self.results, values, strict=True):
            if r.bordered is not None:
                r.bordered.store(v, indices)
            else:
                stored = list(self.coordinates(at).values())
                self.ev.memory.store(r.t, r.memref, v, stored, self.schedule.cpu.stream)
        for r in self.rows:
            if not walks_rows(self.schedule, r.t):      # their sums are those of the tile
                store_row(self.ev, r.t, r.memref, indices[:len(r.t.dims)])
