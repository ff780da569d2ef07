"""The first run of a loaded CPU model beside a warm one: each sample a process of its own.

    python benchmarks/first_run.py                         # every model of benchmarks/cpu.py
    python benchmarks/first_run.py resnet50 silero_vad --samples 15
    python benchmarks/first_run.py bert resnet50 --threads 16 --samples 3 --seconds 30

A sample loads the artifact, runs it once, then until the times are steady (*warm* is their median), then a few times
behind pauses in which other data goes through the caches (*after a pause*): what a first run costs at least that is the
first because nothing of the model is in a cache. Where a model has symbolic dims, as many samples name their sizes when
they load it (*named*): without that, the first run plans its memory, and gets it where it is much. Medians of all
samples; the ratio is that of a sample's own first and warm run; faults are those of the first run.

Inputs are written behind the loading, as by a caller who has just made them: their data are in the caches in a first
run as in a warm one. Before a sample, memory is touched and given back: where the system runs in a virtual machine, its
host may take milliseconds for 2 MiB that no process of the machine has used lately. --seconds ends the samples of a
model early.
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
TOUCHED = 256 << 20                         # bytes in large and then in small pages that are touched before a sample
SAMPLES, SECONDS = 9, 60.0                  # of a model: processes that are counted, and when the last may begin
COLUMNS = ("load_s", "first_ms", "second_ms", "warm_ms", "paused_ms", "ratio", "faults")
NAMED = {"first_ms": "named_ms", "ratio": "named_ratio"}        # columns of samples that name sizes


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
    feeds = {name: array.copy() for name, array in feeds.items()}

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
        np.frombuffer(memory, np.uint8)[::mmap.PAGESIZE] = 1        # its end is the mapping's


def first_runs(artifact: Path, feeds: Path, threads: int, samples: int = SAMPLES,
               seconds: float = SECONDS) -> dict[str, float]:
    """The medians of COLUMNS, and of NAMED for a model with symbolic dims. subprocess.CalledProcessError where a
    sample fails."""
    flags: list[list[str]] = [[], ["--dims"]] if symbols(str(artifact), dict(np.load(feeds))) else [[]]
    found: list[list[dict[str, float]]] = [[] for _ in flags]
    end = time.perf_counter() + seconds
    for _ in range(samples):
        for some, flag in zip(found, flags, strict=True):
            touch_memory()
            done = subprocess.run([sys.executable, __file__, "--sample", str(artifact), str(feeds), *flag], check=True,
                                  stdout=subprocess.PIPE, text=True, env={**os.environ, "XCC_THREADS": str(threads)})
            some.append(json.loads(done.stdout))
        if time.perf_counter() > end:
            break
    medians = [{k: statistics.median(f[k] for f in some) for k in COLUMNS} for some in found]
    return medians[0] | {name: medians[-1][k] for k, name in NAMED.items() if len(flags) > 1}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", help="of benchmarks/cpu.py (default: its models)")
    p.add_argument("--samples", type=int, default=SAMPLES)
    p.add_argument("--seconds", type=float, default=SECONDS, help="of a model, about (default 60)")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--dims", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--keep", default="", metavar="DIR", help="leave the artifacts there, and take those that are")
    p.add_argument("--sample", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.sample:
        print(json.dumps(sample(args.cases[0], args.cases[1], args.dims)))
        return 0
    from cpu_cases import CASES

    names = args.cases or [c.name for c in CASES.values() if c.group in ("models", "formats")]
    print("case             load s  first ms  second ms   warm ms  after a pause  first / warm  named ms  named / warm"
          "  faults")
    with tempfile.TemporaryDirectory(prefix="xcc-first-") as scratch:
        for name in names:
            folder, job = CASES[name].prepared()
            artifact = Path(args.keep or scratch) / f"{name}.xcm"
            if not artifact.exists():
                subprocess.run([sys.executable, "-m", "xcc.tools.xcc_cli", job.path, *job.xcc,
                                f"--threads={args.threads}", "-o", str(artifact)], check=True, capture_output=True)
            r = first_runs(artifact, folder / "feeds.npz", args.threads, args.samples, args.seconds)
            named = f"{r['named_ms']:9.3f} {r['named_ratio']:13.2f}" if "named_ms" in r else f"{'-':>9} {'-':>13}"
            print(f"{name:16} {r['load_s']:6.3f} {r['first_ms']:9.3f} {r['second_ms']:10.3f} {r['warm_ms']:9.3f} "
                  f"{r['paused_ms']:14.3f} {r['ratio']:13.2f} {named} {r['faults']:7.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
