"""Runs one compiled kernel on random data on this machine's GPU: what the tuner measures with.

In a model a kernel finds in the L2 cache what the one before it made, and its weights in memory. So the runs of a graph
read the largest input each from another copy, and the cache is overwritten before each replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.gpu_profile import FLUSH_BYTES
from xcc.targets.base import KernelBinary
from xcc.tuning.tuner_bench import Measured, Subject, random_array

RUNS = 5                    # of a graph
MOST_COPIED = 1 << 28       # bytes of an input that is copied for each run; a larger one is no guest of the cache


@lru_cache(maxsize=1)
def _driver() -> Any:
    return CudaDriver()


@dataclass
class _Buffers:
    """What the kernels of one subject run on; inputs stay on the device from one variant to the next.

    copies: addresses of further copies of input `largest`.
    """

    subject: Subject
    pointers: list[int]
    largest: int
    copies: list[int]

    def of_run(self, n: int) -> list[int]:
        """The addresses of run `n` of a graph."""
        places = [self.pointers[self.largest], *self.copies] if self.copies else []
        return [places[n % len(places)] if places and i == self.largest else p for i, p in enumerate(self.pointers)]


_held: _Buffers | None = None


def _buffers(driver: Any, subject: Subject) -> _Buffers:
    global _held
    if _held is None or _held.subject != subject:
        for p in (*_held.pointers, *_held.copies) if _held is not None else ():
            driver.free(p)
        rng = np.random.default_rng(0)
        arrays = [np.ascontiguousarray(random_array(s, d, rng)) for s, d in subject.inputs]
        sizes = [a.nbytes for a in arrays] + [prod(s) * numpy_dtype(d).itemsize for s, d in subject.outputs]
        largest = max(range(len(arrays)), key=lambda i: sizes[i], default=0)
        copied = bool(arrays) and sizes[largest] <= MOST_COPIED
        _held = _Buffers(subject, [driver.alloc(n) for n in sizes], largest,
                         [driver.alloc(sizes[largest]) for _ in range(RUNS - 1)] if copied else [])
        for p, a in zip(_held.pointers, arrays, strict=False):
            driver.upload(p, a)
        for p in _held.copies:
            driver.upload(p, arrays[largest])
    return _held


def measure(binary: KernelBinary, subject: Subject, seconds: float) -> Measured:
    """Median device seconds of a run during about `seconds`, several runs in a graph; outputs are poisoned before."""
    driver = _driver()
    driver.activate()
    env = {f"d{n}": v for n, v in enumerate(subject.symbols)}
    module = driver.load(binary.blob)
    buffers = _buffers(driver, subject)
    scratch = [driver.alloc(symbolic.evaluate(size, env)) for size in binary.scratch]
    outputs = [np.full(s, 1, numpy_dtype(d)) for s, d in subject.outputs]
    try:
        for p, a in zip(buffers.pointers[len(subject.inputs):], outputs, strict=True):
            driver.upload(p, a)
        functions = [driver.function(module, x.entry, x.shared_bytes) for x in binary.launches]

        def run(number: int) -> None:
            for n, (function, x) in enumerate(zip(functions, binary.launches, strict=True)):
                driver.launch(function, [symbolic.evaluate(d, env) for d in x.grid], x.block, x.shared_bytes,
                              [*buffers.of_run(number), *scratch], subject.symbols, x.early and number + n > 0)

        run(0)
        driver.synchronize()
        times = _times(driver, run, seconds)
        for p, a in zip(buffers.pointers[len(subject.inputs):], outputs, strict=True):
            driver.download(a, p)
    finally:
        for p in scratch:
            driver.free(p)
    return Measured(sorted(times)[len(times) // 2], tuple(outputs))


def _times(driver: Any, run: Callable[[int], None], seconds: float) -> list[float]:
    """Seconds of a run, as often as `seconds` allow; a launch from here takes longer than many a kernel."""
    driver.begin_capture()
    for n in range(RUNS):
        run(n)
    graph = driver.end_capture()
    flush = driver.alloc(2 * FLUSH_BYTES)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 50):
        driver.copy(flush, flush + FLUSH_BYTES, FLUSH_BYTES)
        start = driver.event()
        driver.replay(graph)
        times.append(driver.elapsed_ms(start, driver.event()) * 1e-3 / RUNS)
    driver.free_graph(graph)
    driver.free(flush)
    return times
