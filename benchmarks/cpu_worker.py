"""A runtime's process of benchmarks/cpu.py: imports the runtime once and forks for each case, so that a case that
crashes costs no other one. A case whose memory counts is its process's only one: what a fork has to map again of the
libraries would count, too.

    python benchmarks/cpu_worker.py RUNTIME

Reads lines of JSON: {"folder", "threads", "alone"} loads the case in the folder (job.json, feeds.npz; its outputs go to
RUNTIME.npz), {"seconds"} runs it so long, {"end"} ends it. Answers each with a line of JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from cpu_runtimes import IMPORTS, RUNTIMES, Call, Feeds, Repeated

LONG = 0.1              # seconds of a call that caches are warm for after its first part


def longest_kernel(folder: Path, feeds: Feeds) -> Callable[[], float]:
    """Measures the milliseconds of the longest kernel of a run alone: a convolution without layout conversions at its
    ends."""
    from xcc.runtime.model import load

    model = load(folder / "xcc.xcm")
    return lambda: max(t.seconds for t in model.profile(feeds)) * 1e3


def resident(peak: bool = False) -> int:
    """Bytes of this process in memory, now or at most since :func:`forget_peak`."""
    key = "VmHWM:" if peak else "VmRSS:"
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(key))


def settle() -> None:
    """Gives memory that was freed back to the system, where the heap would keep it: what loading has freed would hide
    what a run takes."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass            # the peak then includes that of loading


def run_for(call: Call, seconds: float, warm: bool) -> list[float]:
    """Seconds of each call during about `seconds`, after calls that are not counted where they are short."""
    end = time.perf_counter() + min(0.2 * seconds, 0.01)
    while warm:
        call()
        warm = time.perf_counter() < end
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return times


def loaded(name: str, folder: Path, job: dict[str, Any], feeds: Feeds, threads: int) -> tuple[Call, dict[str, Any]]:
    """The case's call, and what loading it and running it for the first time took."""
    settle()
    base = resident()
    begin = time.perf_counter()
    call = RUNTIMES[name](job, feeds, threads, folder)
    seconds = time.perf_counter() - begin
    settle()
    held = resident()
    forget_peak()
    begin = time.perf_counter()
    outputs = call()
    first = time.perf_counter() - begin
    np.savez(folder / f"{name}.npz", **{str(i): np.asarray(v) for i, v in enumerate(outputs)})
    del outputs
    forget_peak()
    begin = time.perf_counter()
    call()
    last, peak = time.perf_counter() - begin, resident(peak=True)
    return call, {"load_s": seconds, "first_ms": first * 1e3, "last_s": last, "run_bytes": peak - base,
                  "activation_bytes": max(0, peak - held)}


def serve(name: str, request: dict[str, Any], answers: TextIO) -> None:
    """One case, until its end."""
    def answer(**data: Any) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    folder = Path(request["folder"])
    try:
        job, feeds = json.loads((folder / "job.json").read_text()), dict(np.load(folder / "feeds.npz"))
        call, facts = loaded(name, folder, job, feeds, request["threads"])
        kernel = longest_kernel(folder, feeds) if name == "xcc" and job["torch"][:1] == ["conv"] else None
    except Exception as e:
        text = str(e).strip().splitlines()
        answer(absent=f"{type(e).__name__}: {text[0][:200] if text else ''}")
        return
    answer(**facts)
    part = 1 / call.times if isinstance(call, Repeated) else 1
    while "seconds" in (request := json.loads(sys.stdin.readline() or "{}")):
        times = [t * part for t in run_for(call, request["seconds"], facts["last_s"] < LONG)]
        answer(times=times, **({"kernel_ms": kernel()} if kernel else {}))
    answer(ended=True)


def main() -> int:
    name = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def absent(why: str) -> None:
        answers.write(json.dumps({"absent": why}) + "\n")
        answers.flush()

    try:
        __import__(IMPORTS[name])
        fault = ""
    except ImportError as e:
        fault = f"ImportError: {e}"
    while line := sys.stdin.readline():
        if fault:
            absent(fault)
            continue
        request = json.loads(line)
        if request["alone"]:
            serve(name, request, answers)
            return 0
        child = os.fork()
        if not child:
            serve(name, request, answers)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            absent(f"its process died ({status})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
