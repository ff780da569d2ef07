"""Schedules of contractions whose rows are several dims, as a convolution's: one matrix product over flattened dims.

The rows (image, height, width) make one tile dim, and the window with the input channels makes one reduction loop, so
that a convolution is tiled and multiplied as the matrix product that it is, whatever the sizes of its maps.
"""

from __future__ import annotations

from xcc import symbolic
from xcc.passes.linalg.domain import Domain, element_bytes, estimate, volume
from xcc.passes.linalg.kernel import Kernel, Op, loop_index
from xcc.passes.linalg.schedule import Schedule
from xcc.passes.linalg.tile_eval import loops_of, product_operands
from xcc.symbolic import Dim
from xcc.targets.base import Chip

# rows, columns and threads of a workgroup's tile, the most reuse of operands first
TILES = ((128, 128, 256), (128, 64, 128), (64, 64, 128), (64, 32, 128), (32, 32, 64))


def flattened(kernel: Kernel, place: Domain, op: Op, chip: Chip) -> Schedule | None:
    """The schedule, or None when `op`'s rows and reductions are single dims already or cannot be walked as one."""
    position, factors = place.position.get(op), product_operands(op)
    if position is None or factors is None:
        return None
    to_dim = {loop_index(o): _bare(e) for o, e in zip(op.outs[0], position, strict=True)}
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
    if columns < rows:      # the last tile dim is the columns
        rows, columns = columns, rows
    outer = volume(place.dims) // max(1, sizes[rows] * sizes[columns])
    tile_rows, tile_columns, threads = _tile(sizes[rows], sizes[columns], outer, chip)
    block = [1] * len(groups)
    block[rows], block[columns] = tile_rows, tile_columns
    reduce, joins = [], []
    for o in kernel.ops:
        if o.is_reduction:
            joins.append(joined if o is op else ())
            reduce.append(_lanes(o, joined, kernel) if o is op else tuple(1 for r in o.reduction if r))
    return Schedule(tuple(block), tuple(block), tuple(range(len(groups))), tuple(reduce), "mask", "gather",
                    parallel=True, threads=threads, flatten=tuple(len(g) for g in groups), joined=tuple(joins))


def _bare(e: Dim) -> int | None:
    text = str(e)
    return int(text[1:]) if isinstance(e, symbolic.Expr) and text[0] == "i" and text[1:].isdigit() else None


def _neighbours(dims: list[int]) -> bool:
    return dims == list(range(dims[0], dims[-1] + 1))


def _joined(op: Op) -> tuple[int, ...]:
    """The reduction loops in the order in which an input walks them by ones, when they are several."""
    wanted = {p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1}
    if len(wanted) < 2:
        return ()
    for _, access in op.inputs:
        loops = [p for p in (_bare(e) for e in access) if p in wanted]
        if set(loops) == wanted:
            return tuple(p for p in loops if p is not None)
    return ()


def _lanes(op: Op, joined: tuple[int, ...], kernel: Kernel) -> tuple[int, ...]:
    """64 bytes of each row a step where the innermost loop has them, else what the whole reduction fills."""
    loops = [p for p, r in enumerate(op.reduction) if r]
    inner = joined[-1] if joined else max(loops, key=lambda p: estimate(op.loops[p]))
    total = volume(op.loops[p] for p in loops)
    depth = 32 if element_bytes(kernel.args[0].element) <= 2 else 16
    size = op.loops[inner]
    if isinstance(size, int) and size % (2 * depth) == 0 and depth == 32:
        depth *= 2
    return tuple(min(depth, pow2_above(total)) if p == inner else 1 for p in loops)


def _tile(rows: int, columns: int, outer: int, chip: Chip) -> tuple[int, int, int]:
    """The largest tile that gives every core work and is not mostly padding."""
    for m, n, threads in TILES:
        if n > max(32, pow2_above(columns)) or m > max(32, pow2_above(rows)):
            continue
        if outer * -(-rows // m) * -(-columns // n) >= (chip.cores or 64):
            return m, min(n, pow2_above(columns)), threads
    m, n, threads = TILES[-1]
    return min(m, pow2_above(rows)), min(n, pow2_above(columns)), threads


def pow2_above(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()
