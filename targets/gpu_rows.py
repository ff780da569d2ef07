"""Schedules of GPU kernels without a matrix product: pointwise, transposes, row and column reductions, windows.

Rows that fit are reduced in one step with the row kept in registers, a warp a row where rows are short and many, else
a block a row; longer rows are walked in a loop. Columns are reduced by the threads of a block side by side.
"""

from __future__ import annotations

from collections.abc import Iterator

from xcc import symbolic
from xcc.passes.linalg.evaluate.row_parts import levels_of
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Op, Tensor, bare_loop
from xcc.passes.linalg.kernel.online import find_groups
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.gpu_pointwise import pointwise_tile, reads_little, threads_for
from xcc.targets.gpu_windows import window_tile

ROW_IN_REGISTERS = 16384    # elements of a row that one block keeps
WARP_ROW = 1024             # elements of a row that one warp keeps
COLUMN_BYTES = (128, 64, 32)    # of neighbours in a step of a column reduction: the most that leave work for nearly all
                                # cores, at least a sector
COLUMN_ELEMENTS = 32        # of a thread in it: several loads of 16 bytes are under way
COLUMN_THREADS = (128, 256, 512)    # the fewest that give a core `COLUMN_BUSY` of them: many small blocks end evenly
COLUMN_BUSY = 768
LOOP_LANES = 1024
LONG, LONG_ONLINE, LONG_ONCE = (8192, 1024), (8192, 512), (4096, 256)  # elements and threads of a step of a longer row;
                            # where it is walked again so few rows are under way that L2 keeps them
UNROLL = 16                 # steps of a window or of few parts that are written out, so that their loads overlap


def row_schedule(kernel: Kernel, place: Domain, chip: Chip) -> Schedule:
    """The schedule of a kernel that has no matrix product."""
    dims = place.dims
    reductions = [o for o in kernel.ops if o.is_reduction]
    online = any(map(_walked, reductions)) and bool(find_groups(kernel))
    step = _long_step(kernel, place, reductions, online)
    reduce = tuple(row_lanes(o, step[0]) for o in reductions)
    if not dims:
        return Schedule((), (), (), reduce, "mask", "gather", parallel=True, gpu=GpuPart(threads=256))
    row = max((n for lanes in reduce for n in lanes), default=1)
    joined: tuple[tuple[int, ...], ...] = ()
    beside = 1
    if row > 1:
        block, vector, threads = _rows(place, reductions, row, step, chip)
    else:
        neighbours, threads = _column_tile(place, reductions, chip)
        columns = [_column_lanes(place, o, threads * COLUMN_ELEMENTS, neighbours) for o in reductions]
        if any(n > 1 for lanes in columns for n in lanes):
            reduce = tuple(columns)
            joined = tuple(_joined(o, lanes) for o, lanes in zip(reductions, columns, strict=True))
            block = vector = [*(1 for _ in dims[1:]), min(neighbours, pow2_above(estimate(dims[-1])))]
            threads = threads_for(vector[-1] * max(n for lanes in columns for n in lanes), chip, threads)
        elif (window := window_tile(place, reductions, chip)) is not None:
            block = vector = list(window.tile)
            threads, beside = window.threads, window.beside
        else:
            block, vector, threads = pointwise_tile(place, bool(reductions), reads_little(kernel, place), chip)
    return Schedule(tuple(block), tuple(vector), tuple(range(len(dims))), reduce, "mask", "gather", parallel=True,
                    joined=joined, online=online, gpu=GpuPart(threads=threads, beside=beside))


