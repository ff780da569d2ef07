"""Device times of a GPU model: whole runs as graph replays, and kernels one by one, both by device events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from xcc import symbolic
from xcc.runtime.launch_time import LaunchTime
from xcc.runtime.program import For, If, Launch, Statement, While

FLUSH_BYTES = 256 << 20     # more than any L2 cache
REPEATS = 30


def run_times(executor: Any, symbols: Mapping[str, int], repeats: int = REPEATS, cold: bool = True,
              before: Callable[[], None] | None = None) -> list[float]:
    """Seconds of `repeats` runs on the inputs of the run before, without copies from and to the host.

    cold: the L2 cache is overwritten before each run, after a call of `before` where there is one. Host decisions (if,
    while) are timed with what they wait for.
    """
    driver = executor.driver
    flush = driver.alloc(2 * FLUSH_BYTES) if cold else 0
    times = []
    try:
        for _ in range(repeats):
            if before is not None:
                before()
            if cold:
                driver.copy(flush, flush + FLUSH_BYTES, FLUSH_BYTES)
            start = driver.event()
            executor.replay(symbols)
            times.append(driver.elapsed_ms(start, driver.event()) * 1e-3)
    finally:
        if cold:
            driver.free(flush)
    return times


def profile(executor: Any, symbols: Mapping[str, int], repeats: int = 10) -> list[LaunchTime]:
    """Each launch that the program reaches without a condition or loop count known only later, and its seconds; of a
    loop those of its first turn."""
    driver = executor.driver
    out = []
    for launch, turns in _launches(executor.program.body, {}):
        known = {**symbols, **turns}
        if any(s not in known for d in (*launch.grid, *launch.symbols) for s in symbolic.symbols_of(d)):
            continue
        driver.begin_capture()      # a launch from here takes longer than many a kernel
        for _ in range(repeats):
            executor.launch(launch, symbols, turns)
        graph = driver.end_capture()
        driver.replay(graph)
        start = driver.event()
        driver.replay(graph)
        seconds = driver.elapsed_ms(start, driver.event()) * 1e-3 / repeats
        driver.free_graph(graph)
        out.append(LaunchTime(launch.kernel, seconds, tuple(symbolic.evaluate(d, known) for d in launch.symbols)))
    return out


def _launches(body: Iterable[Statement], turns: Mapping[str, int]) -> Iterator[tuple[Launch, Mapping[str, int]]]:
    """The launches, with the counters of the loops around them at their first turn."""
    for s in body:
        if isinstance(s, Launch):
            yield s, turns
        elif isinstance(s, If):
            yield from _launches((*s.then, *s.orelse), turns)
        elif isinstance(s, While):
            yield from _launches((*s.before, *s.body), turns)
        elif isinstance(s, For):
            yield from _launches(s.body, {**turns, s.counter: 0})
