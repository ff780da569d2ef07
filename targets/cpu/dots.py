"""Products of a few rows with columns that lie along the sum: `a @ b.T` of inputs, each result a dot product.

Lanes go along the sum, which both operands are read along, and are added up in the end: lanes along the result would
read a line of memory each, and to turn all of the columns first takes as long as some rows of the product.
"""

from __future__ import annotations

from xcc.passes.linalg.kernel.domain import element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop
from xcc.passes.linalg.kernel.right_columns import right_columns
from xcc.passes.linalg.schedule.schedule import CpuPart, Schedule
from xcc.passes.shared.packing import DOT_ROWS, DOT_STEPS
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.cpu.row_tiles import row_tile
from xcc.targets.cpu.rows import Widths

ROWS, COLUMNS = 7, 4    # of a tile, at most
SIXTEEN, FEWER_ROWS = 16, 4     # the same with so many registers
OPERANDS = 6            # registers beside those of the sums
CHUNK = 1 << 18     # bytes of columns
EACH = 4            # chunks of a core


def dots(kernel: Kernel, op: Op, dims: tuple[Dim, ...], m_dims: list[int], w: Widths, chip: Chip,
         parallel: bool) -> Schedule | None:
    """The schedule of the product `op` with rows along `m_dims`; None where its lanes go along the result."""
    found = right_columns(kernel)
    rows = dims[m_dims[0]] if len(m_dims) == 1 else 0
    if found is None or not found.turned or [o for o in kernel.ops if o.is_reduction] != [op] \
            or not isinstance(rows, int) or not 1 < rows <= DOT_ROWS:
        return None
    summed = next(p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1)
    wide = [element_bytes(t.element) for t, _ in op.inputs]
    narrow = element_bytes(found.t.element)         # 16-bit floats are widened a vector at a time
    if sorted(wide) != [narrow, 4] or narrow not in (2, 4) or any(bare_loop(at[-1]) != summed for _, at in op.inputs) \
            or estimate(found.steps) < DOT_STEPS:
        return None
    m, last, most = m_dims[0], len(dims) - 1, ROWS if w.registers > SIXTEEN else FEWER_ROWS
    tile = row_tile(rows, most)
    columns = max(1, min(COLUMNS, (w.registers - OPERANDS) // tile))
    vector, block = [1] * len(dims), [1] * len(dims)
    vector[m], block[m] = tile, tile * -(-rows // tile)
    vector[last] = columns
    tiles = CHUNK // (columns * narrow * estimate(found.steps))
    few = volume(dims[d] for d in range(last + 1) if d != m) // (columns * EACH * chip.cores)
    block[last] = columns * max(1, min(tiles, few))
    reduce = tuple(w.lanes if p == summed else 1 for p, r in enumerate(op.reduction) if r)
    outer = [d for d in range(last) if d not in m_dims]
    return Schedule(tuple(block), tuple(vector), (*outer, last, *m_dims), (reduce,), "peel", "rows", parallel=parallel,
                    cpu=CpuPart(along=True))
