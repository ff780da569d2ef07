"""Tile sizes of kernels whose sums are of products of products, as attention's gradients are."""

from __future__ import annotations

from xcc.passes.linalg.kernel.chained import ChainedGroup
from xcc.passes.linalg.kernel.domain import Domain, estimate, volume
from xcc.passes.linalg.kernel.kernel import Kernel, bare_loop, loop_index
from xcc.passes.linalg.kernel.reduction_body import loops_of, product_operands
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.targets.base import Chip
from xcc.targets.gpu_convolution import multiplied_type
from xcc.symbolic import symbols_of

WIDEST = 128    # features that a tile holds


def chained_schedule(kernel: Kernel, place: Domain, group: ChainedGroup, chip: Chip) -> Schedule | None:
    """Rows x features of each sum in one tile, a block of columns a step."""
    found = group.sums[0]
    factors, position = product_operands(found.op), place.position.get(found.op)
    if factors is None or position is None or any(bare_loop(e) is None for e in position):
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(found.op.outs[0], position, strict=True)}
    one, other = (loops_of(found.op, v) & set(to_dim) for v in factors)
    of_row = {int(s[1:]) for e in found.power[1] for s in symbols_of(e)}
    weights, values = (one, other) if one - other <= of_row else (other, one)
    rows, columns = sorted(weights - values), sorted(values - weights)
    size = found.op.loops[columns[0]] if len(columns) == 1 and rows else None
    if not isinstance(size, int) or size > WIDEST:
        return None
    row, column = to_dim[rows[-1]], to_dim[columns[0]]
    vector = [1] * len(place.dims)
    vector[column] = max(16, pow2_above(size))
    vector[row] = 64
    keys = 32
    element = str(multiplied_type(factors[0]))
    mma = any(i.types[0] == element and i.exact and i.family in chip.chained_families for i in instructions_of(chip))
    lanes = tuple(tuple(keys if o in {s.op for s in group.sums} else max(16, pow2_above(estimate(o.loops[p])))
                        for p, r in enumerate(o.reduction) if r) for o in kernel.ops if o.is_reduction)
    import os
    return Schedule(tuple(vector), tuple(vector), tuple(range(len(vector))), lanes, "mask", "gather", parallel=True,
                    online=True, gpu=GpuPart(threads=4 * chip.warp, stages=2,
                                             warpgroup=chip.warpgroup_products and os.environ.get("WG","1")=="1"))