def row_lanes(op: Op, long: int = LONG[0]) -> tuple[int, ...]:
    """A whole contiguous row when it is known to fit, else a loop over wide pieces, of `long` elements.

    Other loops go step by step, those of a small window written out.
    """
    inner = _contiguous_loop(op)
    loops = [p for p, r in enumerate(op.reduction) if r]
    room, unrolled = UNROLL, set()
    for p in reversed(loops):
        size = op.loops[p]
        if p != inner and isinstance(size, int) and 0 < size <= room:
            unrolled.add(p)
            room //= size
        else:
            break
    out = []
    for p in loops:
        size = op.loops[p]
        if p != inner:
            out.append(0 if p in unrolled else 1)
        elif isinstance(size, int) and size <= ROW_IN_REGISTERS:
            out.append(pow2_above(size))
        else:
            out.append(_step(size, long))
    return tuple(out)


def _step(size: Dim, long: int) -> int:
    """Elements of a step along a row that registers do not keep."""
    return long if isinstance(size, int) else LOOP_LANES


def _long_step(kernel: Kernel, place: Domain, reductions: list[Op], online: bool) -> tuple[int, int]:
    """Elements and threads of a step along a row of a known length that registers do not keep.

    A maximum and sums relative to it are one walk, `online`; what is pointwise on the rows is another.
    """
    walks = len(levels_of(kernel)) - online + (not reduced_to_main(place, reductions))
    return LONG_ONCE if walks == 1 else LONG_ONLINE if online else LONG


def _walked(op: Op) -> bool:
    """Whether a row has a known length that registers do not keep."""
    inner = _contiguous_loop(op)
    size = op.loops[inner] if inner is not None and op.reduction[inner] else 0
    return isinstance(size, int) and size > ROW_IN_REGISTERS


def _largest_access(op: Op) -> tuple[Dim, ...]:
    return max((a for _, a in op.inputs), key=len, default=())


def _contiguous_loop(op: Op) -> int | None:
    """The loop that walks the largest input's last dim by ones."""
    access = _largest_access(op)
    return _by_ones(access[-1]) if access else None


def _by_ones(place: Dim) -> int | None:
    """The loop that walks the coordinate `place` by ones: i1 of i0*512 + i1."""
    terms = place.terms if isinstance(place, symbolic.Expr) else ()
    names = [m[0][0] for m, c in terms if len(m) == 1 and c == 1 and len(m[0]) == 1]
    return int(names[0][1:]) if len(names) == 1 and names[0].startswith("i") else None


