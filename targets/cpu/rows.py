"""Schedules of kernels without a product: rows with reductions along them, and elements on their own."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xcc import symbolic
from xcc._mlir import maker
from xcc.passes.linalg.evaluate.pieces import Pieces, piece_reads
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate, volume, work
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop, ops_behind
from xcc.passes.linalg.schedule.schedule import CpuPart, Kept, Schedule
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.cpu.repeats import least_repeated

CHUNK = 16384          # elements of a pointwise chunk (fewer that cost more), at most;
SMALL_CHUNK = 2048     # where the cores would have less than
CHUNKS_EACH = 2        # chunks, as few as that
AHEAD = 2048          # elements that are fetched before they are needed, in rows at least one
TURNED_ROW = 256       # elements of a chunk's rows that are columns of what is read, a cache line of each at a time
SCRATCH = 65536        # bytes on a thread's stack
INTERLEAVED = 7        # columns at most whose transposed tiles are stored as whole vectors of several rows
WIDE_WINDOW = 32      # elements, from which on lanes walk a window that steps over several elements
SHORT = 4              # vectors of a row, fewer than that are reduced across rows
WOVEN = 4              # columns at most of a tile of three dims, whose code is long
UNROLLED = 9           # steps of all reduction loops, a window's
LINES = 64             # of a column, from which on wide tiles of columns pay
LINE = 128             # bytes, two lines of the caches
ROWS = 4               # of a chunk, from which on reductions that others need are made for all of them first


@dataclass(frozen=True)
class Widths:
    """Lanes of a native vector, and vector registers."""

    lanes: int
    registers: int


def columns_of(size: int, w: Widths) -> int:
    if size > w.lanes:
        return 2 * w.lanes
    return w.lanes if size > w.lanes // 2 else max(4, w.lanes // 2)


def row_lanes(op: Op, w: Widths) -> tuple[int, ...]:
    """Lanes of each reduction loop: several vectors along the contiguous one, scalar loops elsewhere, or no loop."""
    loops = [p for p, r in enumerate(op.reduction) if r]
    inner = contiguous_loop(op)
    few = prod(estimate(op.loops[p]) for p in loops) <= UNROLLED
    out = []
    for p in loops:
        size = op.loops[p]
        if p == inner:
            out.append(4 * w.lanes if estimate(size) >= 4 * w.lanes else w.lanes)
        else:
            out.append(0 if isinstance(size, int) and (few or size <= 3) else 1)
    return tuple(out)


def contiguous_loop(op: Op) -> int | None:
    """The loop that walks the last dim of the op's largest input by ones."""
    if not op.inputs:
        return None
    t, access = max(op.inputs, key=lambda i: volume(i[0].dims))
    if not access or not isinstance(access[-1], symbolic.Expr):
        return None
    names = [m[0][0] for m, c in access[-1].terms if len(m) == 1 and c == 1 and len(m[0]) == 1]
    if len(names) != 1 or not names[0].startswith("i"):
        return None
    found = int(names[0][1:])
    alone = len(access[-1].terms) == 1      # else the loop over a window, which is seldom as wide as a vector
    return found if alone or estimate(op.loops[found]) >= WIDE_WINDOW else None


