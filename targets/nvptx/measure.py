"""Runs one compiled kernel on random data on this machine's GPU: what the tuner measures with."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.dtypes import numpy_dtype
from xcc.targets.base import KernelBinary
from xcc.targets.cpu.measure import random_array
from xcc.tuner import Measured, Subject

__all__ = ["measure"]


@lru_cache(maxsize=1)
def _driver() -> Any:
    return CudaDriver()


def measure(binary: KernelBinary, subject: Subject, seconds: float) -> Measured:
    """Median device seconds of a run during about `seconds`."""
    driver = _driver()
    driver.activate()
    rng = np.random.default_rng(0)
    arrays = [np.ascontiguousarray(random_array(s, d, rng)) for s, d in subject.inputs]
    arrays += [np.zeros(s, numpy_dtype(d)) for s, d in subject.outputs]
    env = {f"d{n}": v for n, v in enumerate(subject.symbols)}
    module = driver.load(binary.blob)
    pointers = [driver.alloc(a.nbytes) for a in arrays]
    pointers += [driver.alloc(symbolic.evaluate(size, env)) for size in binary.scratch]
    try:
        for p, a in zip(pointers, arrays, strict=False):
            driver.upload(p, a)
        functions = [driver.function(module, x.entry, x.shared_bytes) for x in binary.launches]

        def run() -> None:
            for function, x in zip(functions, binary.launches, strict=True):
                driver.launch(function, [symbolic.evaluate(d, env) for d in x.grid], x.block, x.shared_bytes, pointers,
                              subject.symbols)

        run()
        driver.synchronize()
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < 5 or (time.perf_counter() < end and len(times) < 200):
            start = driver.event()
            run()
            times.append(driver.elapsed_ms(start, driver.event()) * 1e-3)
        outputs = arrays[len(subject.inputs):]
        for p, a in zip(pointers[len(subject.inputs):], outputs, strict=False):
            driver.download(a, p)
    finally:
        for p in pointers:
            driver.free(p)
    return Measured(sorted(times)[len(times) // 2], tuple(outputs))
