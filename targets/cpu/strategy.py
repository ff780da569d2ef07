"""Tile sizes for CPUs: (kernel, chip) -> Schedule, a pure function.

Three shapes of kernel: a contraction (register tile of accumulators, scalar reduction loops), rows (vectors along the
contiguous dim, reductions in several lanes), and the rest (vectors along the last dim; two-dimensional tiles where an
operand is transposed).
"""

from __future__ import annotations

from math import prod
from typing import Any

from xcc import symbolic
from xcc.passes.linalg.evaluate.fetch_ahead import packed_input, panel_dim
from xcc.passes.linalg.kernel.domain import (
    Domain,
    bytes_moved,
    contraction_of,
    domain,
    element_bytes,
    estimate,
    volume,
    work,
)
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Op, Tensor, bare_loop, is_packed, loop_index
from xcc.passes.linalg.kernel.reduction_body import loops_of, product_operands
from xcc.passes.linalg.kernel.right_columns import right_columns
from xcc.passes.linalg.nests.decoded_panels import decoded_operand, panel_dims
from xcc.passes.linalg.schedule.cache_sets import PAGE, lines_of_a_set
from xcc.passes.linalg.schedule.schedule import CpuPart, Schedule
from xcc.passes.shared.packing import ROWS_PART
from xcc.passes.xt.products.panels import panel_width
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.cpu.chunks import OPEN_TILES, PIECES, contraction_chunks
from xcc.targets.cpu.large_products import (
    OUTGROWN,
    STAGED_PART,
    STAGED_TILES,
    chunks_in_parts,
    depth_block,
    rows_together,
    shares_of_cache,
)
from xcc.targets.cpu.matrix_tiles import MATRIX_READ, STRIP, matrix_tile
from xcc.targets.cpu.packed_columns import packed_depth, packs_columns, panel_shares
from xcc.targets.cpu.rows import Widths, columns_of, row_lanes, rows_schedule
from xcc.targets.cpu.winograd import winograd

DECODED = 1 << 19      # bytes of a decoded panel on a thread's stack
AHEAD = 8192           # bytes: what a core multiplies in the time that memory takes to answer, several times over
NEAR_AHEAD = 2048      # the same, for the L2 cache
UNROLLED_WINDOW = 9    # steps
PANEL_WAYS = 6         # one of so many ways of a set of the L1 cache is for the panel that streams through
RESIDENT = 32768       # bytes of weights that stay in the L1 cache beside what they are multiplied with
NEAR = 262144          # bytes of rows in the L2 cache
CHUNKS = 16            # of a contraction whose threads share the rows
OPEN_PACKED = 16       # tiles of rows of a chunk that packs the columns, where the number of rows is not known
SMALL_PANEL = 4096     # bytes
MOST_SHARES = 16       # of a panel
PARALLEL_SECONDS = 15e-6   # below this a kernel stays on one thread


