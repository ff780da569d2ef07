"""Runs one compiled kernel on random data on this machine's GPU: what the tuner measures with."""

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
from xcc.targets.base import KernelBinary
from xcc.targets.cpu.measure import random_array
from xcc.tuner_bench import Measured, Subject

__all__ = ["measure"]

RUNS = 5        # of a graph


@lru_cache(maxsize=1)
def _driver() -> Any:
    return CudaDriver()


@dataclass
class _Buffers:
    """What the kernels of one subject run on; inputs stay on the device from one variant to the next."""

    subject: Subject
    pointers: list[int]


_held: _Buffers | None = None


def _buffers(driver: Any, subject: Subject) -> _Buffers:
    global _held
    if _held is None or _held.subject != subject:
        for p in _held.pointers if _held is not None else ():
            driver.free(p)
        rng = np.random.default_rng(0)
        arrays = [np.ascontiguousarray(random_array(s, d, rng)) for s, d in subject.inputs]
        sizes = [a.nbytes for a in arrays] + [prod(s) * numpy_dtype(d).itemsize for s, d in subject.outputs]
        _held = _Buffers(subject, [driver.alloc(n) for n in sizes])
        for p, a in zip(_held.pointers, arrays, strict=False):
            driver.upload(p, a)
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

        def run(behind_another: bool) -> None:
            for n, (function, x) in enumerate(zip(functions, binary.launches, strict=True)):
                driver.launch(function, [symbolic.evaluate(d, env) for d in x.grid], x.block, x.shared_bytes,
                              [*buffers.pointers, *scratch], subject.symbols, x.early and (behind_another or n > 0))

        run(False)
        driver.synchronize()
        times = _times(driver, run, seconds)
        for p, a in zip(buffers.pointers[len(subject.inputs):], outputs, strict=True):
            driver.download(a, p)
    finally:
        for p in scratch:
            driver.free(p)
    return Measured(sorted(times)[len(times) // 2], tuple(outputs))


def _times(driver: Any, run: Callable[[bool], None], seconds: float) -> list[float]:
    """Seconds of a run, as often as `seconds` allow; a launch from here takes longer than many a kernel."""
    driver.begin_capture()
    for n in range(RUNS):
        run(n > 0)
    graph = driver.end_capture()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 50):
        start = driver.event()
        driver.replay(graph)
        times.append(driver.elapsed_ms(start, driver.event()) * 1e-3 / RUNS)
    driver.free_graph(graph)
    return times
