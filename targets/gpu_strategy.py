"""Tile sizes that the GPU targets share: (kernel, chip) -> Schedule, a pure function.

All lane counts are powers of two, so that layouts can split them over registers, lanes and warps. A block works on one
tile: rows that fit are reduced in one step with the row kept in registers; longer rows are walked in a loop.
"""

from __future__ import annotations

import math
from typing import Any

from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.gpu.fragments import instructions_of
from xcc.passes.linalg.domain import Domain, contraction_of, domain, element_bytes, estimate
from xcc.passes.linalg.kernel import Kernel, Op, loop_index
from xcc.passes.linalg.online import find_groups
from xcc.passes.linalg.schedule import Schedule
from xcc.passes.linalg.tile_eval import EXTENSIONS, loops_of, product_operands
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.gpu_attention import online_schedule
from xcc.targets.gpu_contraction import matrix_tile
from xcc.targets.gpu_convolution import flattened, pow2_above

ROW_IN_REGISTERS = 16384   # elements of a row that one block keeps
POINTWISE_TILE = 1024
ROW_TILE = 2048
LOOP_LANES = 1024


def configure(kernel: Kernel, chip: Chip) -> Schedule:
    """The schedule of `kernel` on `chip`."""
    place = domain(kernel)
    for group in find_groups(kernel):
        online = online_schedule(kernel, place, group)
        if online is not None:
            return online
    op = contraction_of(kernel)
    if op is not None:
        found = flattened(kernel, place, op, chip) or _contraction(kernel, place, op, chip)
        if found is not None:
            return found
    return _rows(kernel, place, chip)


def _bare(e: Dim) -> int | None:
    text = str(e)
    return int(text[1:]) if isinstance(e, symbolic.Expr) and text[0] == "i" and text[1:].isdigit() else None


