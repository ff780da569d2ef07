"""The left operand of a large product, copied together before it is multiplied.

    memref.alloca %rows : memref<112x1040xf32>        (on the stack; in the L2 cache while the chunk lasts)
    %rows[i, k] = %x[low + i, first + k]              for the rows of the chunk and the steps of the block
    (the loops over panels, tiles and steps read %rows; the last panels' tiles ask for what is copied next)

Rows that lie some power of two apart share a few sets of the caches, so that a block of them does not stay there. The
copy is a share of 1 / (2 * columns) of the work; its rows begin a line further on each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from xcc._mlir import ir, scf_d
from xcc.diagnostics import UserError
from xcc.passes.linalg.buffers import prefetch
from xcc.passes.linalg.depth_blocks import depth_of
from xcc.passes.linalg.kernel import Kernel, Tensor, bare_loop
from xcc.passes.linalg.tile_values import Axis, Ix

if TYPE_CHECKING:
    from xcc.passes.linalg.tile_eval import Evaluator

__all__ = ["LANES", "NextRows", "left_rows", "room_for_rows", "stage_rows"]

LANES = 16          # f32 of a cache line
LAST_PANELS = 2     # of a chunk: their tiles ask for what is copied next
_ULT = 6            # arith.cmpi's


def left_rows(kernel: Kernel) -> Tensor | None:
    """The f32 argument that the kernel's product reads at (row, step), and that nothing else reads."""
    found = depth_of(kernel)
    if found is None or len(found[0].results[0].dims) != 2:
        return None
    op = found[0]
    step = next(p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1)
    for t, access in op.inputs:
        readers = [s for o in kernel.ops for s, _ in o.inputs if s is t]
        if t.arg >= 0 and len(readers) == 1 and isinstance(t.element, ir.F32Type) \
                and [bare_loop(e) for e in access] == [bare_loop(op.outs[0][0]), step]:
            return t
    return None


@dataclass(frozen=True)
class NextRows:
    """What is copied after the part that is multiplied: `rows` rows of `t` from `low` on, `steps` from `first` on."""

    t: Tensor
    low: Any
    first: Any
    rows: int
    steps: int

    def lines(self, ev: Evaluator, at: Sequence[Ix], low: Sequence[Any], end: Any) -> Callable[[Any], None]:
        """What asks for a tile's share of it, into the second cache: a line of some rows, at a step of the tile's loop.

        at: the tile. low: the first row and column of its chunk; end: where its columns end. The tiles of the last
        panels ask: what came earlier would have left the cache again.
        """
        b, (height, width) = ev.b, ev.schedule.vector
        tiles = -(-self.rows // height)
        rows = -(-self.rows // (tiles * LAST_PANELS))
        behind = b.binary("arith.divui", b.sub(b.sub(end, b.scalar(at[1])), b.int(1)), b.int(width))
        tile = b.binary("arith.divui", b.sub(b.scalar(at[0]), low[0]), b.int(height))
        number = b.add(b.mul(b.sub(b.int(LAST_PANELS - 1), behind), b.int(tiles)), tile)
        first = b.add(self.low, b.mul(number, b.int(rows)))
        last = b.pure("arith.cmpi", b.i1, [behind, b.int(LAST_PANELS)],
                      predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ULT))

        def fetch(step: Any) -> None:
            """Nothing is read: an address past the last row is as good as any."""
            branch = scf_d.IfOp(last)
            with ir.InsertionPoint(branch.then_block), b.scope():
                for n in range(rows):
                    prefetch(ev.memory.buffers[self.t], [b.add(first, b.int(n)), b.add(self.first, step)], locality=2)
                scf_d.YieldOp([])

        return fetch


def room_for_rows(ev: Evaluator, rows: int) -> Any:
    """The memory of a chunk's copies, one after the other: what is left of a block's would be written back for nothing
    where the next block had its own."""
    t, found = left_rows(ev.kernel), depth_of(ev.kernel)
    steps = 0 if found is None else ev.schedule.depth or found[1]
    if t is None or steps % LANES:
        raise UserError(f"xcc.config of {ev.kernel.name}: staged needs a product of f32 whose left operand is an "
                        f"argument, in blocks of a multiple of {LANES} steps")
    kind = ir.MemRefType.get([rows, steps + LANES], t.element)
    return ev.b.op("memref.alloca", kind, [], operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                   alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4 * LANES))


def stage_rows(ev: Evaluator, copy: Any, low: Any, high: Any, emit: Callable[[], None]) -> None:
    """Copies rows [low, high) (None: as many as `copy` has), then calls `emit`, for which reads are of the copy."""
    t, b = left_rows(ev.kernel), ev.b
    assert t is not None
    rows, width = ir.MemRefType(copy.type).shape
    first, steps = b.int(0) if ev.block is None else ev.block.low, width - LANES
    lanes = next(n * LANES for n in (4, 2, 1) if steps % (n * LANES) == 0)
    count = b.int(rows) if high is None else b.sub(high, low)
    outer = scf_d.ForOp(b.int(0), count, b.int(1), [])
    with ir.InsertionPoint(outer.body), b.scope():
        inner = scf_d.ForOp(b.int(0), b.int(steps), b.int(lanes), [])
        with ir.InsertionPoint(inner.body), b.scope():
            row, k, walk = outer.induction_variable, inner.induction_variable, ((Axis(lanes, 1), 1),)
            value = ev.memory.load(t, [Ix(b.add(low, row)), Ix(b.add(first, k), 0, walk)])
            ev.memory.store(replace(t, dims=(rows, width)), copy, value, [Ix(row), Ix(k, 0, walk)])
            scf_d.YieldOp([])
        scf_d.YieldOp([])
    ev.memory.moved[t] = (copy, (low, first))
    below = b.add(low, b.int(rows))
    if ev.block is None or ev.schedule.parts:
        ev.next_rows = NextRows(t, below, first, rows, steps)
    elif ev.block.final:
        ev.next_rows = NextRows(t, below, b.int(0), rows, steps)
    else:
        ev.next_rows = NextRows(t, low, b.add(first, b.int(steps)), rows, steps)
    with b.scope():
        emit()
    ev.next_rows, ev.fetches = None, []
    del ev.memory.moved[t]
