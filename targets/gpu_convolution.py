"""Schedules of contractions whose rows are several dims, as a convolution's: one matrix product over flattened dims.

The rows (image, height, width) make one tile dim, and the window with the input channels makes one reduction loop, so
that a convolution is tiled and multiplied as the matrix product that it is, whatever the sizes of its maps.
"""

from __future__ import annotations

import math

from xcc import symbolic
from xcc._mlir import Type, Value, ir
from xcc.passes.gpu.layout.fragments import MatrixInstruction, instructions_for
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop, loop_index
from xcc.passes.linalg.kernel.reduction_body import EXTENSIONS, is_lossy, loops_of, narrow, product_operands
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.gpu_contraction import matrix_tile, may_stream
from xcc.targets.gpu_operands import along, loaded


def flattened(kernel: Kernel, place: Domain, op: Op, chip: Chip) -> Schedule | None:
    """The schedule, or None when `op`'s rows and reductions are single dims already or cannot be walked as one."""
    position, factors = place.position.get(op), product_operands(op)
    if position is None or factors is None:
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(op.outs[0], position, strict=True)}
    used = [loops_of(op, v) for v in factors]
    sides = [sorted(d for p, d in to_dim.items() if d is not None and p in used[n] and p not in used[1 - n])
             for n in (0, 1)]
    if not all(side and _neighbours(side) for side in sides) or any(d is None for d in to_dim.values()):
        return None
    joined = _joined(op)
    if all(len(side) == 1 for side in sides) and not joined:
        return None
    groups: list[list[int]] = []
    for d in range(len(place.dims)):
        side = next((s for s in sides if d in s), [d])
        if side[0] == d:
            groups.append(side)
    sizes = [volume(place.dims[d] for d in group) for group in groups]
    rows, columns = (groups.index(side) for side in sides)
    loops = [p for p, r in enumerate(op.reduction) if r]
    deep = volume(op.loops[p] for p in loops)
    batch = volume(place.dims) // max(1, sizes[rows] * sizes[columns])
    element = multiplied_type(factors[0])
    instructions = instructions_for(chip, multiplied_types(factors), is_lossy(op))
    width = element_bytes(element)
    tile = matrix_tile(sizes[rows], sizes[columns], deep, batch, width, not instructions, chip,
                       operands=(loaded(op, factors[0], width), loaded(op, factors[1], width)),
                       warpgroup=takes_warpgroups(op, factors, instructions),
                       streams=len(groups) == 2 and may_stream(kernel, op, joined))
    least = [min((getattr(i, side) for i in instructions), default=1) for side in ("m", "n")]
    block = [1] * len(groups)
    block[rows] = max(least[0], min(tile.m, pow2_above(sizes[rows])))
    block[columns] = max(least[1], min(tile.n, pow2_above(sizes[columns])))
    inner = joined[-1] if joined else max(loops, key=lambda p: estimate(op.loops[p]))
    depth = max(least_depth(instructions, block[rows], block[columns]),
                min(tile.k, pow2_above(deep if joined else estimate(op.loops[inner]))))
    reduce, joins = [], []
    for o in kernel.ops:
        if o.is_reduction:
            joins.append(joined if o is op else ())
            reduce.append(tuple(depth if o is op and p == inner else 1 for p, r in enumerate(o.reduction) if r))
    tiles = math.prod(-(-size // side) for size, side in zip(sizes, block, strict=True))
    return Schedule(tuple(block), tuple(block), tuple(range(len(groups))), tuple(reduce), "mask", "gather",
                    parallel=True, flatten=tuple(len(g) for g in groups), joined=tuple(joins), gpu=GpuPart(
                        threads=tile.threads, stages=tile.stages, group=tile.group, warpgroup=tile.warpgroup,
                        streamed=(tiles, tile.workers) if tile.workers else ()))


def _neighbours(dims: list[int]) -> bool:
    return dims == list(range(dims[0], dims[-1] + 1))


def _joined(op: Op) -> tuple[int, ...]:
    """The reduction loops in the order in which an input walks them by ones, when they are several."""
    wanted = {p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1}
    if len(wanted) < 2:
        return ()
    for _, access in op.inputs:
        loops = [p for p in map(_innermost, access) if p in wanted]
        if set(loops) == wanted:
            return tuple(p for p in loops if p is not None)
    return ()


def _innermost(e: Dim) -> int | None:
    """The loop that walks a dim by ones, alone or within a block that others choose (``4*i0 + i5``)."""
    ones = [m for m, c in e.terms if c == 1] if isinstance(e, symbolic.Expr) else []
    return bare_loop(symbolic.Expr({ones[0]: 1})) if len(ones) == 1 else None


def multiplied_type(value: Value) -> Type:
    """The element type of a factor before it is widened to the accumulator's."""
    owner = value.owner
    return owner.operands[0].type if not isinstance(owner, ir.Block) and owner.name in EXTENSIONS else value.type


def multiplied_types(factors: tuple[Value, Value]) -> tuple[str, str]:
    """The element types of a product's contraction, named as in the tables of instructions: as they are before they are
    widened, if both are of as many bits."""
    same = len({narrow(v).type for v in factors}) == 1

    def name(value: Value) -> str:
        unsigned = not isinstance(value.owner, ir.Block) and value.owner.name == "arith.extui"
        return ("u" if unsigned else "") + str(narrow(value).type) if same else str(value.type)

    return name(factors[0]), name(factors[1])


def least_depth(instructions: list[MatrixInstruction], rows: int, columns: int) -> int:
    """The fewest k that an instruction takes for a tile: those of smaller sides want more."""
    fitting = [i for i in instructions if i.m <= rows and i.n <= columns]
    return min((i.k for i in fitting or instructions), default=1)


def takes_warpgroups(op: Op, factors: tuple[Value, Value], instructions: list[MatrixInstruction]) -> bool:
    """Whether `instructions` has one of warpgroups for the product: only where both factors lie along k, but for
    elements of two bytes."""
    if not any(i.warps > 1 for i in instructions):
        return False
    summed = {p for p, r in enumerate(op.reduction) if r}
    return element_bytes(multiplied_type(factors[0])) == 2 or all(along(op, v, summed) for v in factors)
