"""How a contraction is cut into the chunks that threads take."""

from __future__ import annotations

from math import prod

from xcc.passes.linalg.kernel.domain import estimate, volume
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.shared.packing import ROWS_PART
from xcc.symbolic import Dim

PIECES = 4             # chunks of rows for each core, at least
PACKED_PIECES = 2      # the same where each packs all columns: fewer copies
OPEN_TILES = 4         # tiles of rows of a chunk where the number of rows is not known,
OPEN_WORK = 200_000    # and multiplications of a chunk


def contraction_chunks(dims: tuple[Dim, ...], vector: list[int], last: int, m_dims: list[int], op: Op, left: int,
                       cores: int, read: int = 1, part: int = ROWS_PART, least: int = 1,
                       open_tiles: int = OPEN_TILES, pieces: int = PIECES) -> tuple[list[int], bool]:
    """Chunks for threads, and whether they go by rows.

    By rows where there are more rows than columns: what one kernel writes is in the cache of the core that reads it in
    the next. Else by panels of columns, so that each weight is read by one core, or by few where panels alone would
    leave cores idle. The rows of a chunk stay in the L2 cache, and the chunks divide evenly among the cores. Where the
    number of rows is not known, a chunk is a few tiles of rows and a core's part of the columns: enough chunks however
    many rows there are.

    left: elements of the left operand, of which `part` may stay in the L2 cache. Windows overlap, so a row may need
    fewer of its own than it multiplies.
    read: how many tiles' multiplications take as long as reading a panel of weights.
    least: tiles of rows of a chunk, where there are as many.
    open_tiles: the same, where the number of rows is not known.
    pieces: chunks of rows for each core, at least.
    """
    depth = volume(size for size, r in zip(op.loops, op.reduction, strict=True) if r)
    block = [1] * len(dims)
    panels = max(1, -(-estimate(dims[last]) // vector[last]))
    if not all(isinstance(dims[d], int) for d in m_dims):
        block[last] = vector[last] * -(-panels // cores)
        rows = max(open_tiles * prod(vector[d] for d in m_dims), OPEN_WORK // max(1, depth * estimate(dims[last])))
        for d in reversed(sorted(m_dims)):
            block[d] = vector[d] * max(1, min(-(-estimate(dims[d]) // vector[d]), rows // vector[d]))
            rows = max(1, rows // block[d])
        return block, True
    rows = volume(dims[d] for d in m_dims)
    by_rows = rows >= estimate(dims[last])
    budget = rows if left <= part else max(1, part // max(1, -(-left // max(1, rows))))
    wanted = cores * pieces
    tiles, steps = {}, {}
    for d in sorted(m_dims):
        inner = volume(dims[e] for e in m_dims if e > d)
        tiles[d] = max(1, -(-estimate(dims[d]) // vector[d]))
        most = -(-budget // (inner * vector[d])) if budget == rows else max(1, budget // (inner * vector[d]))
        steps[d] = _steps(tiles[d], min(most, max(1, tiles[d] // wanted)), cores, min(least, tiles[d])) if by_rows \
            else -(-tiles[d] // -(-tiles[d] // most))
        wanted = -(-wanted // -(-tiles[d] // steps[d]))
    if by_rows:
        block[last] = 0
    else:
        outer = volume(size for d, size in enumerate(dims) if d != last and d not in m_dims)
        block[last] = vector[last] * _by_columns(panels, tiles, steps, outer, cores, read)
    for d in m_dims:
        block[d] = vector[d] * steps[d]
    return block, by_rows


def _by_columns(panels: int, tiles: dict[int, int], steps: dict[int, int], outer: int, cores: int, read: int) -> int:
    """Panels of a chunk. `steps`, tiles of a chunk along each dim of rows, is lowered along the first that has several
    where the busiest core has less to do then."""
    split = next((d for d in sorted(tiles) if tiles[d] > 1), None)
    rest = prod(n for d, n in steps.items() if d != split)
    others = outer * prod(-(-tiles[d] // n) for d, n in steps.items() if d != split)
    whole = 1 if split is None else tiles[split]
    most = 1 if split is None else steps[split]

    def busiest(choice: tuple[int, int]) -> tuple[int, int, int]:
        p, n = choice
        chunks = -(-panels // p) * -(-whole // n) * others
        return -(-chunks // cores) * p * (n * rest + read), -n, -p

    wide = min(panels, 4 if panels >= 32 else 2 if panels >= 16 else 1)
    lengths = {-(-whole // parts) for parts in range(1, whole + 1)}
    p, n = min(((p, n) for p in (1, 2, 4) if p <= wide for n in lengths if n <= most), key=busiest)
    if split is not None:
        steps[split] = n
    return p


def _steps(tiles: int, most: int, cores: int, least: int) -> int:
    """Tiles of a chunk, `least` to `most` and not few, so that the core with the most tiles has as few as can be."""
    def makespan(steps: int) -> int:
        chunks = -(-tiles // steps)
        shares = [t * chunks // cores for t in range(cores + 1)]
        return max(min(tiles, b * steps) - min(tiles, a * steps) for a, b in zip(shares, shares[1:], strict=False))

    return min(range(max(least, most // 2), max(least, most) + 1), key=lambda s: (makespan(s), -s))
