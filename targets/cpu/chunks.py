"""How a contraction is cut into the chunks that threads take."""

from __future__ import annotations

from math import prod

from xcc.passes.linalg.domain import estimate, volume
from xcc.passes.linalg.kernel import Op
from xcc.symbolic import Dim

__all__ = ["CORES", "contraction_chunks"]

CORES = 16             # where the chip does not say
PIECES = 4             # chunks of rows for each core, at least
OPEN_TILES = 4         # tiles of rows of a chunk where the number of rows is not known,
OPEN_WORK = 200_000    # and multiplications of a chunk
L2_PART = 196608       # elements of the left operand that may stay in the L2 cache


def contraction_chunks(dims: tuple[Dim, ...], vector: list[int], last: int, m_dims: list[int], op: Op, left: int,
                       cores: int) -> tuple[list[int], bool]:
    """Chunks for threads, and whether they go by rows.

    By rows where there are more rows than columns: what one kernel writes is in the cache of the core that reads it in
    the next. Else by panels of columns, so that each weight is read by one core. The rows of a chunk stay in the L2
    cache, and the chunks divide evenly among the cores. Where the number of rows is not known, a chunk is a few tiles
    of rows and a core's part of the columns: enough chunks however many rows there are.

    left: elements of the left operand. Windows overlap, so a row may need fewer of its own than it multiplies.
    """
    depth = volume(size for size, r in zip(op.loops, op.reduction, strict=True) if r)
    block = [1] * len(dims)
    panels = max(1, -(-estimate(dims[last]) // vector[last]))
    if not all(isinstance(dims[d], int) for d in m_dims):
        block[last] = vector[last] * -(-panels // cores)
        rows = max(OPEN_TILES * prod(vector[d] for d in m_dims), OPEN_WORK // max(1, depth * estimate(dims[last])))
        for d in reversed(sorted(m_dims)):
            block[d] = vector[d] * max(1, min(-(-estimate(dims[d]) // vector[d]), rows // vector[d]))
            rows = max(1, rows // block[d])
        return block, True
    rows = volume(dims[d] for d in m_dims)
    by_rows = rows >= estimate(dims[last])
    block[last] = 0 if by_rows else vector[last] * min(panels, 4 if panels >= 32 else 2 if panels >= 16 else 1)
    budget = rows if left <= L2_PART else max(1, L2_PART // max(1, -(-left // max(1, rows))))
    wanted = cores * PIECES if by_rows else 1
    for d in sorted(m_dims):
        inner = volume(dims[e] for e in m_dims if e > d)
        tiles = max(1, -(-estimate(dims[d]) // vector[d]))
        most = -(-budget // (inner * vector[d])) if budget == rows else max(1, budget // (inner * vector[d]))
        steps = _steps(tiles, min(most, max(1, tiles // wanted)), cores) if by_rows \
            else -(-tiles // -(-tiles // most))
        block[d] = vector[d] * steps
        wanted = -(-wanted // -(-tiles // steps))
    return block, by_rows


def _steps(tiles: int, most: int, cores: int) -> int:
    """Tiles of a chunk, at most `most` and not few, so that the core with the most tiles has as few as can be."""
    def makespan(steps: int) -> int:
        chunks = -(-tiles // steps)
        shares = [t * chunks // cores for t in range(cores + 1)]
        return max(min(tiles, b * steps) - min(tiles, a * steps) for a, b in zip(shares, shares[1:], strict=False))

    return min(range(max(1, most // 2), most + 1), key=lambda s: (makespan(s), -s))
