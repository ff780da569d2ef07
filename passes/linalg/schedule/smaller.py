"""Smaller tiles than a GPU strategy's, for a kernel that turns out to need more shared memory than the chip has.

What a kernel keeps there is known when its threads' code is made: tiles that loads run ahead into, operands, what goes
from one layout to another. So a strategy estimates, and where the code generator finds no room, the next smaller
schedule is tried.
"""

from __future__ import annotations

from dataclasses import replace

from xcc.passes.linalg.schedule.schedule import Schedule

SIDE = 16       # lanes of a dim that matrix instructions have, or as many as lines of memory are long


def smaller(schedule: Schedule, steps: int) -> Schedule:
    """`schedule` made smaller so many times; where nothing is left to make smaller, the smallest.

    Loads run less far ahead, then not at all; then the longest side of the tiles is halved again and again: those of
    results first, then those of steps, as far as matrix instructions go, then farther.
    """
    for _ in range(steps):
        schedule = _next(schedule)
    return schedule


def _next(s: Schedule) -> Schedule:
    if s.gpu.stages > 2:
        return s.with_gpu(stages=2)
    if s.gpu.stages or s.gpu.warpgroup or s.gpu.persistent or s.gpu.streamed:
        return s.with_gpu(stages=0, warpgroup=False, persistent=0, streamed=())
    for least in (SIDE, 1):
        if max(s.vector, default=1) > least:
            return _halved(s)
        longest = max((n for lanes in s.reduce for n in lanes), default=1)
        if longest > least:
            return replace(s, reduce=tuple(tuple(n // 2 if n == longest else n for n in lanes) for lanes in s.reduce))
    return s


def _halved(s: Schedule) -> Schedule:
    """Half the longest side of results; of several, of the first one in memory."""
    d = s.vector.index(max(s.vector))
    halves = [tuple(n // 2 if i == d else n for i, n in enumerate(sizes)) for sizes in (s.block, s.vector)]
    return replace(s, block=halves[0], vector=halves[1])
