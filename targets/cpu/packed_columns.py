"""When a product's right operand is packed on the fly, and in what blocks: by the time that its lines take."""

from __future__ import annotations

from math import gcd, prod

from xcc import symbolic
from xcc.passes.linalg.evaluate.depth_blocks import depth_of
from xcc.passes.linalg.evaluate.staged_rows import LANES
from xcc.passes.linalg.kernel.domain import element_bytes, estimate
from xcc.passes.linalg.kernel.kernel import Kernel
from xcc.passes.linalg.kernel.right_columns import Columns, right_columns
from xcc.passes.linalg.schedule.cache_sets import LINE_BYTES
from xcc.passes.shared.packing import STACK, panel_steps
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.cpu.chunks import PIECES

FAR = 4e-9          # seconds until a line that lies beyond the L2 cache is there, many being on their way
COPY = 2e-9         # seconds to copy such a line, most of them along products
READ_AGAIN = 2      # one part of so many of the L2 cache keeps what all chunks of rows read, beside these and sums
WAYS = 8            # of a set of an L2 cache, at least
MOST_SHARES = 16    # of a panel that is copied along the tiles of the one before
OPEN_PACKED = 16    # tiles of rows of a chunk that packs the columns, where the number of rows is not known


def packed_steps(kernel: Kernel, dims: tuple[Dim, ...], vector: list[int], m_dims: list[int], chip: Chip) -> Dim:
    """Steps of the panels that are packed on the fly of the product's right operand; 0: none are.

    `vector` is the register tile, its rows along `m_dims`.
    """
    found = right_columns(kernel)
    if found is None or not m_dims:
        return 0
    tiles, near = prod(-(-estimate(dims[d]) // vector[d]) for d in m_dims), chip.l2_bytes
    if not all(isinstance(dims[d], int) for d in m_dims):
        tiles = OPEN_PACKED
    elif estimate(dims[-1]) <= prod(estimate(dims[d]) for d in m_dims):       # chunks of rows
        tiles, near = max(1, tiles // (PIECES * chip.cores)), chip.l2_bytes // READ_AGAIN
    if not _pays(found, chip, vector[-1], prod(vector[d] for d in m_dims), tiles, near):
        return 0
    return _depth(kernel, found, chip, vector[-1])


def _pays(found: Columns, chip: Chip, columns: int, rows: int, tiles: int, near: int) -> bool:
    """Whether panels of `columns` of the right operand are packed, which `tiles` tiles of so many `rows` multiply, at
    least. near: bytes of the operand that stay in the L2 cache.

    What is read far from the core comes slower than a small tile multiplies it; a copy is read from far but once.
    Columns that are to be turned are packed anyway, and those of a number of steps that is not known: whether they
    stay near is not known either, and a copy is little beside its tiles.
    """
    if found.turned or not isinstance(found.steps, int):
        return found.turned or tiles > 1
    size = element_bytes(found.t.element)
    lanes = LINE_BYTES // size
    multiplied = rows * lanes * 2 / dict(chip.flops).get("f32", 1e11)
    return tiles > 1 and _is_far(found, chip, columns * size, near) and tiles * (FAR - multiplied) > COPY


def _is_far(found: Columns, chip: Chip, wide: int, near: int) -> bool:
    """Whether a panel, `wide` bytes of each step, is read from beyond the L2 cache as it lies.

    So is one of an operand of more than `near` bytes, by each chunk of rows and with no neighbours that a
    processor asks for ahead; and one that does not stay there, as many of its lines share a set where steps lie some
    power of two apart.
    """
    step = found.loops.index(-1)
    apart = symbolic.product(found.t.dims[step + 1:]) * element_bytes(found.t.element)
    steps = found.steps
    assert isinstance(steps, int)
    if not isinstance(apart, int):
        return steps > panel_steps(chip, wide)
    if steps * apart > near:
        return True
    way = chip.l2_bytes // WAYS
    places = max(1, way // max(LINE_BYTES, gcd(way, apart), wide))
    return -(-steps // places) > WAYS


def _depth(kernel: Kernel, found: Columns, chip: Chip, columns: int) -> Dim:
    """Steps of a block of panels, which leave room in the L2 cache: all of them where there are few, and where sums
    cannot wait in the result; 0 where there is no room for a panel."""
    each = columns * element_bytes(found.t.element)
    most = panel_steps(chip, each)
    if not isinstance(found.steps, int) or found.steps <= most:
        return found.steps
    least = -(-found.steps // most)
    blocks = (n for n in range(least, 2 * least) if found.steps % (n * LANES) == 0)
    n = next(blocks, 0) if depth_of(kernel) is not None else 0
    if n:
        return found.steps // n
    return found.steps if found.steps * each <= STACK else 0


def panel_shares(steps: Dim, size: int, dims: tuple[Dim, ...], vector: list[int], block: list[int],
                 m_dims: list[int]) -> int:
    """In how many tiles' loops the next panel, of so many steps and elements of `size` bytes, is copied or asked for, a
    power of two; 0: in none, where two panels would be too large, there are no lines of steps, or it is not known how
    many."""
    if not isinstance(steps, int) or len(m_dims) > 1 or 2 * steps * vector[-1] * size > STACK:
        return 0
    if gcd(steps, LANES) < LANES // 2:
        return 0
    m, = m_dims
    rows = estimate(dims[m])
    step = block[m] or rows
    tiles = -(-(rows % step or step) // vector[m])      # of the last chunk, which has the fewest
    return 1 << (min(tiles, MOST_SHARES).bit_length() - 1) if tiles > 1 else 0
