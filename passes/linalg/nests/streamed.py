"""Products whose last tiles are cut along their sums, so that all cores finish together (stream-K, arXiv 2301.03598).

    scf.forall (%w) in (full + workers) {
      scf.if %w < full { tile number %w }
      else { for each of the tiles in which the steps of worker %w - full lie: their sum, to the workspace } }
    scf.forall (%p) in (tiles * parts) { for each worker of a tile: add its sum to a part of the tile; the epilogue }

The tiles that fill whole waves are computed as ever. The steps of the rest, one tile's behind the other's, are dealt
out to the workers in runs of equal length; a run lies in two tiles at most, and in one where each tile can have as many
workers (those of its last ones are shorter then). The sums are added in the workers' order, so that results do not
depend on timing. The workspace is a buffer of its own, behind the outputs (``xcc.scratch``). A tile's sum may be over
several loops that are walked as one, as a convolution's.
"""

from __future__ import annotations

from math import gcd

from xcc import symbolic
from xcc._mlir import Attribute, Type, Value, ir, scf_d, vector_d
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.kernel.domain import contraction_of, domain
from xcc.passes.linalg.kernel.kernel import Kernel
from xcc.passes.linalg.nests.forall import forall_of
from xcc.passes.linalg.nests.nests import Nest
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.shared.regions import for_loop
from xcc.passes.shared.values import predicate, scalar_attr
from xcc.symbolic import Dim, ceildiv, dim_max

PIECES = 2          # of tiles that one worker's steps may lie in
PART_ROWS = 16      # of a tile, of which one workgroup adds the sums
TOGETHER = 8        # workers' sums of a tile that are read at once


def workspace_dims(kernel: Kernel, schedule: Schedule) -> tuple[tuple[Dim, ...], Type]:
    """Sizes and element type of the buffer of the workers' sums."""
    op = contraction_of(kernel)
    assert op is not None
    return (PIECES * schedule.gpu.streamed[1], *schedule.vector), op.results[0].element


