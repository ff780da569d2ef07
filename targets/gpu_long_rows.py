"""Rows too few to keep all cores busy and too long for one: their reductions in parts, a workgroup each."""

from __future__ import annotations

from xcc import symbolic
from xcc.passes.linalg.evaluate.row_parts import levels_of
from xcc.passes.linalg.kernel.domain import Domain, volume
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.attributes import PART
from xcc.passes.shared.dims import pow2_above
from xcc.targets.base import Chip
from xcc.targets.gpu_rows import ROW_IN_REGISTERS, reduced_to_main

PART_LANES = 4096           # elements of a step of a part
MOST_PARTS, FEWEST_PARTS = 256, 4
TILE = 2048                 # elements of what is pointwise on rows
BLOCKS = 2                  # of a core


def long_rows(kernel: Kernel, place: Domain, chip: Chip) -> Schedule | None:
    """Parts of 4096 elements or more, as many as give each core a few; None where rows are short, or many.

    Kernels that share a launch with others have no second one.
    """
    reductions = [o for level in levels_of(kernel) for o in level]
    if not reductions or len(kernel.results) > 1 or PART in kernel.function.attributes:
        return None
    loops = {o: _row_loops(o) for o in reductions}
    if not all(loops.values()) or not all(symbolic.is_static((*o.loops, *o.results[0].dims)) for o in reductions):
        return None
    sizes = [volume(o.loops[p] for p in loops[o]) for o in reductions]
    rows = max(volume(o.results[0].dims) for o in reductions)
    if min(sizes) <= ROW_IN_REGISTERS:
        return None
    parts = min(MOST_PARTS, min(sizes) // PART_LANES, BLOCKS * chip.cores // rows)
    if parts < FEWEST_PARTS:
        return None
    vector = [1] * len(place.dims)
    if vector and not reduced_to_main(place, reductions):
        vector[-1] = min(TILE, pow2_above(volume(place.dims[-1:])))
    ordered = [o for o in kernel.ops if o.is_reduction]
    by_op = [tuple(PART_LANES if p == loops[o][-1] else 1 for p, r in enumerate(o.reduction) if r) for o in ordered]
    joined = tuple(loops[o] if len(loops[o]) > 1 else () for o in ordered)
    return Schedule(tuple(vector), tuple(vector), tuple(range(len(vector))), tuple(by_op), "mask", "gather",
                    parallel=True, joined=joined if any(joined) else (), gpu=GpuPart(threads=256, splits=parts))


def _row_loops(op: Op) -> tuple[int, ...]:
    """The reduction loops of `op`, outermost first, where they walk what lies together; else ()."""
    loops = {p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1}
    access = max((a for _, a in op.inputs), key=len, default=())
    last = [bare_loop(e) for e in access[len(access) - len(loops):]]
    return tuple(p for p in last if p is not None) if set(last) == loops and len(last) == len(loops) else ()
