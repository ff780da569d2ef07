"""The left operand of a large product, packed on the fly, while its first panel of columns is multiplied.

    memref.alloca %rows : memref<56x1040xf32>         (on the stack; in the L2 cache while the chunk lasts)
    for panel, tile, line of 16 steps:
      (the tile's rows of the first panel)
        %rows[i, line + 1] = %x[low + i, first + line + 1]
        prefetch %x[low + i, first + line + 5]        (beyond the block: the next tile's rows)
      (16 steps read %rows)

Rows that lie some power of two apart share a few sets of the caches, so that a block of them does not stay there. The
copy is a share of 1 / (2 * columns) of the work, done between the multiplications; its rows begin a line further on
each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from xcc._mlir import Value, ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.build.buffers import prefetch
from xcc.passes.linalg.build.tile_values import Axis, Ix
from xcc.passes.linalg.evaluate.depth_blocks import depth_of
from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor, bare_loop
from xcc.passes.linalg.schedule.decisions import DEPTH, count_of
from xcc.passes.shared.regions import when
from xcc.passes.shared.values import predicate

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

LANES = 16          # f32 of a cache line
AHEAD = 4           # lines of a row that are asked for before they are copied: some 900 cycles of multiplications


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
class StagedRows:
    """Where the rows of `t` from `low` on, steps from `first` on, are copied to, while the columns from `left` on are
    multiplied: `steps` of each."""

    t: Tensor
    copy: Value
    low: Value
    first: Value
    left: Value
    steps: int

    def lines(self, ev: Evaluator, at: Sequence[Ix]) -> Callable[[Any], None]:
        """Copies the first line of the tile at `at`; gives what copies one more, called with each line's first step."""
        b, rows = ev.b, at[0].axes
        count, limit = (rows[0].size, rows[0].limit) if rows else (1, None)
        row = b.sub(b.scalar(at[0]), self.low)
        copied = replace(self.t, dims=tuple(ir.MemRefType(self.copy.type).shape))
        is_first = b.pure("arith.cmpi", b.i1, [b.scalar(at[1]), self.left], predicate=predicate("eq"))

        def when_first(body: Callable[[], None]) -> None:
            with when(is_first), b.scope():
                body()

        def copy_line(step: Value) -> None:
            walk, x = ((Axis(LANES, 1), 1),), ev.memory.buffers[self.t]
            for n in range(count):
                at_most = b.int(n) if limit is None else b.binary("arith.minsi", b.int(n), b.sub(limit, b.int(1)))
                to = b.add(row, at_most)        # rows past a limit: the last one once more
                value = ev.memory.load_from(x, [Ix(b.add(self.low, to)), Ix(b.add(self.first, step), 0, walk)])
                ev.memory.store(copied, self.copy, value, [Ix(to), Ix(step, 0, walk)])

        def ask(step: Value) -> None:
            """Nothing is read: an address past the last row is as good as any."""
            later = b.binary("arith.divui", step, b.int(self.steps))
            step = b.sub(step, b.mul(later, b.int(self.steps)))
            begin = b.add(b.add(self.low, row), b.mul(later, b.int(count)))
            for n in range(count):
                prefetch(ev.memory.buffers[self.t], [b.add(begin, b.int(n)), b.add(self.first, step)], locality=2)

        def line(step: Value) -> None:
            copy_line(b.binary("arith.minsi", b.add(step, b.int(LANES)), b.int(self.steps - LANES)))
            ask(b.add(step, b.int((1 + AHEAD) * LANES)))

        when_first(lambda: copy_line(b.int(0)))
        return lambda step: when_first(lambda: line(step))


def packed_product(kernel: Kernel) -> Op:
    """The product whose left operand is to be packed; UserError where it cannot be."""
    return _packed(kernel)[1]


def _packed(kernel: Kernel) -> tuple[Tensor, Op, int]:
    """What is packed, the product that reads it, and how many steps at a time."""
    t, found = left_rows(kernel), depth_of(kernel)
    steps = 0 if found is None else count_of(found[0], DEPTH) or found[1]
    if t is None or found is None or steps % LANES:
        raise UserError(f"{kernel.function.location}: packed rows need a product of f32 whose left operand is an "
                        f"argument, in blocks of a multiple of {LANES} steps")
    return t, found[0], steps


def room_for_rows(ev: Evaluator, rows: int) -> Value:
    """The memory of a chunk's copies, one after the other: what is left of a block's would be written back for nothing
    where the next block had its own."""
    t, _, steps = _packed(ev.kernel)
    kind = ir.MemRefType.get([rows, steps + LANES], t.element)
    return ev.b.op("memref.alloca", kind, [], operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                   alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4 * LANES))


def stage_rows(ev: Evaluator, copy: Value, low: Value, left: Value, emit: Callable[[], None]) -> None:
    """Calls `emit`, in which reads of the left operand are of `copy`, its rows from `low` on; tiles of the columns at
    `left`, the first of the chunk, fill it with what they read (`ev.staged`)."""
    t, b = left_rows(ev.kernel), ev.b
    assert t is not None
    first, steps = b.int(0) if ev.block is None else ev.block.low, ir.MemRefType(copy.type).shape[1] - LANES
    ev.memory.moved[t] = (copy, (low, first))
    ev.staged = StagedRows(t, copy, low, first, left, steps)
    with b.scope():
        emit()
    ev.staged, ev.fetches = None, []
    del ev.memory.moved[t]
