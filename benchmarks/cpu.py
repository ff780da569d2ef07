"""Times models and operators on this CPU: xcc and the other runtimes that are installed, in turn in one run.

    python benchmarks/cpu.py --prepare                     # what takes minutes and is kept: inputs, compiled peers
    python benchmarks/cpu.py --save                        # everything, into benchmarks/results/cpu-MODEL-Nt.{json,md}
    python benchmarks/cpu.py --save --resume               # what that file does not hold of this compiler
    python benchmarks/cpu.py --only matmul --skip iree,torch
    python benchmarks/cpu.py --only resnet50,conv_3x3_64_64_56 --rounds 5
    python benchmarks/cpu.py --list

Each runtime has a process of its own (benchmarks/cpu_rivals.py), so that one that crashes or hangs costs only its
cell. They take turns: while one runs, the others are stopped. A turn is calls that are not counted (but where they take
long), then at least one that is, for --turn seconds; medians are over all counted calls, at least 20 in at least 5
rounds. Outputs are compared with onnxruntime's. Rows are saved one by one.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from cpu_cases import CASES, GROUPS, ROOT, Case, Job
from cpu_rivals import Rival
from cpu_tables import page
from first_run import SAMPLES, first_runs

from xcc.cache.cache import compiler_version
from xcc.targets.cpu.machine import Machine, measured

RUNTIMES = ("xcc", "onnxruntime", "openvino", "iree", "torch", "torch-nhwc", "openblas", "limit")
CALLS, LEAST_ROUNDS = 20, 5
MEMORY = ("models", "formats")       # groups whose memory and first run are reported


def measure(case: Case, rivals: list[Rival], args: argparse.Namespace, machine: Machine) -> dict[str, Any]:
    """The row of one case; with --prepare only what loading says."""
    folder, job = case.prepared()
    try:
        return measured_row(case, folder, job, rivals, args, machine)
    finally:
        for made in (folder / "xcc.xcm", *(folder / f"{n}.npz" for n in RUNTIMES)):
            made.unlink(missing_ok=True)


def measured_row(case: Case, folder: Path, job: Job, rivals: list[Rival], args: argparse.Namespace,
                 machine: Machine) -> dict[str, Any]:
    row: dict[str, Any] = {"case": case.name, "group": case.group, "ms": {}, "first_ms": {}, "load_s": {},
                           "run_mb": {}, "activation_mb": {}, "out": {}, "weights_mb": job.weights / 1e6,
                           "version": compiler_version()}
    row["compile_s"] = compile_s = compiled(job, folder, args)
    if isinstance(compile_s, str):
        return row | {"out": {"xcc": compile_s}}
    if case.group in MEMORY and not args.prepare:
        row["first"] = first_runs(folder / "xcc.xcm", folder / "feeds.npz", args.threads, args.first)
    load(rivals, folder, case.group in MEMORY)
    try:
        for n in range(0 if args.prepare else args.rounds):
            inside = [r for r in rivals if not r.why]
            if n >= LEAST_ROUNDS and all(len(r.times) >= CALLS for r in inside):
                break
            for r in inside:
                r.turn(args.turn)
    finally:
        for r in rivals:
            r.end()
    for r in rivals:
        if r.why or not r.times:
            row["out"][r.name] = r.why
            continue
        row["ms"][r.name] = statistics.median(r.times) * 1e3
        row["load_s"][r.name], row["first_ms"][r.name] = r.facts["load_s"], r.facts["first_ms"]
        row["run_mb"][r.name] = r.facts["run_bytes"] / 1e6
        row["activation_mb"][r.name] = r.facts["activation_bytes"] / 1e6
        if r.kernel_ms:
            row["kernel_ms"] = statistics.median(r.kernel_ms)
    row["calls"] = min((len(r.times) for r in rivals if r.times), default=0)
    row["differs"] = differing(folder, list(row["ms"]), job)
    return row | limits(row, job, machine)


def load(rivals: list[Rival], folder: Path, alone: bool) -> None:
    """xcc's loading is timed alone; the others load at the same time."""
    for some in ([r for r in rivals if r.name == "xcc"], [r for r in rivals if r.name != "xcc"]):
        for r in some:
            r.load(folder, alone)
        for r in some:
            r.loaded()


def compiled(job: Job, folder: Path, args: argparse.Namespace) -> float | str:
    """Seconds of the command that writes xcc.xcm, or what it says when it fails."""
    command = [sys.executable, "-m", "xcc.tools.xcc_cli", job.path, *job.xcc, f"--threads={args.threads}", *args.xcc,
               "-o", str(folder / "xcc.xcm")]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    return seconds if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1][:300]


def differing(folder: Path, names: list[str], job: Job) -> list[str]:
    """Runtimes whose outputs are not onnxruntime's within the case's tolerance."""
    if "onnxruntime" not in names:
        return []
    wanted = dict(np.load(folder / "onnxruntime.npz"))

    def same(name: str) -> bool:
        got = dict(np.load(folder / f"{name}.npz"))
        return all(got[k].shape == w.shape and np.allclose(
            got[k].astype(np.float64), w, rtol=0, atol=job.tolerance * (float(np.abs(w).max(initial=0)) or 1.0))
            for k, w in wanted.items() if k in got) and len(got) >= 1

    apart = ["limit", *(["torch"] if job.torch[:1] == ["model"] else [])]     # the program has other random weights
    return [n for n in names if n not in apart and not same(n)]


