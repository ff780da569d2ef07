"""Times the kernels of a CPU model one by one, on the buffers of a real run."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xcc import symbolic
from xcc.runtime.arena import walk
from xcc.runtime.launch_time import LaunchTime
from xcc.runtime.program import Launch, Program

REPEATS = 7
SECONDS = 0.02


def profile(library: ctypes.CDLL, program: Program, address: Callable[[int], int],
            env: Mapping[str, int]) -> list[LaunchTime]:
    """Each launch and its median seconds, in the order of the program; `address` gives buffers' pointers.

    Launches inside conditions and loops are timed once each, with loop counters at 0.
    """
    out = []
    for launch in walk(program.body):
        if isinstance(launch, Launch):
            symbols = tuple(symbolic.evaluate(d, env) for d in launch.symbols)
            call = _call(library, launch, address, symbols)
            out.append(LaunchTime(launch.kernel, _median(call), symbols))
    return out


def _call(library: ctypes.CDLL, launch: Launch, address: Callable[[int], int],
          symbols: Sequence[int]) -> Callable[[], Any]:
    function = getattr(library, launch.kernel)
    function.restype = None
    arguments: Sequence[Any] = [ctypes.c_void_p(address(b)) for b in launch.buffers]
    scalars = [ctypes.c_int64(value) for value in symbols]
    return lambda: function(*arguments, *scalars)


def _median(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < REPEATS or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        if len(times) >= 200:
            break
    return sorted(times)[len(times) // 2]