def _rows(place: Domain, reductions: list[Op], row: int, long: tuple[int, int], chip: Chip
          ) -> tuple[list[int], list[int], int]:
    """Block, vector and threads of reductions of rows, and of what is pointwise on them; of `long` ones those of a
    step."""
    dims = place.dims
    last = len(dims) - 1
    vector, block = [1] * len(dims), [1] * len(dims)
    size = dims[last]
    outer = list(range(len(dims)))
    if not reduced_to_main(place, reductions):
        vector[last] = pow2_above(size) if isinstance(size, int) and size <= ROW_IN_REGISTERS else _step(size, long[0])
        block[last] = 0     # one block walks the whole row: its reductions are shared by all of it
        row = max(row, vector[last])
        outer.pop()
    count = volume(dims[d] for d in outer)
    warps = 4
    room = max(warps, warps * chip.warp * 8 // row) if row <= WARP_ROW else 1
    while room > 1 and -(-count // room) < 2 * chip.cores:
        room //= 2
    rows = room
    for d in reversed(outer):
        block[d] = vector[d] = min(room, pow2_above(estimate(dims[d])))
        room //= vector[d]
    if rows >= warps:
        return block, vector, warps * chip.warp
    if any(map(_walked, reductions)):
        return block, vector, min(long[1], chip.max_threads)
    return block, vector, threads_for(rows * row // (2 if row > 2 * WARP_ROW else 1), chip, 512)


def reduced_to_main(place: Domain, reductions: list[Op]) -> bool:
    """Whether the kernel's result is the reduced value itself (and what is pointwise on it)."""
    return any(place.position.get(o) == tuple(symbolic.sym(f"i{d}") for d in range(len(place.dims)))
               for o in reductions)


def _column_lanes(place: Domain, op: Op, tile: int, neighbours: int) -> tuple[int, ...]:
    """Lanes along the loop that walks a dim of the input by ones, behind which lies a dim that is not reduced: those
    of a tile of so many elements."""
    access = _access_in_memory(op)
    loops = [p for p, r in enumerate(op.reduction) if r]
    walked = [p for p in loops if op.loops[p] != 1]
    bare = [p for p in map(_by_ones, access) if p in walked]
    inner = bare_loop(access[-1]) if access else None
    if not bare or inner is None or inner in loops or not reduced_to_main(place, [op]) or not _reads_once(op, access):
        return row_lanes(op)
    size = volume(op.loops[p] for p in loops)
    if size <= UNROLL or len(bare) != len(walked):
        return row_lanes(op)
    rows = tile // min(neighbours, pow2_above(estimate(op.loops[inner])))
    return tuple(min(rows, pow2_above(size)) if p == bare[-1] else 1 for p in loops)


def _reads_once(op: Op, access: Access) -> bool:
    """Whether an element read by `access` goes to one result: the taps of a window's filter go to all of them."""
    walked = set(map(_by_ones, access))
    return all(size == 1 or p in walked for p, size in enumerate(op.loops))


def _joined(op: Op, lanes: tuple[int, ...]) -> tuple[int, ...]:
    """The loops of a column reduction, in the order in which the input's dims lie, where they are several."""
    loops = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
    if len(loops) < 2 or max(lanes) < 2:
        return ()
    return tuple(p for p in map(_by_ones, _access_in_memory(op)) if p in loops)


def _access_in_memory(op: Op) -> Access:
    """How `op` reads the largest argument that its input is made of, where that has a dim for each of its loops: a
    transpose ahead of it says how its loops lie. Else how it reads its input."""
    own = max((a for _, a in op.inputs), key=lambda a: (len(a), sum(bare_loop(e) is not None for e in a)), default=())
    inner = {bare_loop(own[-1])} if own else set()
    seen: set[tuple[Tensor, Access]] = set()
    whole = [(volume(t.dims), access) for t, a in op.inputs for t, access in _arguments(t, a, seen)
             if len(access) == len(own) and {bare_loop(e) for e in access} == {bare_loop(e) for e in own}
             and {bare_loop(access[-1])} == inner]
    return max(whole, key=lambda found: found[0], default=(0, own))[1]


def _arguments(t: Tensor, access: Access, seen: set[tuple[Tensor, Access]]) -> Iterator[tuple[Tensor, Access]]:
    """The kernel's arguments behind t[access], with how they are read."""
    if (t, access) in seen or t.producer is not None and t.producer.is_reduction:
        return
    seen.add((t, access))
    if t.producer is None:
        yield t, access
        return
    for source, a in t.producer.reads(t.producer.loops_at(access, t.index)):
        yield from _arguments(source, a, seen)


def _column_tile(place: Domain, reductions: list[Op], chip: Chip) -> tuple[int, int]:
    """Columns of a block where columns are reduced, neighbours of what is largest among what is read, and its threads.

    Two blocks of a core or more where sums of products read what they multiply at computed places.
    """
    read = [t for t, _ in place.reads] or [place.main]      # pieces of a concatenation are read at computed places
    most = max(volume(t.dims) for t in read)
    size = max(element_bytes(t.element) for t in read if volume(t.dims) == most)
    wanted = chip.cores * (2.0 if any(len(o.inputs) > len(o.results) for o in reductions) else 0.9)
    results = volume(place.dims)
    neighbours = next((b // size for b in COLUMN_BYTES if results * size // b >= wanted), COLUMN_BYTES[-1] // size)
    blocks = max(1, results // neighbours)
    return neighbours, next((n for n in COLUMN_THREADS if blocks * n >= COLUMN_BUSY * chip.cores), COLUMN_THREADS[-1])