def limits(row: Mapping[str, Any], job: Job, machine: Machine) -> dict[str, Any]:
    """What the machine could do, and xcc's share of it."""
    if "xcc" not in row["ms"]:
        return {}
    seconds = row["ms"]["xcc"] / 1e3
    peers = [v for k, v in row["ms"].items() if k not in ("xcc", "torch-nhwc", "limit", *row["differs"])]
    out: dict[str, Any] = {"ratio": min(peers) / row["ms"]["xcc"]} if peers else {}
    if job.flops:
        out |= {"gflops": job.flops / seconds / 1e9}
    if job.moved:
        least = row["ms"].get("limit", machine.limit(job.flops, job.moved) * 1e3) / 1e3
        least = max(least, machine.limit(0.0, job.moved)) if job.flops else least
        out |= {"gbs": job.moved / seconds / 1e9, "limit_ms": least * 1e3, "of_limit": least / seconds}
    return out


def chosen(only: list[str], skip: list[str]) -> tuple[list[Case], list[str]]:
    """The cases and runtimes that --only and --skip leave."""
    known = {*CASES, *GROUPS, *RUNTIMES}
    unknown = [n for n in (*only, *skip) if n not in known]
    if unknown:
        raise SystemExit(f"cpu.py: no case, group or runtime {', '.join(unknown)}; --list shows them")
    wanted = [n for n in only if n not in RUNTIMES]
    cases = [c for c in CASES.values() if (not wanted or c.name in wanted or c.group in wanted)
             and c.name not in skip and c.group not in skip]
    peers = [n for n in only if n in RUNTIMES]
    return cases, [n for n in RUNTIMES if (n == "xcc" or not peers or n in peers) and n not in skip]


def rows(cases: list[Case], names: list[str], args: argparse.Namespace, machine: Machine) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="xcc-bench-") as logs:
        rivals = [Rival(n, args.threads, Path(logs) / f"{n}.log") for n in names]
        try:
            for case in cases:
                row = measure(case, rivals, args, machine)
                tell(row, args)
                yield row
        finally:
            for r in rivals:
                r.stop()


def tell(row: Mapping[str, Any], args: argparse.Namespace) -> None:
    times = "  ".join(f"{k} {v:.3f}" for k, v in row["ms"].items())
    more = f"  ratio {row['ratio']:.2f}" if "ratio" in row else ""
    more += f"  {row['of_limit']:.0%} of the limit" if "of_limit" in row else ""
    more += f"  DIFFERS: {', '.join(row['differs'])}" if row.get("differs") else ""
    print(f"{row['case']}: {times}{more}", flush=True)
    for name, why in row["out"].items():
        if why and not why.startswith("Absent: ") or args.verbose:
            print(f"    {name}: {why}", flush=True)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="", metavar="A,B", help="these cases, groups and runtimes (xcc is always there)")
    p.add_argument("--skip", default="", metavar="A,B", help="not these cases, groups and runtimes")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=20, help="at most; fewer where all have 20 counted calls")
    p.add_argument("--turn", type=float, default=0.03, metavar="SECONDS", help="of counted calls (default 0.03)")
    p.add_argument("--first", type=int, default=SAMPLES, metavar="N", help="samples of a first run")
    p.add_argument("--xcc", action="append", default=[], metavar="FLAG", help="a further flag for the compiler")
    p.add_argument("--save", action="store_true", help="write the rows into benchmarks/results (others there stay)")
    p.add_argument("--resume", action="store_true", help="leave out the cases that the results hold of this compiler")
    p.add_argument("--prepare", action="store_true", help="load every case once and time none")
    p.add_argument("--render", default="", metavar="JSON", help="print the tables of a result file and stop")
    p.add_argument("--list", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true", help="say why a runtime is absent")
    args = p.parse_args()
    if args.list:
        for c in CASES.values():
            print(f"{c.group:8} {c.name}")
        return 0
    if args.render:
        print(page(json.loads(Path(args.render).read_text())))
        return 0
    cases, names = chosen([n for n in args.only.split(",") if n], [n for n in args.skip.split(",") if n])
    machine = measured(args.threads, again=args.save and not args.resume)
    slug = re.sub("[^a-z0-9]+", "-", machine.cpu.lower()).strip("-")
    base = ROOT / "benchmarks" / "results" / f"cpu-{slug}-{args.threads}t"
    data: dict[str, Any] = {"rows": []}
    if (args.save or args.resume) and base.with_suffix(".json").exists():
        data = json.loads(base.with_suffix(".json").read_text())
    if args.resume:
        done = {r["case"] for r in data["rows"] if r.get("version") == compiler_version()
                and {*r["ms"], *r["out"]} >= set(names)}
        cases = [c for c in cases if c.name not in done]
    data |= {"cpu": machine.cpu, "threads": args.threads, "version": compiler_version(), "flops": dict(machine.flops),
             "bandwidth": [list(b) for b in machine.bandwidth]}
    for row in rows(cases, names, args, machine):
        if args.prepare:
            continue
        old = {r["case"]: r for r in data["rows"]} | {row["case"]: row}
        data["rows"] = [old[n] for n in CASES if n in old]
        if args.save:
            base.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n")
            base.with_suffix(".md").write_text(page(data))
    if not args.save and not args.prepare:
        print(page(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