def rows_schedule(kernel: Kernel, place: Domain, w: Widths, chip: Chip, parallel: bool) -> Schedule:
    """Vectors along the last dim; where reductions of a row serve all of the row, one chunk walks it."""
    dims = place.dims
    reductions = [o for o in kernel.ops if o.is_reduction]
    if not dims:
        return Schedule((), (), (), tuple(row_lanes(o, w) for o in reductions), "peel", "rows")
    last = len(dims) - 1
    over_last = any(contiguous_loop(o) is not None and o.reduction[contiguous_loop(o) or 0] for o in reductions)
    reduced_to_main = any(place.position.get(o) == place.position.get(place.main.producer) for o in reductions) \
        if place.main.producer is not None else False
    whole_row = over_last and not reduced_to_main
    in_registers = whole_row and _fits_registers(dims[last], w)
    vector = [1] * len(dims) if over_last and reduced_to_main else _vector(kernel, place, w, bool(reductions))
    if reductions and all(_sums_columns(o) for o in reductions):
        vector[last] = _together(place, len(reductions), w, chip.cores if parallel else 1) or vector[last]
    if in_registers:
        vector[last] = -(-estimate(dims[last]) // w.lanes) * w.lanes
    reduce = tuple(_whole_lanes(o, w, dims[last]) if in_registers else row_lanes(o, w) for o in reductions)
    if over_last and reduced_to_main and estimate(dims[last]) >= w.lanes and all(_is_short(o, w) for o in reductions):
        vector[last], reduce = w.lanes, tuple((_turned_lanes(o, w),) for o in reductions)
    block = _block(kernel, dims, vector, whole_row, chip.cores)
    park = _parked(kernel, place) if whole_row and not in_registers else -1
    schedule = Schedule(tuple(block), tuple(vector), tuple(range(len(dims))), reduce, "peel", "rows", parallel,
                        cpu=CpuPart(park=park))
    schedule = least_repeated(kernel, place, schedule, chip.cores)
    if in_registers:
        schedule = schedule.with_cpu(kept=_kept(kernel, place, schedule.block))
    return _past_caches(schedule, kernel, place, chip, whole_row)


def _is_short(op: Op, w: Widths) -> bool:
    """Whether `op` reduces rows of a few vectors at most: as many of them as a vector has lanes are turned at once."""
    inner = contiguous_loop(op)
    size = op.loops[inner] if inner is not None and op.reduction[inner] and sum(op.reduction) == 1 else None
    return isinstance(size, int) and 1 < size < SHORT * w.lanes


def _turned_lanes(op: Op, w: Widths) -> int:
    """Lanes along a short row: its elements, where a few shuffles turn a block of them, or else whole vectors."""
    size = int(estimate(op.loops[op.reduction.index(True)]))
    return size if size < w.lanes and (size <= INTERLEAVED or not size & (size - 1)) else w.lanes


def _kept(kernel: Kernel, place: Domain, block: tuple[int, ...]) -> tuple[Kept, ...]:
    """The reductions of rows that another one needs, where their inputs are cheap to make again: those of all rows
    of a chunk come first, so that the exponentials of a row do not wait for its maximum."""
    if any(kernel.borders) or prod(block[:-1]) < ROWS:
        return ()
    reductions = [o for o in kernel.ops if o.is_reduction]
    return tuple(Kept(n, (1,) * len(o.results[0].dims), tuple(range(len(o.results[0].dims))))
                 for n, o in enumerate(kernel.ops)
                 if o.is_reduction and len(o.results) == 1 and o.results[0].dims
                 and all(_is_place(e) for e in place.position.get(o, (None,)))
                 and any(_needs(r, o) for r in reductions if r is not o) and not _is_dear(o))


def _is_place(e: Dim | None) -> bool:
    return isinstance(e, int) or (e is not None and bare_loop(e) is not None)


def _needs(op: Op, other: Op) -> bool:
    return any(other in ops_behind(t) for t, _ in op.inputs)


def _is_dear(op: Op) -> bool:
    """Whether something that `op` needs, before another reduction, takes more than a few operations."""
    before = (o for t, _ in op.inputs for o in ops_behind(t, lambda o: o.is_reduction) if not o.is_reduction)
    return any(o.operation is not None and any(i.name.startswith("math.") for i in o.block.operations)
               for o in (op, *before))


def _sums_columns(op: Op) -> bool:
    """Whether `op` reduces many lines of its inputs, each as long as the result's."""
    walked = [tuple(bare_loop(e) for e in access) for _, access in op.inputs if access]
    lines = prod(estimate(size) for size, r in zip(op.loops, op.reduction, strict=True) if r)
    return bool(walked) and lines >= LINES and all(
        None not in loops and not op.reduction[loops[-1] or 0] for loops in walked)


def _together(place: Domain, reductions: int, w: Widths, cores: int) -> int:
    """Columns that are reduced together, at least two vectors: a line of them is asked for with its neighbours, and the
    next element of a column waits for the one before. The busiest core has the fewest bytes so, each line being LINE
    more than its columns."""
    size, lines, width = estimate(place.dims[-1]), volume(place.dims[:-1]), element_bytes(place.main.element)
    tried = [n * w.lanes for n in range(2, w.registers // (4 * reductions) + 1) if (n - 1) * w.lanes < size]
    return min(reversed(tried), default=0, key=lambda columns:
               -(-lines * -(-size // columns) // cores) * (columns * width + LINE))


def _vector(kernel: Kernel, place: Domain, w: Widths, reductions: bool) -> list[int]:
    dims, last = place.dims, len(place.dims) - 1
    vector = [1] * len(dims)
    vector[last] = 2 * w.lanes if estimate(dims[last]) >= 2 * w.lanes else columns_of(estimate(dims[last]), w)
    if isinstance(dims[last], int) and 2 * w.lanes < estimate(dims[last]) <= 3 * w.lanes:
        vector[last] = 3 * w.lanes      # two tiles would be four vectors
    across = _transposed_dim(kernel, place)
    if across is not None and not reductions:
        vector[last] = vector[across] = w.lanes
        rows, columns = dims[across], dims[last]
        if isinstance(rows, int) and rows < w.lanes:
            vector[across] = max(1, rows)
        if isinstance(columns, int) and columns < w.lanes:
            vector[last] = columns if columns <= INTERLEAVED else columns_of(columns, w)
            if 1 < columns <= WOVEN and across != last - 1 and _only_moves(kernel):
                vector[last - 1] = w.lanes      # whole lines of the result
    elif last and not reductions and _is_stacked(kernel, place):
        vector[last - 1:] = [w.lanes, estimate(dims[last])]
    return vector


def _is_stacked(kernel: Kernel, place: Domain) -> bool:
    """Whether short pieces are put together along the last dim, of WOVEN elements at most."""
    last = len(place.dims) - 1
    size = place.dims[last]
    pieces = {op: Pieces.of(maker(op.yielded[0])) for op in place.position if op.operation is not None}
    return isinstance(size, int) and 1 < size <= WOVEN and any(
        p is not None and p.short(size) and bare_loop(op.loops_at(place.position[op])[f"i{p.loop}"]) == last
        for op, p in pieces.items())


def _only_moves(kernel: Kernel) -> bool:
    return all(len(o.block.operations) == 1 for o in kernel.ops if o.operation is not None)


def _block(kernel: Kernel, dims: tuple[Dim, ...], vector: list[int], whole_row: bool, cores: int) -> list[int]:
    """Elements of a chunk along each dim."""
    last = len(dims) - 1
    turned = sum(v > 1 for v in vector) > 1
    per_point = max(1, work(kernel) // max(1, volume(dims)))
    cost = 1 if turned else max(1, per_point // 4)
    small = max(SMALL_CHUNK, volume(dims) * cost // (CHUNKS_EACH * cores))
    chunk = max(1, min(CHUNK, small) // cost)
    block, inner = [0] * len(dims), 1
    for d in range(last, -1, -1):
        extent = min(estimate(dims[d]), TURNED_ROW) if turned and d == last else estimate(dims[d])
        block[d] = vector[d] * max(1, min(-(-extent // vector[d]), chunk // max(1, inner * vector[d])))
        if d == last and whole_row:
            block[d] = 0
        inner *= extent
    cut = next((d for d in range(last, -1, -1) if 0 < block[d] < estimate(dims[d])), None)
    if cut is not None:
        block[cut] = _evenly(estimate(dims[cut]), volume(dims[:cut]), vector[cut], block[cut], cores)
    return block


def _evenly(extent: int, outer: int, step: int, most: int, cores: int) -> int:
    """A multiple of `step`, at most `most` and not much less, that gives the busiest core little of outer x extent."""
    def busiest(size: int) -> int:
        return -(-outer * -(-extent // size) // cores) * size

    return min(range(most, (most - 1) // 2, -step), key=busiest)


def _fits_registers(size: Dim, w: Widths) -> bool:
    """Whether a row is read once and stays in half of the registers until it is stored."""
    return isinstance(size, int) and 2 * w.lanes < size <= w.lanes * (w.registers // 2)


def _whole_lanes(op: Op, w: Widths, row: Dim) -> tuple[int, ...]:
    """As row_lanes, but a loop over the row is one step."""
    inner, loops = contiguous_loop(op), [p for p, r in enumerate(op.reduction) if r]
    return tuple(-(-estimate(row) // w.lanes) * w.lanes if p == inner and op.loops[p] == row else lanes
                 for p, lanes in zip(loops, row_lanes(op, w), strict=True))


def _past_caches(schedule: Schedule, kernel: Kernel, place: Domain, chip: Chip, whole_row: bool) -> Schedule:
    """Data beyond the caches: arguments are fetched ahead of the loops, since the hardware's prefetchers stop at pages
    and between the passes over a row; results that the last cache would not keep are stored past it."""
    dims, result = place.dims, place.main
    if not all(isinstance(d, int) for d in dims) or any(kernel.borders) or any(v > 1 for v in schedule.vector[:-1]):
        return schedule
    row, size = int(estimate(dims[-1])), volume(dims) * element_bytes(result.element)
    large = size > chip.last_cache_bytes // 2
    if size > chip.l2_bytes:
        schedule = schedule.with_cpu(ahead=-(-AHEAD // row) * row if whole_row else AHEAD)
    native = chip.vector_bytes // 4
    parked_bytes = row * element_bytes(result.element) if schedule.cpu.park >= 0 else 0
    return schedule.with_cpu(stream=large and row % native == 0 and parked_bytes <= SCRATCH)


def _parked(kernel: Kernel, place: Domain) -> int:
    """The op to keep in the result's row: dear, needed by a reduction of the row and by the result. -1: none."""
    if any(kernel.borders):
        return -1
    coordinates = tuple(symbolic.sym(f"i{d}") for d in range(len(place.dims)))
    for n, op in enumerate(kernel.ops):
        if op.is_reduction or op.operation is None or len(op.results) != 1:
            continue
        t = op.results[0]
        dear = any(inner.operation.name.startswith("math.") for inner in op.block.operations)
        readers = [o for o in kernel.ops if any(s is t for s, _ in o.inputs)]
        if dear and t.dims == place.dims and t.element == place.main.element and t is not place.main \
                and place.position.get(op) == coordinates and len(readers) > 1 \
                and any(o.is_reduction and o.reduction[-1] for o in readers) \
                and all(sum(o.reduction) == 1 for o in readers if o.is_reduction) \
                and any(not o.is_reduction for o in readers):
            return n
    return -1


def _walked(e: Dim) -> int | None:
    """The n of ``i<n>``, or of that and a number, as in a slice."""
    return bare_loop(e - symbolic.substitute(e, dict.fromkeys(symbolic.symbols_of(e), 0)))


def _transposed_dim(kernel: Kernel, place: Domain) -> int | None:
    """A domain dim, not the last, that is contiguous in the largest argument."""
    last = len(place.dims) - 1
    for t, access in sorted((*place.reads, *piece_reads(kernel, place)), key=lambda r: -volume(r[0].dims)):
        if len(access) < 2 or volume(t.dims) * 4 < volume(place.dims):
            continue
        inner = _walked(access[-1])
        if inner is not None and inner != last and any(_walked(e) == last for e in access):
            return inner
    return None
