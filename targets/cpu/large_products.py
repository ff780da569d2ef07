"""Large products on CPUs: blocks of their depth, rows that are copied together, chunks for parts of the rows."""

from __future__ import annotations

from math import ceil

from xcc.passes.linalg.evaluate.depth_blocks import depth_of
from xcc.passes.linalg.evaluate.staged_rows import LANES, left_rows
from xcc.passes.linalg.kernel.domain import element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Kernel, rows_of_steps
from xcc.passes.linalg.schedule.cache_sets import PAGE
from xcc.symbolic import Dim
from xcc.targets.base import Chip

DEPTH = 2048           # steps of a block of a product, where it has more
DEPTH_OUTSIDE = 1024   # the same where blocks are outside of all chunks,
MOST_BLOCKS = 8        # unless these would be more, each with code of its own
MANY_COLUMNS = 512     # that pay for a copy of the rows
MANY_STEPS = 512       # of rows that are copied
L3_SHARE = 4           # the part of the L3 cache that weights have while all rows go by: 8 MiB of 32 are as good as 4
OUTGROWN = 1.5         # such parts: weights that are little more stay there as well
STAGED_PART = 18       # bytes of the L2 cache for each element of such a copy: two panels and its source are there, too
FLOAT = 4              # bytes
LONG_ROW = 1024        # bytes of a chunk's row of weights, from which on to leave it after some lines costs
PAIR = 128             # bytes of neighbouring lines; those of wider tiles are fetched ahead anyhow
PAGES = 2048           # in the TLB
LEAST_STEPS, MOST_STEPS = 16, 40       # of a block of rows of weights that are read side by side
SUMS = 32768           # bytes of sums in the L1 cache
STAGED_TILES = 2       # of rows of a copy, at least: one asks for the next panel while the other reads this one


def shares_of_cache(weights: int, chip: Chip) -> float:
    """How many times the part of the L3 cache that is for weights holds so many bytes of them."""
    return weights * L3_SHARE / chip.last_cache_bytes


def depth_block(kernel: Kernel, dims: tuple[Dim, ...], outside: bool) -> int:
    """Steps of a block of a large product, all where it is not long; 0: it is of another form.

    Large: more rows than columns, so that a chunk is of rows and walks all panels of columns. `outside`: all chunks
    go by for a block, so that shorter ones serve and leave the caches more room.
    """
    found = depth_of(kernel)
    if found is None or len(dims) != 2 or not isinstance(dims[0], int) or not isinstance(dims[1], int) \
            or dims[0] < dims[1]:
        return 0
    steps = found[1]
    most = min(DEPTH, max(DEPTH_OUTSIDE, -(-steps // MOST_BLOCKS))) if outside else DEPTH
    least = -(-steps // most)
    return next((steps // n for n in range(least, 2 * least) if steps % (n * LANES) == 0),
                steps // least if steps % least == 0 else 0)


def streamed_columns(kernel: Kernel, dims: tuple[Dim, ...], vector: list[int], chip: Chip) -> tuple[int, int]:
    """(steps of a block, columns of a chunk) of a product whose rows are one tile; (0, 0): it is of another form.

    It reads its right operand, more than the L2 cache holds, once. A tile that goes through all of its rows reads some
    lines of each, far from those that it read before; blocks of few steps go along rows, as the hardware's prefetching
    does, while the sums wait in the L1 cache.
    """
    found = depth_of(kernel)
    if found is None or not dims or not all(isinstance(d, int) for d in dims) \
            or any(estimate(d) > v for d, v in zip(dims[:-1], vector, strict=False)):
        return 0, 0
    op, steps = found
    columns, rows = estimate(dims[-1]), volume(dims[:-1])
    wide = min(-(-columns // chip.cores), SUMS // (rows * FLOAT))
    if vector[-1] * FLOAT > PAIR and steps < PAGES:
        return 0, 0
    if wide * FLOAT < LONG_ROW or steps * columns * FLOAT < chip.l2_bytes or not any(
            rows_of_steps(op, access) and t.dims[-1] == columns for t, access in op.inputs):
        return 0, 0
    block = next((n for n in range(MOST_STEPS, LEAST_STEPS - 1, -1) if steps % n == 0 and steps > n), 0)
    return (block, -(-wide // vector[-1]) * vector[-1]) if block else (0, 0)


def rows_together(kernel: Kernel, columns: Dim, depth: int) -> bool:
    """Whether the left operand is copied together: where there are many columns, and where a block of rows would not
    stay in the caches as it lies."""
    t = left_rows(kernel)
    if t is None or estimate(columns) < MANY_COLUMNS or depth % LANES or depth < MANY_STEPS:
        return False
    return t.dims[1] != depth or estimate(t.dims[1]) * element_bytes(t.element) % PAGE == 0


def chunks_in_parts(dims: tuple[Dim, ...], vector: list[int], depth: int, shares: float, parts: int,
                     chip: Chip) -> list[int]:
    """Tiles of rows and panels of columns of a chunk of a large matrix, for blocks of `depth` steps.

    The rows' copy stays in the L2 cache; the columns in a part of the L3 cache, while all rows go by. `shares`: how
    many such parts all columns would take.
    """
    tiles, panels = (-(-estimate(d) // n) for d, n in zip(dims, vector, strict=True))
    own = -(-tiles // parts)
    most = max(STAGED_TILES, chip.l2_bytes // STAGED_PART // (depth * vector[0]))
    return [-(-own // -(-own // most)), -(-panels // ceil(shares))]
