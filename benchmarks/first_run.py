"""The first run of a loaded CPU model beside a warm one: each sample a process of its own.

    python benchmarks/first_run.py                         # every model of benchmarks/cpu.py
    python benchmarks/first_run.py resnet50 silero_vad --samples 15
    python benchmarks/first_run.py --dims                  # with the sizes of symbolic dims named when loading

A sample loads the artifact, runs it once, then until the times are steady (*warm* is their median), then a few times
behind pauses in which other data goes through the caches (*after a pause*): what a first run costs at least that is the
first because nothing of the model is in a cache. Medians of all samples; faults are those of the first run.

Before a sample, memory is touched and given back: where the system runs in a virtual machine, its host may take
milliseconds for 2 MiB that no process of the machine has used before.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM, PAUSES, PAUSE = 0.15, 5, 0.01         # seconds of warm runs; how many pauses; seconds of one
CACHES = 64 << 20                           # bytes that go through the caches in a pause
TOUCHED = 256 << 20                         # bytes in small and in large pages that are touched before a sample
COLUMNS = ("load_s", "first_ms", "second_ms", "warm_ms", "paused_ms", "ratio", "faults")


def sample(artifact: str, feeds_file: str, named: bool) -> dict[str, float]:
    """One sample, in this process."""
    import resource

    from xcc.runtime.model import load

    feeds = dict(np.load(feeds_file))
    sizes = symbols(artifact, feeds) if named else None
    other = np.ones(CACHES, np.uint8)
    begin = time.perf_counter()
    model = load(artifact, dims=sizes)
    loaded = time.perf_counter() - begin

    def run() -> float:
        begin = time.perf_counter()
        model.run(feeds)
        return (time.perf_counter() - begin) * 1e3

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    first = run()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    second = run()
    warm = statistics.median(repeated(run))
    paused = []
    for n in range(PAUSES):
        other.fill(n)
        time.sleep(PAUSE)
        paused.append(run())
    return {"load_s": loaded, "first_ms": first, "second_ms": second, "warm_ms": warm,
            "paused_ms": statistics.median(paused), "ratio": first / warm, "faults": float(faults)}


def symbols(artifact: str, feeds: dict[str, Any]) -> dict[str, int]:
    """The sizes of the model's symbolic dims in `feeds`."""
    from xcc.runtime.artifact import Artifact
    from xcc.runtime.signature import solve_symbols

    program = Artifact.read(artifact).program
    return solve_symbols(program, [feeds[program.buffers[i].name].shape for i in program.inputs])


def repeated(run: Callable[[], float]) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + WARM
    while len(times) < 9 or time.perf_counter() < end:
        times.append(run())
    return times


def touch_memory() -> None:
    """What the next process gets of the system has been used before."""
    for large in (True, False):
        memory = mmap.mmap(-1, TOUCHED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if large and hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, TOUCHED, mmap.PAGESIZE):
            memory[at] = 1
        memory.close()


def first_runs(artifact: Path, feeds: Path, threads: int, samples: int, named: bool = False) -> dict[str, float]:
    """The medians of `samples` processes. subprocess.CalledProcessError where one fails."""
    command = [sys.executable, __file__, "--sample", str(artifact), str(feeds), *(["--dims"] if named else [])]
    found = []
    for _ in range(samples):
        touch_memory()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "XCC_THREADS": str(threads)})
        found.append(json.loads(done.stdout))
    return {k: statistics.median(f[k] for f in found) for k in COLUMNS}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", help="of benchmarks/cpu.py (default: its models)")
    p.add_argument("--samples", type=int, default=9)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--dims", action="store_true", help="name the sizes of symbolic dims when loading")
    p.add_argument("--keep", default="", metavar="DIR", help="leave the artifacts there, and take those that are")
    p.add_argument("--sample", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.sample:
        print(json.dumps(sample(args.cases[0], args.cases[1], args.dims)))
        return 0
    from cpu_cases import CASES

    names = args.cases or [c.name for c in CASES.values() if c.group in ("models", "formats")]
    print("case             load s  first ms  second ms   warm ms  after a pause  first / warm  faults")
    with tempfile.TemporaryDirectory(prefix="xcc-first-") as scratch:
        for name in names:
            folder, job = CASES[name].prepared()
            artifact = Path(args.keep or scratch) / f"{name}.xcm"
            if not artifact.exists():
                subprocess.run([sys.executable, "-m", "xcc.tools.xcc_cli", job.path, *job.xcc,
                                f"--threads={args.threads}", "-o", str(artifact)], check=True, capture_output=True)
            r = first_runs(artifact, folder / "feeds.npz", args.threads, args.samples, args.dims)
            print(f"{name:16} {r['load_s']:6.3f} {r['first_ms']:9.3f} {r['second_ms']:10.3f} {r['warm_ms']:9.3f} "
                  f"{r['paused_ms']:14.3f} {r['ratio']:13.2f} {r['faults']:7.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
