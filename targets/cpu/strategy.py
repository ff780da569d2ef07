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
    is_outer_sum,
    volume,
    work,
)
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop, is_packed, loop_index, rows_of_steps
from xcc.passes.linalg.kernel.reduction_body import loops_of, product_operands
from xcc.passes.linalg.nests.decoded_panels import decoded_operand, panel_dims
from xcc.passes.linalg.schedule.by_size import Few
from xcc.passes.linalg.schedule.schedule import CpuPart, Schedule
from xcc.passes.shared.packing import ROWS_PART
from xcc.passes.xt.products.panels import panel_width
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.cpu.chunks import OPEN_TILES, PACKED_PIECES, PIECES, contraction_chunks
from xcc.targets.cpu.dots import dots
from xcc.targets.cpu.large_products import (
    OUTGROWN,
    STAGED_PART,
    STAGED_TILES,
    chunks_in_parts,
    depth_block,
    rows_together,
    shares_of_cache,
    streamed_columns,
)
from xcc.targets.cpu.matrix_tiles import MATRIX_READ, STRIP, matrix_tile
from xcc.targets.cpu.packed_columns import OPEN_PACKED, packed_steps, panel_shares
from xcc.targets.cpu.row_tiles import row_tile, row_tiles
from xcc.targets.cpu.rows import Widths, columns_of, row_lanes, rows_schedule
from xcc.targets.cpu.short_rows import known_rows, short_rows
from xcc.targets.cpu.winograd import winograd

DECODED = 1 << 19      # bytes of a decoded panel on a thread's stack
AHEAD = 8192           # bytes: what a core multiplies in the time that memory takes to answer, several times over
NEAR_AHEAD = 2048      # the same, for the L2 cache
STEPS_AHEAD = 16       # of a product: some 250 cycles of multiplications
UNROLLED_WINDOW = 9    # steps
RESIDENT = 32768       # bytes of weights that stay in the L1 cache beside what they are multiplied with
NEAR = 262144          # bytes of rows in the L2 cache
CHUNKS = 16            # of a contraction whose threads share the rows
SMALL_PANEL = 4096     # bytes
MOST_SHARES = 16       # of a panel
PARALLEL_SECONDS = 15e-6   # below this a kernel stays on one thread


def configure(kernel: Kernel, chip: Chip) -> Schedule:
    """The schedule of `kernel` on `chip`."""
    place = domain(kernel)
    widths = _widths(place, chip)
    parallel = _seconds(kernel) > PARALLEL_SECONDS
    op = contraction_of(kernel)
    tiled = winograd(kernel, place, widths.lanes, chip) if op is not None else None
    if tiled is not None:
        return tiled
    found = _contraction(kernel, place, op, widths, chip, parallel) if op is not None else None
    if found is not None:
        return found
    return known_rows(kernel, place, widths, parallel) or rows_schedule(kernel, place, widths, chip, parallel)


def few_rows(kernel: Kernel, many: Schedule, chip: Chip) -> tuple[Few, ...]:
    """The schedules for rows that a run finds to be short, of a kernel whose schedule is `many`. None for products, as
    their lanes are along the result however few terms a sum has: their tiles read an operand once for many results."""
    place, op = domain(kernel), contraction_of(kernel)
    widths = _widths(place, chip)
    if op is not None and _contraction(kernel, place, op, widths, chip, many.parallel) is not None:
        return ()
    return short_rows(kernel, many, widths)