class Streamed:
    """The two loops of a kernel, whose tiles `nest` can compute."""

    def __init__(self, nest: Nest, kernel: Kernel, workspace: Value) -> None:
        self.nest, self.ev, self.b, self.workspace = nest, nest.ev, nest.ev.b, workspace
        schedule = self.schedule = nest.schedule
        op = contraction_of(kernel)
        assert op is not None
        self.op = op
        self.access = domain(kernel).position[op]
        loops = self.ev.joined.get(op) or [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1][:1]
        self.depth = self.ev.reduce[op][loops[-1]]
        self.rows, self.columns = (-(-symbolic.evaluate(size, {}) // side)
                                   for size, side in zip(nest.dims, schedule.block, strict=True))
        self.tiles, self.workers = min(schedule.gpu.streamed[0], self.rows * self.columns), schedule.gpu.streamed[1]
        self.full = self.rows * self.columns - self.tiles
        steps = dim_max(ceildiv(symbolic.product([op.loops[p] for p in loops]), self.depth), 1)
        share = ceildiv(steps * self.tiles, self.workers)
        self.apart = self.workers % self.tiles == 0     # each worker has steps of one tile
        # of a tile, with those behind its end that its last workers would have
        dealt = share * (self.workers // self.tiles) if self.apart else steps
        self.steps, self.share, self.dealt = self.b.dim(steps), self.b.dim(share), self.b.dim(dealt)

    def emit(self) -> None:
        """Both loops."""
        b = self.b
        block = forall_of(self.full + self.workers)
        with ir.InsertionPoint.at_block_begin(block), b.scope():
            number = block.arguments[0]
            if not self.full:
                self._sums(number)
            else:
                whole = b.pure("arith.cmpi", b.i1, [number, b.int(self.full)], predicate=predicate("ult"))
                branch = scf_d.IfOp(whole, has_else=True)
                with ir.InsertionPoint(branch.then_block), b.scope():
                    self.nest.store(self._indices(number, b.int(0), self.schedule.vector[0]))
                    scf_d.YieldOp([])
                with ir.InsertionPoint(branch.else_block), b.scope():
                    self._sums(b.sub(number, b.int(self.full)))
                    scf_d.YieldOp([])
        rows = min(PART_ROWS, self.schedule.vector[0])
        parts = self.schedule.vector[0] // rows
        block = forall_of(self.tiles * parts)
        with ir.InsertionPoint.at_block_begin(block), b.scope():
            number = block.arguments[0]
            tile = b.binary("arith.divui", number, b.int(parts))
            first = b.mul(b.binary("arith.remui", number, b.int(parts)), b.int(rows))
            b.multiples[first] = rows
            self.ev.given = self.op, lambda axes: self._total(tile, first, axes)
            self.nest.store(self._indices(b.add(tile, b.int(self.full)), first, rows))
            self.ev.given = None

    def _place(self, number: Value) -> tuple[Value, Value]:
        """Row and column of tile `number` of the launch order: bands of `group` rows, column by column."""
        b, group = self.b, max(1, self.schedule.gpu.group)
        band = b.int(self.columns * group)
        first = b.mul(b.binary("arith.divui", number, band), b.int(group))
        inside = b.binary("arith.remui", number, band)
        height = b.binary("arith.minui", b.sub(b.int(self.rows), first), b.int(group))
        return b.add(first, b.binary("arith.remui", inside, height)), b.binary("arith.divui", inside, height)

    def _indices(self, number: Value, first: Value, rows: int) -> dict[int, Ix]:
        """The coordinates of `rows` rows of tile `number` from row `first` on."""
        b, out = self.b, {}
        for d, (at, lanes, side) in enumerate(zip(self._place(number), self.schedule.vector, self.schedule.block,
                                                  strict=True)):
            low = b.mul(at, b.int(side))
            count = lanes
            if d == 0 and rows != lanes:
                low, count = b.add(low, first), rows
            b.multiples[low] = gcd(count, side)
            size = symbolic.evaluate(self.nest.dims[d], {})
            limit = None if size % side == 0 and side == lanes else b.binary(
                "arith.minsi", b.int(min(count, side)), b.binary("arith.maxsi", b.sub(b.int(size), low), b.int(0)))
            out[d] = Ix(base=low, coefs=((Axis(count, d, limit), 1),)) if count > 1 else b.ix_of(low)
        return out

    def _sums(self, worker: Value) -> None:
        """What one worker adds up, to its places of the workspace."""
        b, dealt = self.b, self.dealt
        begin = b.mul(worker, self.share)
        if self.apart:
            self._sum(worker, b.binary("arith.divui", worker, b.int(self.workers // self.tiles)), begin, b.int(0))
            return
        end = b.binary("arith.minui", b.add(begin, self.share), b.mul(dealt, b.int(self.tiles)))
        first = b.binary("arith.divui", begin, dealt)
        last = b.binary("arith.ceildivui", end, dealt)
        with for_loop(first, last, b.int(1)) as tile, b.scope():
            self._sum(worker, tile, begin, b.sub(tile, first))

    def _sum(self, worker: Value, tile: Value, begin: Value, piece: Value) -> None:
        """The worker's steps of one tile, of those that start with step `begin` of all tiles."""
        b = self.b
        start = b.mul(tile, self.dealt)
        low = b.binary("arith.minui", b.sub(b.binary("arith.maxui", begin, start), start), self.steps)
        high = b.binary("arith.minui", b.sub(b.add(begin, self.share), start), self.steps)
        indices = self._indices(b.add(tile, b.int(self.full)), b.int(0), self.schedule.vector[0])
        env = {f"i{d}": i for d, i in self.nest.coordinates(indices).items()}
        self.ev.bounds = b.mul(low, b.int(self.depth)), b.mul(high, b.int(self.depth))
        total = self.ev.tile(self.op.results[0], [b.access(e, env) for e in self.access])
        self.ev.bounds = None
        self._write(total, self._slot(worker, piece))

    def _slot(self, worker: Value, piece: Value) -> Value:
        return self.b.add(self.b.mul(worker, self.b.int(PIECES)), piece)

    def _map(self, axes: tuple[Axis, ...]) -> Attribute:
        return ir.AffineMapAttr.get(ir.AffineMap.get(3, 0, [ir.AffineDimExpr.get(1 + a.order) for a in axes]))

    def _write(self, total: V, slot: Value) -> None:
        zero = self.b.int(0)
        vector_d.TransferWriteOp(None, total.value, self.workspace, [slot, zero, zero], self._map(total.axes),
                                 ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(total.axes)))

    def _total(self, tile: Value, first: Value, axes: tuple[Axis, ...]) -> V:
        """The sums of all workers of `tile`, of its rows from `first` on, added in order; several are read at once."""
        b, share, dealt = self.b, self.share, self.dealt
        element = self.op.results[0].element
        zero = b.splat(scalar_attr(element, 0), [a.size for a in axes])
        begin = b.mul(tile, dealt)
        low = b.binary("arith.divui", begin, share)
        last = b.binary("arith.divui", b.sub(b.add(begin, dealt), b.int(1)), share)
        together = min(TOGETHER, -(-self.workers // self.tiles))
        loop = scf_d.ForOp(low, b.add(last, b.int(1)), b.int(together), [zero])
        add = "arith.addi" if isinstance(element, ir.IntegerType) else "arith.addf"
        with ir.InsertionPoint(loop.body), b.scope():
            workers = [b.add(loop.induction_variable, b.int(n)) for n in range(together)]
            sums = [self._read(b.binary("arith.minui", w, last), tile, first, axes) for w in workers]
            total = loop.inner_iter_args[0]
            for worker, found in zip(workers, sums, strict=True):
                inside = b.pure("arith.cmpi", b.i1, [worker, last], predicate=predicate("ule"))
                total = b.op(add, zero.type, [total, b.op("arith.select", zero.type, [inside, found, zero])])
            scf_d.YieldOp([total])
        return V(loop.results[0], axes)

    def _read(self, worker: Value, tile: Value, first: Value, axes: tuple[Axis, ...]) -> Value:
        """What `worker` added up of `tile`, of its rows from `first` on."""
        b, element = self.b, self.op.results[0].element
        piece = b.sub(tile, b.binary("arith.divui", b.mul(worker, self.share), self.dealt))
        read = vector_d.TransferReadOp(
            ir.VectorType.get([a.size for a in axes], element), self.workspace,
            [self._slot(worker, piece), first, b.int(0)], self._map(axes),
            b.constant(scalar_attr(element, 0), element), ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(axes)))
        return read.result
