"""A second schedule for products whose rows are known at run time, for few of them.

The tile that is best for many rows leaves a GPU idle where there are few: 128 rows are one tile of 256. Such a kernel
has two functions, and the number of rows at run time says which one is launched (passes/linalg/schedule/by_size.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import assuming, contraction_of, domain
from xcc.passes.linalg.schedule.by_size import Few

if TYPE_CHECKING:
    from collections.abc import Callable

    from xcc.passes.linalg.kernel.kernel import Kernel
    from xcc.passes.linalg.schedule.schedule import Schedule
    from xcc.targets.base import Chip

BUSY = 0.5      # of the cores that have a tile: from there on the schedule for many rows is taken
USUAL = 8       # times the rows that the other is chosen for, until many rows are reached


def few_of(kernel: Kernel, many: Schedule, chip: Chip, configure: Callable[[Kernel, Chip], Schedule]) -> Few | None:
    """What is to be taken where `many`, the schedule of `kernel` by `configure`, has tiles for less than half of the
    cores; None where that is known not to happen, or nothing else would be chosen."""
    if contraction_of(kernel) is None or many.online or many.gpu.splits > 1 or many.gpu.streamed:
        return None
    dims = iter(domain(kernel).dims)
    sizes = [symbolic.product([next(dims) for _ in range(n)]) for n in many.flatten or [1] * len(many.block)]
    unknown = [(d, b) for d, b in zip(sizes, many.block, strict=True) if not isinstance(d, int)]
    tiles = math.prod(-(-d // b) for d, b in zip(sizes, many.block, strict=True) if isinstance(d, int) and b)
    wanted = max(1, int(chip.cores * BUSY))
    if not unknown or tiles >= wanted or any(b == 0 for _, b in unknown):
        return None
    rows = symbolic.product([d for d, _ in unknown])
    limit = math.prod(b for _, b in unknown) * -(-wanted // tiles)
    names = symbolic.symbols_of(rows)
    size = 1
    while symbolic.evaluate(rows, dict.fromkeys(names, size + 1)) * USUAL <= limit:
        size += 1
    with assuming(size):
        few = configure(kernel, chip)
    if few.gpu.splits > 1 or math.prod(few.vector) >= math.prod(many.vector):
        return None
    return Few(rows, limit, few)