def _widths(place: Domain, chip: Chip) -> Widths:
    return Widths(chip.vector_bytes // max(4, element_bytes(place.main.element)), chip.vector_registers)


def _seconds(kernel: Kernel) -> float:
    return max(bytes_moved(kernel) / 12e9, work(kernel) / 60e9)


def _contraction(kernel: Kernel, place: Domain, op: Op, w: Widths, chip: Chip, parallel: bool) -> Schedule | None:
    """Register tile over one dim of the right operand (contiguous) and one or two of the left."""
    position = place.position.get(op)
    factors = product_operands(op)
    dims = place.dims
    if position is None or factors is None or not dims:
        return None
    inside = [(loop_index(o), e) for o, e in zip(op.outs[0], position, strict=True) if not is_outer_sum(e)]
    if any(bare_loop(e) is None for _, e in inside):
        return None
    to_dim = {p: bare_loop(e) for p, e in inside}
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
    along = dots(kernel, op, dims, m_dims, w, chip, parallel)
    if along is not None:
        return along
    panel = _panel(op, n_loop)
    columns = panel if panel < 1 << 30 else columns
    added_up = len(inside) < len(position)      # by a sum around the product, which has a tile of registers, too
    rows = max(1, (w.registers - 4) // ((1 + added_up) * max(1, -(-columns // w.lanes))))
    if n_loop in left:
        rows = min(rows, 4)
    if not m_dims:
        wide = min(columns_of(size, w) * 2, 4 * w.lanes) if size > 2 * w.lanes else columns
        columns = min(wide, panel)
    vector[last] = columns
    outgrown = shares_of_cache(_bytes_of_right(op, right), chip)
    steps, elements = _steps_of(op), _elements(op, left)
    decoded = _decodes_panels(kernel, columns)
    depth = depth_block(kernel, dims, outgrown >= OUTGROWN) if steps and not decoded and not added_up else 0
    staged = depth > 0 and rows_together(kernel, dims[-1], depth)
    walks = {d: [p for p, e in to_dim.items() if e == d] for d in m_dims[:2]}
    for d, tile in row_tiles(op, dims, walks, rows, chip).items():
        vector[d] = tile
    packed = 0 if decoded or added_up or n_loop in left or columns == 1 \
        else packed_steps(kernel, dims, vector, m_dims, chip)
    if packed:
        depth, staged = packed if isinstance(packed, int) and packed < steps else 0, False
    elif staged:
        vector[m_dims[0]] = row_tile(dims[m_dims[0]], rows)
    reductions = [o for o in kernel.ops if o.is_reduction]
    mine = _window_lanes(op) if n_loop in left else tuple(1 for r in op.reduction if r)
    group = _group_loop(op)
    if group is not None:
        mine = tuple(int(op.loops[p]) if p == group else 1 for p, r in enumerate(op.reduction) if r)  # type: ignore[arg-type]
    matrix = None if group is None or added_up else matrix_tile(op, dims, m_dims, n_loop, columns, group, chip)
    if matrix is not None:
        vector, mine = matrix
    strips = 0 if matrix is None else STRIP
    reduce = tuple(mine if o is op else row_lanes(o, w) for o in reductions)
    outer = [d for d in range(len(dims)) if d != last and d not in m_dims]
    order = tuple([*outer, *sorted(m_dims), last] if n_loop in left else [*outer, last, *sorted(m_dims)])
    if group is not None and len(m_dims) == 1 and not outer and _bytes_of_right(op, right) <= RESIDENT:
        return _rows_of_panels(dims, vector, m_dims[0], op, reduce, parallel).with_cpu(strips=strips)
    few, wide = (0, 0) if depth or packed or decoded or added_up or group is not None or n_loop in left else \
        streamed_columns(kernel, dims, vector, chip)
    if few:
        return Schedule((*vector[:-1], wide), tuple(vector), order, reduce, "peel", "rows", parallel=parallel,
                        cpu=CpuPart(depth=few))
    if depth:
        elements = elements * depth // steps
    block, by_rows = contraction_chunks(dims, vector, last, m_dims, op, elements, chip.cores,
                                        MATRIX_READ if matrix is not None else 1,
                                        *((chip.l2_bytes // STAGED_PART, STAGED_TILES) if staged else (ROWS_PART, 1)),
                                        *((OPEN_PACKED, PACKED_PIECES) if packed else (OPEN_TILES, PIECES)))
    chunks = (*outer, *sorted(m_dims), last) if by_rows else ()
    parts = 0
    if staged and outgrown >= OUTGROWN:
        parts = chip.cores
        block = [chunk * tile for chunk, tile in zip(
            chunks_in_parts(dims, vector, depth, outgrown * depth / steps, parts, chip), vector, strict=True)]
    shares = _shares(op, dims, vector, block, min(m_dims, default=None))
    if packed:
        shares = panel_shares(packed, element_bytes(op.inputs[0][0].element), dims, vector, block, m_dims)
    if group is None and by_rows and not staged and not packed:
        shares = 0
    return Schedule(tuple(block), tuple(vector), order, reduce, "peel", "rows", parallel=parallel,
                    chunks=() if chunks == order else chunks, cpu=CpuPart(
                        dot=group is not None, shares=shares, strips=strips, depth=depth if depth < steps else 0,
                        prefetch=0 if shares and not depth else _ahead(op, chip, NEAR_AHEAD if shares else AHEAD),
                        staged=staged, parts=parts, decoded=decoded, columns=bool(packed)))


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
    """How many rows of packed weights ahead to fetch, `most` bytes, where these are more than the L1 cache holds, or of
    an operand whose size is not known."""
    for t, access in op.inputs:
        weights = t.dims[panel_dim(access) or 0:]
        if is_packed(access) and volume(weights) * element_bytes(t.element) > chip.shared_bytes:
            return max(1, most // (estimate(t.dims[-1]) * element_bytes(t.element)))
        if rows_of_steps(op, access) and not all(isinstance(d, int) for d in t.dims):
            return STEPS_AHEAD
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
