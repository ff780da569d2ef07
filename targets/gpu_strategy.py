"""Tile sizes that the GPU targets share: (kernel, chip) -> Schedule, a pure function.

All lane counts are powers of two, so that layouts can split them over registers, lanes and warps.
"""

from __future__ import annotations

import math

from xcc.passes.gpu.layout.fragments import instructions_for
from xcc.passes.linalg.kernel.chained import find_chained
from xcc.passes.linalg.kernel.domain import Domain, contraction_of, domain, element_bytes, estimate
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop, loop_index
from xcc.passes.linalg.kernel.online import find_groups
from xcc.passes.linalg.kernel.reduction_body import is_lossy, loops_of, product_operands
from xcc.passes.linalg.schedule.by_size import Few
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.gpu_attention import online_schedule
from xcc.targets.gpu_contraction import column_unit, matrix_tile, may_stream
from xcc.targets.gpu_convolution import (
    flattened,
    least_depth,
    multiplied_type,
    multiplied_types,
    takes_warpgroups,
)
from xcc.targets.gpu_gradients import chained_schedule
from xcc.targets.gpu_long_rows import long_rows
from xcc.targets.gpu_operands import loaded
from xcc.targets.gpu_product_rows import product_rows
from xcc.targets.gpu_rows import row_lanes, row_schedule
from xcc.targets.gpu_sizes import few_of
from xcc.targets.gpu_window_sums import window_sums

LONG = 65536    # terms of a sum of unknown length


def configure(kernel: Kernel, chip: Chip) -> Schedule:
    """The schedule of `kernel` on `chip`."""
    place = domain(kernel)
    for group in find_groups(kernel):
        online = online_schedule(kernel, place, group, chip)
        if online is not None:
            return online
    for chained in find_chained(kernel):
        together = chained_schedule(kernel, place, chained, chip)
        if together is not None:
            return together
    op = contraction_of(kernel)
    if op is not None:
        found = product_rows(kernel, place, op, chip) or flattened(kernel, place, op, chip) \
            or _contraction(kernel, place, op, chip)
        if found is not None:
            return found
    return window_sums(kernel, place, chip) or long_rows(kernel, place, chip) or row_schedule(kernel, place, chip)


def few_rows(kernel: Kernel, many: Schedule, chip: Chip) -> tuple[Few, ...]:
    """The schedule to take beside `many`, that of `kernel`, where its sizes turn out to be small."""
    few = few_of(kernel, many, chip, configure)
    return () if few is None else (few,)


def _contraction(kernel: Kernel, place: Domain, op: Op, chip: Chip) -> Schedule | None:
    position, factors, dims = place.position.get(op), product_operands(op), place.dims
    if position is None or factors is None or not dims or any(bare_loop(e) is None for e in position):
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(op.outs[0], position, strict=True)}
    used = [loops_of(op, v) for v in factors]
    only = [{d for p, d in to_dim.items() if d is not None and p in used[n] and p not in used[1 - n]} for n in (0, 1)]
    if not only[0] or not only[1]:
        return None
    shared = used[0] & used[1]
    inner = _widest_reduction(op, shared)
    sides = [math.prod(estimate(dims[d]) for d in group) for group in only]
    batch = math.prod(estimate(d) for n, d in enumerate(dims) if n not in only[0] | only[1])
    deep = 1 if inner is None else _terms(op.loops[inner])
    element = multiplied_type(factors[0])
    instructions = instructions_for(chip, multiplied_types(factors), is_lossy(op))
    deepest = deep * _other_reductions(op, inner)
    width = element_bytes(element)
    several = sum(estimate(dims[d]) > 1 for d in only[1]) > 1        # powers of two share them
    unit = 0 if several else column_unit(kernel, op, shared, width)
    tile = matrix_tile(sides[0], sides[1], deepest, batch, width, not instructions, chip, _exchanged_bytes(kernel),
                       (loaded(op, factors[0], width), loaded(op, factors[1], width)),
                       takes_warpgroups(op, factors, instructions), unit, len(dims) == 2 and may_stream(kernel, op))
    vector = [1] * len(dims)
    least = [min((getattr(i, side) for i in instructions), default=1) for side in ("m", "n")]
    for group, limit, small in zip(only, (tile.m, pow2_above(tile.n)), least, strict=False):
        room = limit
        for d in sorted(group, reverse=True):
            vector[d] = min(room, pow2_above(estimate(dims[d])))
            room //= vector[d]
            if room < 2 or vector[d] < pow2_above(estimate(dims[d])):
                break
        held = math.prod(vector[d] for d in group)
        if held < small:        # padded to the instruction's side
            vector[max(group)] *= small // held
    rows, columns = (math.prod(vector[d] for d in group) for group in only)
    depth = max(least_depth(instructions, rows, columns), min(tile.k, pow2_above(deep))) if inner is not None else 1
    reduce = tuple(
        tuple(depth if p == inner else 1 for p, r in enumerate(op.reduction) if r) if o is op else row_lanes(o)
        for o in kernel.ops if o.is_reduction)
    order = tuple(range(len(dims)))
    block = tuple(min(lanes, tile.n) if d == max(only[1]) else lanes for d, lanes in enumerate(vector))
    tiles = math.prod(-(-estimate(size) // lanes) for size, lanes in zip(dims, block, strict=True))
    return Schedule(block, tuple(vector), order, reduce, "mask", "gather", parallel=True, gpu=GpuPart(
        threads=tile.threads, stages=tile.stages, group=tile.group, warpgroup=tile.warpgroup,
        streamed=(tiles, tile.workers) if tile.workers else (),
        persistent=chip.cores if tile.warpgroup and tiles > chip.cores and not _sends(kernel) else 0))


def _sends(kernel: Kernel) -> bool:
    """Whether a result is stored twice, as it is where another GPU reads one of the two (push-results). Over the link
    stores take as long as the tile's products: threads that go on to the next tile wait for them, where those of a
    workgroup that ends make room for another one."""
    return len(set(map(id, kernel.results))) < len(kernel.results)


def _exchanged_bytes(kernel: Kernel) -> int:
    """Of an element of a computed index (8), where the kernel gathers: those change layouts with the result's tile."""
    gathers = any(inner.operation.name == "tensor.extract" for o in kernel.ops if o.operation is not None
                  for inner in o.block.operations)
    return 8 if gathers else 0


def _terms(length: Dim) -> int:
    """Of a sum, which is taken as long where nobody knows."""
    return length if isinstance(length, int) else max(LONG, estimate(length))


def _other_reductions(op: Op, inner: int | None) -> int:
    return math.prod(estimate(op.loops[p]) for p, r in enumerate(op.reduction) if r and p != inner)


def _widest_reduction(op: Op, shared: set[int]) -> int | None:
    loops = [p for p, r in enumerate(op.reduction) if r and p in shared and op.loops[p] != 1]
    return max(loops, key=lambda p: (estimate(op.loops[p]), p)) if loops else None
