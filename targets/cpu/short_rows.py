"""Schedules of reductions along short rows: each lane has a row of its own, whose elements are taken one by one.

Lanes along such a row are off for the most part, to combine them takes as long as for a long row, and what follows of
its sum (a logarithm, a division) is of one number. Where only a run knows the length, it is a second schedule
(passes/linalg/schedule/by_size.py).
"""

from __future__ import annotations

from xcc.passes.linalg.kernel.domain import Domain, domain, estimate
from xcc.passes.linalg.kernel.kernel import Kernel
from xcc.passes.linalg.schedule.by_size import Few
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim
from xcc.targets.cpu.rows import Widths, contiguous_loop

SHORT = 8       # elements of a row: a block of TURNED of as many rows as lanes is turned in the time that these take
STORED = 16     # one by one; where the results are rows as well, lanes along them are combined in that of as many
TURNED = 8
LONG = 128      # from here on a row is long enough for lanes of its own
ROWS = 256      # of a chunk


def known_rows(kernel: Kernel, place: Domain, w: Widths, parallel: bool) -> Schedule | None:
    """The schedule of rows of a known length that are stored again, where they are well below a vector: as many of them
    are turned at once. None for other kernels."""
    row = _row(kernel)
    if not isinstance(row, int) or not 0 < 4 * row <= 3 * w.lanes or any(kernel.borders):
        return None
    lane = _dim_of_rows(kernel, place, row)
    if lane != len(place.dims) - 2 or lane < 0 or estimate(place.dims[lane]) < w.lanes:
        return None
    return _side_by_side(kernel, place, lane, w, (row, 0), parallel)


def short_rows(kernel: Kernel, many: Schedule, w: Widths) -> tuple[Few, ...]:
    """What is to be taken for short rows where `many` is the schedule of `kernel`; nothing where the length of rows is
    known, or where something else than rows is reduced, or there is no dim of many rows."""
    place, row = domain(kernel), _row(kernel)
    lane = -1 if row is None else _dim_of_rows(kernel, place, row)
    if row is None or isinstance(row, int) or lane < 0 or many.cpu.dot or many.cpu.along \
            or estimate(place.dims[lane]) < w.lanes:
        return ()
    single = _side_by_side(kernel, place, lane, w, (1, 1), many.parallel)
    if lane != len(place.dims) - 1:
        return (Few(row, STORED, single),)
    turned = _side_by_side(kernel, place, lane, w, (1, min(w.lanes, TURNED)), many.parallel)
    return Few(row, LONG, turned), Few(row, SHORT, single)


def _side_by_side(kernel: Kernel, place: Domain, lane: int, w: Widths, row: tuple[int, int],
                  parallel: bool) -> Schedule:
    """Lanes along dim `lane`; `row`: those of the dim behind it, if there is one, and those of reductions."""
    dims, last = place.dims, len(place.dims) - 1
    block, vector, left = [0] * len(dims), [1] * len(dims), ROWS
    vector[lane] = w.lanes
    if lane != last:
        vector[last] = row[0]
    for d in range(lane, -1, -1):
        block[d] = vector[d] * max(1, min(-(-estimate(dims[d]) // vector[d]), left // vector[d]))
        left //= block[d]
    reduce = tuple(tuple(1 if o.loops[p] == 1 else row[1] for p, r in enumerate(o.reduction) if r)
                   for o in kernel.ops if o.is_reduction)
    return Schedule(tuple(block), tuple(vector), tuple(range(last + 1)), reduce, parallel=parallel)


def _row(kernel: Kernel) -> Dim | None:
    """The length of the rows that all reductions are along; None where there are others, or none."""
    sizes: set[Dim | None] = set()
    for op in (o for o in kernel.ops if o.is_reduction):
        inner = contiguous_loop(op)
        reduced = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
        sizes.add(op.loops[inner] if inner is not None and reduced == [inner] else None)
    return sizes.pop() if len(sizes) == 1 else None


def _dim_of_rows(kernel: Kernel, place: Domain, row: Dim) -> int:
    """The last dim of the domain that is not along rows; -1: there is none."""
    dims, last = place.dims, len(place.dims) - 1
    main = place.main.producer
    to_main = main is not None and any(place.position.get(o) == place.position.get(main)
                                       for o in kernel.ops if o.is_reduction)
    return last if to_main else last - 1 if dims and dims[last] == row else -1
