"""Measures on this CPU: one compiled kernel on random data, for the tuner, and the machine's limits."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from xcc.runtime.cores import physical_cores
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.library import load_library
from xcc.runtime.tile_registers import allow_tiles
from xcc.targets.base import KernelBinary
from xcc.targets.cpu.machine import Machine, measured
from xcc.tuning.tuner_bench import Measured, Subject, random_array


def measure(binary: KernelBinary, subject: Subject, seconds: float) -> Measured:
    """Median seconds of calls during about `seconds`, on the threads of a model."""
    from xcc.targets.cpu.chip import real_host
    from xcc.targets.cpu.codegen import thread_pool
    from xcc.targets.cpu.link import link_shared

    if "amx" in real_host().matrix:
        allow_tiles()
    library = load_library(link_shared([binary.blob, thread_pool(real_host())]))
    library.xcc_set_threads(ctypes.c_int32(physical_cores()))
    rng = np.random.default_rng(0)
    inputs = [np.ascontiguousarray(random_array(s, d, rng)) for s, d in subject.inputs]
    outputs = [np.zeros(s, numpy_dtype(d)) for s, d in subject.outputs]
    function = getattr(library, binary.launches[0].entry)
    function.restype = None
    arguments = [*(ctypes.c_void_p(a.ctypes.data) for a in (*inputs, *outputs)),
                 *(ctypes.c_int64(v) for v in subject.symbols)]
    function(*arguments)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 500):
        begin = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - begin)
    return Measured(sorted(times)[len(times) // 2], tuple(outputs))


def limits(model: Any, again: bool) -> tuple[Machine, str]:
    """The limits of this machine with the threads of `model`, measured once (or `again`), and a line about them."""
    machine = measured(model.executor.threads, again)
    peaks = ", ".join(f"{t} {rate / 1e9:.0f} GFLOP/s" for t, rate in machine.flops.items())
    return machine, (f"limits, {machine.threads} threads: {peaks}; {machine.bandwidth[-1][1] / 1e9:.1f} GB/s from "
                     f"memory, {machine.bandwidth[0][1] / 1e9:.0f} GB/s from the first cache")
