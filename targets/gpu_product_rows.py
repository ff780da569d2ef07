"""Tiles of products whose rows are reduced in the same kernel: whole rows of the result lie in one workgroup."""

from __future__ import annotations

from xcc.passes.gpu.layout.fragments import instructions_for
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop, loop_index
from xcc.passes.linalg.kernel.reduction_body import is_lossy, loops_of, product_operands
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.targets.base import Chip
from xcc.targets.front import TILE_ROW
from xcc.targets.gpu_convolution import multiplied_type, multiplied_types

TILE_ROWS = 64      # rows of it, as few as 16 where that keeps more cores busy
HELD = 64           # registers of a thread for the result: what is computed from a row needs as many again
ENOUGH = 224        # registers of a thread; it holds half as many results where there are fewer
DEPTH = 64          # bytes of a step along k; twice that for instructions of warpgroups
STAGES = 4


def product_rows(kernel: Kernel, place: Domain, op: Op, chip: Chip) -> Schedule | None:
    """Rows x all columns in a tile, the product's loop inside, for a product `op` with reductions over its columns."""
    position, factors, dims = place.position.get(op), product_operands(op), place.dims
    others = [o for o in kernel.ops if o.is_reduction and o is not op]
    if not others or position is None or factors is None or any(bare_loop(e) is None for e in position):
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(op.outs[0], position, strict=True)}
    column, size = len(dims) - 1, dims[-1]
    used = [loops_of(op, v) for v in factors]
    inner = max((p for p, r in enumerate(op.reduction) if r and p in used[0] & used[1] and op.loops[p] != 1),
                key=lambda p: estimate(op.loops[p]), default=None)
    walks = next((p for p, d in to_dim.items() if d == column), None)
    side = used[0] if walks in used[1] else used[1]
    rows = [d for p, d in to_dim.items() if d is not None and p in side and p not in used[0] & used[1]]
    if not isinstance(size, int) or size > TILE_ROW or inner is None or walks is None or not rows \
            or any(sum(o.reduction) != 1 or o.loops[o.reduction.index(True)] != size for o in others):
        return None
    element = multiplied_type(factors[0])
    found = [i for i in instructions_for(chip, multiplied_types(factors), is_lossy(op)) if i.warps == 1]
    width, lanes = element_bytes(element), max(pow2_above(size), min((i.n for i in found), default=8))
    row = max(rows)
    count = volume(d for n, d in enumerate(dims) if n != column)
    height = min(TILE_ROWS if found else TILE_ROWS // 2, max(16, pow2_above(estimate(dims[row]))))
    while height > 16 and -(-count // height) < chip.cores:
        height //= 2
    held = HELD if chip.vector_registers >= ENOUGH else HELD // 2
    threads = max(2 * chip.warp, min(256, height * lanes // held))
    warpgroup = chip.warpgroup_products and width == 2 and height >= TILE_ROWS and threads >= 4 * chip.warp
    depth = min((2 * DEPTH if warpgroup else DEPTH) // width, max(16, pow2_above(estimate(op.loops[inner]))))
    depth = max(depth, *(i.k for i in found[:1]), 8)
    room = chip.shared_bytes * 7 // 8 // ((height + lanes) * depth * width)
    vector = tuple(height if d == row else lanes if d == column else 1 for d in range(len(dims)))
    reduce = tuple(tuple((depth if p == inner else 1) if o is op else lanes
                         for p, r in enumerate(o.reduction) if r) for o in kernel.ops if o.is_reduction)
    return Schedule((*vector[:-1], 0), vector, tuple(range(len(dims))), reduce, "mask", "gather", parallel=True,
                    gpu=GpuPart(threads=threads, stages=min(STAGES, room) if room > 1 else 0, warpgroup=warpgroup))
