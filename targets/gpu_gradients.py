"""Tile sizes of kernels whose sums are of products of products, as attention's gradients are."""

from __future__ import annotations

from xcc.passes.linalg.kernel.chained import ChainedSum
from xcc.passes.linalg.kernel.domain import Domain, estimate
from xcc.passes.linalg.kernel.kernel import Kernel, bare_loop, loop_index
from xcc.passes.linalg.kernel.reduction_body import loops_of, product_operands
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.symbolic import symbols_of
from xcc.targets.base import Chip
from xcc.targets.gpu_convolution import multiplied_type

ROWS = 64           # of a tile: 16 a warp, or a warpgroup's
COLUMNS = (64, 32)  # of a step, the most first
FEW = 64            # features of one sum that leave registers for the most columns, with any mask
STEP = 8            # columns that would take as long as a step does beside its columns


def chained_schedule(kernel: Kernel, place: Domain, group: list[ChainedSum], chip: Chip) -> Schedule | None:
    """Rows x features of each sum in one tile, a block of columns a step; None without matrix instructions for it."""
    found = next((s for s in group if s.op in place.position), None)     # of the result that the tile is of
    factors, position = (product_operands(found.op), place.position[found.op]) if found is not None else (None, None)
    if found is None or factors is None or position is None or any(bare_loop(e) is None for e in position):
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(found.op.outs[0], position, strict=True)}
    one, other = (loops_of(found.op, v) & set(to_dim) for v in factors)
    of_row = {int(s[1:]) for e in found.power[1] for s in symbols_of(e)}
    weights, values = (one, other) if one - other <= of_row else (other, one)
    rows, columns = sorted(weights - values), sorted(values - weights)
    size = found.op.loops[columns[0]] if len(columns) == 1 and rows else None
    row, column = (to_dim[rows[-1]], to_dim[columns[0]]) if size is not None else (None, None)
    if not isinstance(size, int) or row is None or column is None or size > chip.chained_features \
            or not any(i.types[0] == str(multiplied_type(factors[0])) and i.exact for i in instructions_of(chip)):
        return None
    vector = [1] * len(place.dims)
    vector[column], vector[row] = max(16, pow2_above(size)), ROWS
    sums = {s.op for s in group}
    few = not chip.warpgroup_products or len(sums) > 1 or vector[column] > FEW
    step = _columns(estimate(found.op.loops[found.loop]), few)
    lanes = tuple(tuple(step if o in sums else max(16, pow2_above(estimate(o.loops[p])))
                        for p, r in enumerate(o.reduction) if r) for o in kernel.ops if o.is_reduction)
    return Schedule(tuple(vector), tuple(vector), tuple(range(len(vector))), lanes, "mask", "gather", parallel=True,
                    online=True, gpu=GpuPart(threads=2 * ROWS if chip.chained_families else 4 * ROWS, stages=2,
                                             warpgroup=chip.warpgroup_products))


def _columns(length: int, few: bool) -> int:
    """Columns of a step, of a loop over `length`, which should fill the last one; `few`: not the most."""
    return min(COLUMNS[few:], key=lambda n: -(-length // n) * (n + STEP))