def configure(kernel: Kernel, chip: Chip) -> Schedule:
    """The schedule of `kernel` on `chip`."""
    place = domain(kernel)
    widths = Widths(chip.vector_bytes // max(4, element_bytes(place.main.element)), chip.vector_registers)
    parallel = _seconds(kernel) > PARALLEL_SECONDS
    op = contraction_of(kernel)
    tiled = winograd(kernel, place, widths.lanes, chip) if op is not None else None
    if tiled is not None:
        return tiled
    if op is not None:
        found = _contraction(kernel, place, op, widths, chip, parallel)
        if found is not None:
            return found
    return rows_schedule(kernel, place, widths, chip, parallel)


def _seconds(kernel: Kernel) -> float:
    return max(bytes_moved(kernel) / 12e9, work(kernel) / 60e9)


def _contraction(kernel: Kernel, place: Domain, op: Op, w: Widths, chip: Chip, parallel: bool) -> Schedule | None:
    """Register tile over one dim of the right operand (contiguous) and one or two of the left."""
    position = place.position.get(op)
    factors = product_operands(op)
    dims = place.dims
    if position is None or factors is None or not dims or any(bare_loop(e) is None for e in position):
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(op.outs[0], position, strict=True)}
    used = [loops_of(op, v) for v in factors]
    last = len(dims) - 1
    n_loop = next((p for p, d in to_dim.items() if d == last), None)
    if n_loop is None:
        return None
    right = used[1] if n_loop in used[1] else used[0]
    left = used[0] if right is used[1] else used[1]
    vector = [1] * len(dims)
    n = dims[last]
    size = estimate(n)
    columns = columns_of(size, w)
    m_dims = sorted((d for p, d in to_dim.items() if d is not None and p in left and p not in right), reverse=True)
    if n_loop in left:          # depthwise: both operands walk the last dim
        m_dims = [d for d in sorted((d for d in to_dim.values() if d is not None), reverse=True) if d != last]
        columns = min(columns, 2 * w.lanes)
    elif isinstance(n, int) and n > w.lanes:
        columns = panel_width(n, columns)
    if not m_dims and _group_loop(op) is None and _summed_in_rows(op, n_loop):
        return None
    panel = _panel(op, n_loop)
    columns = panel if panel < 1 << 30 else columns
    rows = max(1, (w.registers - 4) // max(1, -(-columns // w.lanes)))
    if n_loop in left:
        rows = min(rows, 4)
    if not m_dims:
        wide = min(columns_of(size, w) * 2, 4 * w.lanes) if size > 2 * w.lanes else columns
        columns = min(wide, panel)
    vector[last] = columns
    outgrown = shares_of_cache(_bytes_of_right(op, right), chip)
    steps, elements = _steps_of(op), _elements(op, left)
    decoded = _decodes_panels(kernel, columns)
    depth = depth_block(kernel, dims, outgrown >= OUTGROWN) if steps and not decoded else 0
    staged = depth > 0 and rows_together(kernel, dims[-1], depth)
    walks = {d: [p for p, e in to_dim.items() if e == d] for d in m_dims[:2]}
    for d, tile in _row_tiles(op, dims, walks, rows, chip).items():
        vector[d] = tile
    packed = None if decoded or n_loop in left or not m_dims or columns == 1 else _packed_columns(
        kernel, dims, vector, m_dims, chip)
    if packed:
        depth, staged = packed if packed < steps else 0, False
    elif staged:
        vector[m_dims[0]] = _row_tile(dims[m_dims[0]], rows)
    reductions = [o for o in kernel.ops if o.is_reduction]
    mine = _window_lanes(op) if n_loop in left else tuple(1 for r in op.reduction if r)
    group = _group_loop(op)
    if group is not None:
        mine = tuple(int(op.loops[p]) if p == group else 1 for p, r in enumerate(op.reduction) if r)  # type: ignore[arg-type]
    matrix = None if group is None else matrix_tile(op, dims, m_dims, n_loop, columns, group, chip)
    if matrix is not None:
        vector, mine = matrix
    strips = 0 if matrix is None else STRIP
    reduce = tuple(mine if o is op else row_lanes(o, w) for o in reductions)
    outer = [d for d in range(len(dims)) if d != last and d not in m_dims]
    order = tuple([*outer, *sorted(m_dims), last] if n_loop in left else [*outer, last, *sorted(m_dims)])
    if group is not None and len(m_dims) == 1 and not outer and _bytes_of_right(op, right) <= RESIDENT:
        return _rows_of_panels(dims, vector, m_dims[0], op, reduce, parallel).with_cpu(strips=strips)
    if depth:
        elements = elements * depth // steps
    block, by_rows = contraction_chunks(dims, vector, last, m_dims, op, elements, chip.cores,
                                        MATRIX_READ if matrix is not None else 1,
                                        *((chip.l2_bytes // STAGED_PART, STAGED_TILES) if staged else (ROWS_PART,)),
                                        open_tiles=OPEN_PACKED if packed else OPEN_TILES)
    chunks = (*outer, *sorted(m_dims), last) if by_rows else ()
    parts = 0
    if staged and outgrown >= OUTGROWN:
        parts = chip.cores
        block = [chunk * tile for chunk, tile in zip(
            chunks_in_parts(dims, vector, depth, outgrown * depth / steps, parts, chip), vector, strict=True)]
    shares = _shares(op, dims, vector, block, min(m_dims, default=None))
    if packed:
        shares = 0 if len(m_dims) > 1 else panel_shares(packed, columns, element_bytes(op.inputs[0][0].element),
                              _tiles_of_chunk(dims, vector, block, m_dims[0]))
    if group is None and by_rows and not staged and not packed:
        shares = 0
    return Schedule(tuple(block), tuple(vector), order, reduce, "peel", "rows", parallel=parallel,
                    chunks=() if chunks == order else chunks, cpu=CpuPart(
                        dot=group is not None, shares=shares, strips=strips, depth=depth if depth < steps else 0,
                        prefetch=0 if shares and not depth else _ahead(op, chip, NEAR_AHEAD if shares else AHEAD),
                        staged=staged, parts=parts, decoded=decoded, columns=bool(packed)))


def _row_tiles(op: Op, dims: tuple[Dim, ...], walks: dict[int, list[int]], room: int, chip: Chip) -> dict[int, int]:
    """Rows of a register tile of `room` rows along one dim, or two, which the loops of `walks` walk, where the rows lie as
    they do."""
    ways, walked, found = chip.shared_bytes // PAGE, list[tuple[list[int], int]](), dict[int, int]()
    ways -= ways // PANEL_WAYS
    for d, loops in walks.items():
        fits = next(n for n in range(room, 0, -1) if n == 1 or _fit_cache(op, [*walked, (loops, n)], ways))
        found[d] = _row_tile(dims[d], fits)
        walked.append((loops, found[d]))
        room //= found[d]
        if room < 2 or dims[d] != found[d]:
            break
    return found


def _packed_columns(kernel: Kernel, dims: tuple[Dim, ...], vector: list[int], m_dims: list[int], chip: Chip) -> int:
    """Steps of the panels that are packed on the fly of the product's right operand; 0: none are."""
    found = right_columns(kernel)
    tiles, rows = (prod(x) for x in zip(*((-(-estimate(dims[d]) // vector[d]), vector[d]) for d in m_dims), strict=True))
    if estimate(dims[-1]) <= prod(estimate(dims[d]) for d in m_dims):       # chunks of rows
        tiles = max(1, tiles // (PIECES * chip.cores))
    if found is None or not packs_columns(found, chip, vector[-1], rows, tiles):
        return 0
    return packed_depth(kernel, found, chip, vector[-1])


def _tiles_of_chunk(dims: tuple[Dim, ...], vector: list[int], block: list[int], m: int) -> int:
    """Tiles of rows of a chunk, at least, but where that is not known."""
    rows = estimate(dims[m])
    step = block[m] or rows
    last = rows % step or step
    return -(-min(step, rows if last == step else last) // vector[m])


def _decodes_panels(kernel: Kernel, columns: int) -> bool:
    """Whether the panels of the product's right operand are decoded from narrow weights, and stay in the L2 cache."""
    found = decoded_operand(kernel)
    panel = panel_dims(*found, columns) if found is not None else None
    return found is not None and panel is not None and prod(panel) * element_bytes(found[0].element) <= DECODED


def _summed_in_rows(op: Op, n_loop: int) -> bool:
    """Whether the operand that `n_loop` walks has neighbours along a summed loop: a matrix of rows times a vector.

    Lanes along the result would read a line of memory each, of which nothing else is used at that step.
    """
    walked = [(t, a) for t, a in op.inputs if any(f"i{n_loop}" in symbolic.symbols_of(e) for e in a)]
    if not walked:      # weights that are one number, repeated
        return False
    inner = bare_loop(max(walked, key=lambda i: volume(i[0].dims))[1][-1])
    return inner is not None and op.reduction[inner]


def _steps_of(op: Op) -> int:
    return volume(size for size, r in zip(op.loops, op.reduction, strict=True) if r)


def _ahead(op: Op, chip: Chip, most: int) -> int:
    """How many rows of packed weights ahead to fetch, `most` bytes, where these are more than the L1 cache holds."""
    for t, access in op.inputs:
        weights = t.dims[panel_dim(access) or 0:]
        if is_packed(access) and volume(weights) * element_bytes(t.element) > chip.shared_bytes:
            return max(1, most // (estimate(t.dims[-1]) * element_bytes(t.element)))
    return 0


def _elements(op: Op, loops: set[int]) -> int:
    """Of the largest operand that is walked by `loops` alone."""
    return max((volume(t.dims) for t, access in op.inputs
                if {int(s[1:]) for e in access for s in symbolic.symbols_of(e)} <= loops), default=0)


def _shares(op: Op, dims: tuple[Dim, ...], vector: list[int], block: list[int], m: int | None) -> int:
    """Over how many tiles of rows the fetching of the next panel is spread; 0 where panels are small or read once."""
    packed = packed_input(op)
    if packed is None or m is None or volume(packed[0].dims[1:]) * element_bytes(packed[0].element) < SMALL_PANEL:
        return 0
    rows = min(estimate(dims[m]), block[m]) if block[m] else estimate(dims[m])
    tiles = -(-rows // vector[m])
    return 1 << (min(tiles, MOST_SHARES).bit_length() - 1) if tiles > 1 else 0


def _bytes_of_right(op: Op, right: set[int]) -> int:
    return max((volume(t.dims) * element_bytes(t.element) for t, access in op.inputs
                if {int(s[1:]) for e in access for s in symbolic.symbols_of(e)} <= right), default=0)


def _rows_of_panels(dims: tuple[Dim, ...], vector: list[int], m: int, op: Op, reduce: tuple[tuple[int, ...], ...],
                    parallel: bool) -> Schedule:
    """Few narrow weights stay in the L1 cache: whole rows of the result are made one after the other, cache line by
    cache line, where a panel at a time would write each line in several passes."""
    last = len(dims) - 1
    depth = volume(size for size, r in zip(op.loops, op.reduction, strict=True) if r)
    rows = max(1, min(NEAR // max(1, depth + estimate(dims[last])), -(-estimate(dims[m]) // CHUNKS)) // vector[m])
    block = [1] * len(dims)
    block[m] = rows * vector[m]
    block[last] = -(-estimate(dims[last]) // vector[last]) * vector[last]
    return Schedule(tuple(block), tuple(vector), (m, last), reduce, "peel", "rows", parallel=parallel,
                    cpu=CpuPart(dot=True))


def _group_loop(op: Op) -> int | None:
    """The innermost reduction loop where it walks the groups of a packed operand: a few narrow elements to sum."""
    last = len(op.loops) - 1
    ends = [bare_loop(access[-1]) for t, access in op.inputs if len(access) > 1 and element_bytes(t.element) <= 2]
    size = op.loops[last]
    return last if op.reduction[last] and isinstance(size, int) and 1 < size <= 4 and last in ends else None


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


def _window_lanes(op: Op) -> tuple[int, ...]:
    """The innermost window loop of a depthwise convolution is unrolled: its steps share what they read."""
    sizes = [size for size, r in zip(op.loops, op.reduction, strict=True) if r]
    wide = [n for n, size in enumerate(sizes) if size != 1]
    inner = wide[-1] if wide else -1
    return tuple(0 if n == inner and isinstance(size, int) and size <= UNROLLED_WINDOW else 1
                 for n, size in enumerate(sizes))


def _panel(op: Op, n_loop: int) -> int:
    """Columns that lie next to each other in a packed operand: a tile must not be wider."""
    atoms: list[Any] = [atom for _, access in op.inputs for e in access if isinstance(e, symbolic.Expr)
                        for monomial, _ in e.terms for atom in monomial]
    found = [a[2] for a in atoms if a[0] == "mod" and isinstance(a[2], int) and str(a[1]) == f"i{n_loop}"]
    return min(found, default=1 << 30)


def _row_tile(extent: Dim, room: int) -> int:
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
