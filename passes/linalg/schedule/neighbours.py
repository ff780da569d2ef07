"""Schedules near a given one: what the tuner tries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.passes.linalg.kernel.domain import estimate
from xcc.passes.linalg.kernel.kernel import Kernel
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.targets.base import Chip

MOST = 48


def neighbours(kernel: Kernel, base: Schedule, chip: Chip) -> list[Schedule]:
    """Distinct valid schedules that differ from `base` in lanes, chunks, order or threads; at most MOST."""
    dims = iter(max(kernel.results, key=lambda t: len(t.dims)).dims)
    sizes = [estimate(symbolic.product([next(dims) for _ in range(n)])) for n in base.flatten or [1] * len(base.block)]
    found: list[Schedule] = []
    fixed = not kernel.symbols
    makers = _gpu(base, sizes, chip, fixed) if base.access == "gather" else _cpu(base, sizes, chip)
    for make in makers:
        try:
            schedule = make()
        except UserError:
            continue
        if schedule != base and schedule not in found:
            found.append(schedule)
        if len(found) == MOST:
            break
    return found


def _scaled(base: Schedule, d: int, lanes: int) -> Schedule:
    """`base` with other lanes in dim d; its chunk keeps its number of steps."""
    steps = -(-base.block[d] // base.vector[d])
    vector = (*base.vector[:d], lanes, *base.vector[d + 1:])
    block = (*base.block[:d], steps * lanes, *base.block[d + 1:])
    return replace(base, vector=vector, block=block)


def _cpu(base: Schedule, sizes: list[int], chip: Chip) -> Iterator[Callable[[], Schedule]]:
    n = len(base.vector)
    last = n - 1
    lanes = max(1, chip.vector_bytes // 4)
    wide = [lanes, 2 * lanes, 3 * lanes, 4 * lanes]
    tall = [2, 4, 6, 7, 8, 10, 12, 13, 14, 16]
    rows = [d for d in range(last) if base.vector[d] > 1 and not base.cpu.kept]    # tiles of what is kept stay whole
    for columns in wide:
        if n and columns != base.vector[last] and columns < 2 * max(1, sizes[last]):
            yield partial(_scaled, base, last, columns)
    for d in rows:
        for r in tall:
            if r <= sizes[d] and r * max(1, base.vector[last] // lanes) <= chip.vector_registers - 2:
                yield partial(_scaled, base, d, r)
    for d in range(n):
        for factor in (0.25, 0.5, 2, 4):
            yield partial(_chunk, base, d, factor, sizes)
    for order in _orders(base.order):
        yield partial(replace, base, order=order)
    for k, group in enumerate(base.reduce):
        for i, width in enumerate(group):
            for other in (lanes, 2 * lanes, 4 * lanes) if width > 1 else ():
                yield partial(replace, base, reduce=_put(base.reduce, k, i, other))


def _gpu(base: Schedule, sizes: list[int], chip: Chip, fixed: bool) -> Iterator[Callable[[], Schedule]]:
    n, now = len(base.vector), base.gpu.threads
    for threads in (64, 128, 256, 512):
        if threads != now and threads <= chip.max_threads:
            yield partial(base.with_gpu, threads=threads)
    for stages in (2, 3, 4, 5, 6) if base.gpu.stages > 1 else ():
        yield partial(base.with_gpu, stages=stages)
    for splits in (0, base.gpu.splits // 2, 2 * base.gpu.splits or 4) if base.online else ():
        yield partial(base.with_gpu, splits=splits if splits > 1 else 0)
    if chip.warpgroup_products and base.gpu.stages > 1 and not base.online:
        yield partial(base.with_gpu, warpgroup=not base.gpu.warpgroup)
        yield from _warpgroup_tiles(base)
    if base.gpu.warpgroup and not base.online:
        yield partial(base.with_gpu, persistent=0 if base.gpu.persistent else chip.cores)
    if base.gpu.streamed:
        yield partial(base.with_gpu, streamed=())
    elif fixed and base.gpu.stages > 1 and n == 2 and not base.online and not base.flatten and not any(base.joined):
        tiles = math.prod(-(-size // lanes) for size, lanes in zip(sizes, base.vector, strict=True))
        if tiles % chip.cores:
            yield partial(base.with_gpu, streamed=(tiles % chip.cores, chip.cores))
    for d in range(n):
        for factor in (0.5, 2, 4):
            lanes = int(base.vector[d] * factor)
            if lanes >= 1 and lanes < 4 * max(1, sizes[d]):
                for threads in {now, max(chip.warp, min(chip.max_threads, int(now * factor)))}:
                    yield partial(_scaled, base.with_gpu(threads=threads), d, lanes)
    for factor in (0.5, 2):
        yield from _scaled_steps(base, factor, chip)


def _warpgroup_tiles(base: Schedule) -> Iterator[Callable[[], Schedule]]:
    """The tile shapes that suit instructions of warpgroups, steps of 64 elements."""
    sides = [d for d, lanes in enumerate(base.vector) if lanes > 1]
    if len(sides) != 2:
        return
    reduce = tuple(tuple(64 if n > 1 else n for n in group) for group in base.reduce)
    for tile in ((128, 256), (256, 128), (128, 128), (128, 64), (64, 128), (64, 64), (64, 256)):
        vector = list(base.vector)
        for d, lanes in zip(sides, tile, strict=True):
            vector[d] = lanes
        for threads in (128, 256):
            if 32 <= tile[0] * tile[1] // threads <= 128:
                for stages in (4, 6, 8) if sum(tile) <= 256 else (4,):
                    group = base.with_gpu(threads=threads, stages=stages, warpgroup=True)
                    yield partial(replace, group, block=tuple(vector), vector=tuple(vector), reduce=reduce)


def _scaled_steps(base: Schedule, factor: float, chip: Chip) -> Iterator[Callable[[], Schedule]]:
    """Other lanes along reductions, with and without as many more threads; an online loop's reductions go together."""
    if base.online:
        lanes = max((n for group in base.reduce for n in group), default=1)
        scaled = tuple(tuple(int(n * factor) if n == lanes else n for n in group) for group in base.reduce)
        if lanes > 1:
            yield partial(replace, base, reduce=scaled)
        return
    for k, group in enumerate(base.reduce):
        for i, width in enumerate(group):
            if width > 1:
                reduce = _put(base.reduce, k, i, int(width * factor))
                yield partial(replace, base, reduce=reduce)
                if base.gpu.stages < 2:
                    threads = max(chip.warp, min(chip.max_threads, int(base.gpu.threads * factor)))
                    yield partial(replace, base.with_gpu(threads=threads), reduce=reduce)


def _chunk(base: Schedule, d: int, factor: float, sizes: list[int]) -> Schedule:
    steps = base.block[d] // base.vector[d]
    if not steps:
        return base
    most = -(-sizes[d] // base.vector[d])
    steps = max(1, min(most, int(steps * factor)))
    return replace(base, block=(*base.block[:d], steps * base.vector[d], *base.block[d + 1:]))


def _orders(order: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    for i in range(len(order) - 1):
        yield (*order[:i], order[i + 1], order[i], *order[i + 2:])


def _put(groups: tuple[tuple[int, ...], ...], k: int, i: int, value: int) -> tuple[tuple[int, ...], ...]:
    group = (*groups[k][:i], value, *groups[k][i + 1:])
    return (*groups[:k], group, *groups[k + 1:])