def _threads(elements: int, chip: Chip) -> int:
    """Threads for a tile: about 8 elements each, whole warps, at most 256."""
    return max(chip.warp, min(256, chip.max_threads, pow2_above(max(1, elements // 8))))


def _contraction(kernel: Kernel, place: Domain, op: Op, chip: Chip) -> Schedule | None:
    position, factors, dims = place.position.get(op), product_operands(op), place.dims
    if position is None or factors is None or not dims or any(_bare(e) is None for e in position):
        return None
    to_dim = {loop_index(o): _bare(e) for o, e in zip(op.outs[0], position, strict=True)}
    used = [loops_of(op, v) for v in factors]
    only = [{d for p, d in to_dim.items() if d is not None and p in used[n] and p not in used[1 - n]} for n in (0, 1)]
    if not only[0] or not only[1]:
        return None
    shared = used[0] & used[1]
    inner = _widest_reduction(op, shared)
    sides = [math.prod(estimate(dims[d]) for d in group) for group in only]
    batch = math.prod(estimate(d) for n, d in enumerate(dims) if n not in only[0] | only[1])
    deep = 1 if inner is None else estimate(op.loops[inner])
    element = _multiplied_type(factors[0])
    instructions = [i for i in instructions_of(chip.matrix) if i.types[0] == str(element) and i.exact]
    deepest = deep * _other_reductions(op, inner)
    tile = matrix_tile(sides[0], sides[1], deepest, batch, element_bytes(element), not instructions, chip)
    vector = [1] * len(dims)
    least = [min((getattr(i, side) for i in instructions), default=1) for side in ("m", "n", "k")]
    for group, limit, small in zip(only, (tile.m, tile.n), least, strict=False):
        room = limit
        for d in sorted(group, reverse=True):
            vector[d] = min(room, pow2_above(estimate(dims[d])))
            room //= vector[d]
            if room < 2 or vector[d] < pow2_above(estimate(dims[d])):
                break
        held = math.prod(vector[d] for d in group)
        if held < small:        # padded to the instruction's side
            vector[max(group)] *= small // held
    depth = max(least[2], min(tile.k, pow2_above(deep))) if inner is not None else 1
    reduce = tuple(
        tuple(depth if p == inner else 1 for p, r in enumerate(op.reduction) if r) if o is op else _row_lanes(o, chip)
        for o in kernel.ops if o.is_reduction)
    order = tuple(range(len(dims)))
    return Schedule(tuple(vector), tuple(vector), order, reduce, "mask", "gather", parallel=True,
                    threads=tile.threads, stages=tile.stages, group=tile.group)


def _multiplied_type(value: Any) -> Any:
    """The element type of a factor before it is widened to the accumulator's."""
    owner = value.owner
    return owner.operands[0].type if not isinstance(owner, ir.Block) and owner.name in EXTENSIONS else value.type


def _other_reductions(op: Op, inner: int | None) -> int:
    return math.prod(estimate(op.loops[p]) for p, r in enumerate(op.reduction) if r and p != inner)


def _widest_reduction(op: Op, shared: set[int]) -> int | None:
    loops = [p for p, r in enumerate(op.reduction) if r and p in shared and op.loops[p] != 1]
    return max(loops, key=lambda p: (estimate(op.loops[p]), p)) if loops else None


def _row_lanes(op: Op, chip: Chip) -> tuple[int, ...]:
    """A whole contiguous row when it is known to fit, else a loop over wide pieces; scalar loops elsewhere."""
    inner = _contiguous_loop(op)
    out = []
    for p, r in enumerate(op.reduction):
        if not r:
            continue
        size = op.loops[p]
        if p != inner:
            out.append(1)
        elif isinstance(size, int) and size <= ROW_IN_REGISTERS:
            out.append(pow2_above(size))
        else:
            out.append(LOOP_LANES)
    return tuple(out)


def _contiguous_loop(op: Op) -> int | None:
    if not op.inputs:
        return None
    _, access = max(op.inputs, key=lambda i: len(i[1]))
    if not access or not isinstance(access[-1], symbolic.Expr):
        return None
    names = [m[0][0] for m, c in access[-1].terms if len(m) == 1 and c == 1 and len(m[0]) == 1]
    return int(names[0][1:]) if len(names) == 1 and names[0].startswith("i") else None


def _rows(kernel: Kernel, place: Domain, chip: Chip) -> Schedule:
    dims = place.dims
    reductions = [o for o in kernel.ops if o.is_reduction]
    reduce = tuple(_row_lanes(o, chip) for o in reductions)
    if not dims:
        return Schedule((), (), (), reduce, "mask", "gather", parallel=True, threads=256)
    last = len(dims) - 1
    vector, block = [1] * len(dims), [1] * len(dims)
    row = max((n for lanes in reduce for n in lanes), default=1)
    size = dims[last]
    if row > 1 and not _reduced_to_main(place, reductions):
        vector[last] = pow2_above(size) if isinstance(size, int) and size <= ROW_IN_REGISTERS else LOOP_LANES
        block[last] = 0     # one block walks the whole row: its reductions are shared by all of it
    elif row == 1:
        vector[last] = min(POINTWISE_TILE if len(dims) == 1 else POINTWISE_TILE // 4, pow2_above(estimate(size)))
        block[last] = vector[last]
    room = max(1, (ROW_TILE if row > 1 else POINTWISE_TILE) // max(vector[last], row))
    across = _transposed_dim(place) if row == 1 else None
    if across is not None:
        vector[last] = block[last] = min(32, pow2_above(estimate(size)))
        vector[across] = block[across] = min(32, pow2_above(estimate(dims[across])))
    else:
        for d in range(last - 1 if vector[last] > 1 or row == 1 else last, -1, -1):
            lanes = min(room, pow2_above(estimate(dims[d])))
            vector[d] = block[d] = lanes
            room //= lanes
            if room < 2:
                break
    tile = row
    for v in vector:
        tile *= v
    if row > 1 and vector[last] >= row:
        tile //= row
    return Schedule(tuple(block), tuple(vector), tuple(range(len(dims))), reduce, "mask", "gather", parallel=True,
                    threads=_threads(tile, chip))


def _reduced_to_main(place: Domain, reductions: list[Op]) -> bool:
    """Whether the kernel's result is the reduced value itself (and what is pointwise on it)."""
    return any(place.position.get(o) == tuple(symbolic.sym(f"i{d}") for d in range(len(place.dims)))
               for o in reductions)


def _transposed_dim(place: Domain) -> int | None:
    """A domain dim, not the last, that is contiguous in a large argument."""
    last = len(place.dims) - 1
    for t, access in place.reads:
        if len(access) < 2 or len(t.dims) < len(place.dims):
            continue
        inner = _bare(access[-1])
        if inner is not None and inner != last and any(_bare(e) == last for e in access):
            return inner
    return None
