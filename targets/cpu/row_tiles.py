"""How many rows a product's register tile has."""

from __future__ import annotations

from math import prod

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import element_bytes
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor, is_packed
from xcc.passes.linalg.schedule.cache_sets import PAGE, lines_of_a_set
from xcc.symbolic import Dim
from xcc.targets.base import Chip

PANEL_WAYS = 6         # one of so many ways of a set of the L1 cache is for the panel that streams through


def row_tiles(op: Op, dims: tuple[Dim, ...], walks: dict[int, list[int]], room: int,
              chip: Chip) -> dict[int, int]:
    """Rows along one dim or two of a register tile with `room` rows. walks: the loops along each dim.

    Where the rows are read as they lie: no more than have room in a set of the L1 cache.
    """
    ways, walked, found = chip.shared_bytes // PAGE, list[tuple[list[int], int]](), dict[int, int]()
    ways -= ways // PANEL_WAYS
    for d, loops in walks.items():
        fits = next(n for n in range(room, 0, -1) if n == 1 or _fit_cache(op, [*walked, (loops, n)], ways))
        found[d] = row_tile(dims[d], fits)
        walked.append((loops, found[d]))
        room //= found[d]
        if room < 2 or dims[d] != found[d]:
            break
    return found


def row_tile(extent: Dim, room: int) -> int:
    """Rows of the register tile: few tiles, and no last tile that is too short to keep the units busy."""
    if isinstance(extent, int) and extent <= room:
        return max(1, extent)
    if not isinstance(extent, int):
        return room

    def cost(t: int) -> float:
        """In rows; a tile of less than half the rows takes as long as half of them, and each tile half a row more."""
        full, rest = divmod(extent, t)
        return full * (t + 0.5) + (max(rest, t / 2) + 0.5 if rest else 0)

    return min(range(max(1, room // 2), room + 1), key=lambda t: (cost(t), extent % t != 0, -t))


def _fit_cache(op: Op, rows: list[tuple[list[int], int]], ways: int) -> bool:
    """Whether `ways` of the L1 cache hold what a tile reads of each operand at one step, so many rows along some loops.

    Rows 4 KiB apart share the ways of a set.
    """
    for t, access in op.inputs:
        steps = [_step(t, access, loops) for loops, _ in rows]
        if is_packed(access) or not any(steps):
            continue
        if any(s is None for s in steps):
            return prod(n for _, n in rows) <= ways
        at = [0]
        for s, (_, n) in zip(steps, rows, strict=True):
            at = [a + s * i for a in at for i in range(n)] if s else at
        if lines_of_a_set(at) > ways:
            return False
    return True


def _step(t: Tensor, access: Access, loops: list[int]) -> int | None:
    """Bytes between neighbours along `loops` in `t`; None where that is not known."""
    total = sum((symbolic.product(t.dims[j + 1:]) * c for j, e in enumerate(access) if isinstance(e, symbolic.Expr)
                 for monomial, c in e.terms if monomial in [((f"i{p}",),) for p in loops]), start=0)
    return total * element_bytes(t.element) if isinstance(total, int) else None
