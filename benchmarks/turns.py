"""Ways to do one thing, timed in turn: what the machine does beside them meets all of them."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

PAUSE = 0.3         # seconds between turns: OpenMP's threads spin for 0.2 behind a way that uses them
READY = "ready to measure"


def median_times(ways: dict[str, Callable[[], object]], args: argparse.Namespace, *, host: bool = False
                 ) -> dict[str, float]:
    """Median milliseconds of each way, all in turn. On a GPU: of ten calls behind each other, and the wait for them;
    `host`: of one, without the wait."""
    times: dict[str, list[float]] = {k: [] for k in ways}
    repeats, wait = (1 if args.device == "cpu" or host else 10), (lambda: None) if args.device == "cpu" else _wait
    for call in ways.values():
        for _ in range(3):          # the first of them may be rehearsals
            call()
    if getattr(args, "worker", None):
        wait()
        print(READY, flush=True)
        sys.stdin.readline()
    for _ in range(args.rounds):
        for k, call in ways.items():
            wait()
            time.sleep(PAUSE)
            call()          # brings its data into the caches
            wait()
            begin = time.perf_counter()
            for _ in range(repeats):
                call()
            if not host:
                wait()
            times[k].append((time.perf_counter() - begin) * 1e3 / repeats)
    return {k: statistics.median(v) for k, v in times.items()}


def _wait() -> None:
    import torch

    torch.cuda.synchronize()
