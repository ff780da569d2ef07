"""A second schedule for reductions of rows whose length is known at run time, for short ones.

Lanes along such a row are off for the most part, and to combine them takes as long as for a long row. So each lane has
a row of its own, which is walked element by element (passes/linalg/schedule/by_size.py).
"""

from __future__ import annotations

from xcc.passes.linalg.kernel.domain import Domain, domain, estimate
from xcc.passes.linalg.kernel.kernel import Kernel
from xcc.passes.linalg.schedule.by_size import Few
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim
from xcc.targets.cpu.rows import Widths, contiguous_loop

SHORT = 24      # elements of a row: lanes are combined in the time that as many take one by one,
STORED = 16     # fewer where the results are rows as well, and stored so
ROWS = 256      # of a chunk


def short_rows(kernel: Kernel, many: Schedule, w: Widths) -> Few | None:
    """What is to be taken for short rows where `many` is the schedule of `kernel`; None where the length of rows is
    known, or where something else than rows is reduced, or there is no dim of many rows."""
    place = domain(kernel)
    row = _row(kernel)
    lane = -1 if row is None else _dim_of_rows(kernel, place, row)
    if row is None or lane < 0 or many.cpu.dot or many.cpu.along or estimate(place.dims[lane]) < w.lanes:
        return None
    last = len(place.dims) - 1
    block, vector = [1] * len(place.dims), [1] * len(place.dims)
    block[lane], vector[lane] = ROWS, w.lanes
    if lane != last:
        block[last] = 0
    few = Schedule(tuple(block), tuple(vector), tuple(range(last + 1)), ((1,),) * len(many.reduce),
                   parallel=many.parallel)
    return Few(row, SHORT if lane == last else STORED, few)


def _row(kernel: Kernel) -> Dim | None:
    """The length of the rows that all reductions are along, where it is known at run time only."""
    sizes = set()
    for op in (o for o in kernel.ops if o.is_reduction):
        inner = contiguous_loop(op)
        sizes.add(op.loops[inner] if inner is not None and op.reduction[inner] and sum(op.reduction) == 1 else 0)
    size = sizes.pop() if len(sizes) == 1 else 0
    return None if isinstance(size, int) else size


def _dim_of_rows(kernel: Kernel, place: Domain, row: Dim) -> int:
    """The last dim of the domain that is not along rows; -1: there is none."""
    dims, last = place.dims, len(place.dims) - 1
    main = place.main.producer
    to_main = main is not None and any(place.position.get(o) == place.position.get(main)
                                       for o in kernel.ops if o.is_reduction)
    return last if to_main else last - 1 if dims and dims[last] == row else -1
