"""Exports small models of transformers, torchvision, timm and diffusers, and checks what xcc makes of them.

    python test/e2e/exported_models.py [NAME ...]       # exports what is missing; right on the CPU, compiled for GPUs
    python test/e2e/exported_models.py --export DIR [NAME ...]      # exports, and stops
    python test/e2e/exported_models.py --from DIR --gpu [NAME ...]  # needs neither torch nor transformers: on this GPU
    python test/e2e/exported_models.py --render [RESULTS.json ...]  # adds results, writes docs/exported-models.md

A model is exported once, compiled once without --dim, and compared with onnxruntime at two sizes of each free dim. Each
check is a process of its own with a time limit, so that a crash, a hang or too much memory is one failed row. Rows that
passed with the same compiler are not checked again. The exit status is 1 if a row failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from exported import checking, results, weights  # noqa: E402

TABLES = ("transformers_text", "transformers_media", "torchvision_models", "timm_models", "diffusers_models")
FOLDER = ROOT / "build" / "models" / "exported"
RESULTS = ROOT / "benchmarks" / "results" / "exported-models.json"
PAGE = ROOT / "docs" / "exported-models.md"
DEFAULT = ("cpu", "sm_90a", "gfx942", "gfx1100")
ON_GPU = ("gpu-f32", "gpu-f16")
MEMORY = 12 << 30


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", nargs="*", help="models of the table (default: all); results files with --render")
    p.add_argument("--list", action="store_true", help="print the table's names and stop")
    p.add_argument("--export", metavar="DIR", type=Path, help="export into DIR, check nothing")
    p.add_argument("--from", metavar="DIR", type=Path, dest="source", help="check what was exported into DIR")
    p.add_argument("--check", action="append", choices=checking.CHECKS, help=f"default: {', '.join(DEFAULT)}")
    p.add_argument("--gpu", action="store_true", help=f"short for the checks {' and '.join(ON_GPU)}")
    p.add_argument("--limit", type=int, default=600, metavar="S", help="seconds for one export or check")
    p.add_argument("--parallel", type=int, default=1, metavar="N", help="checks at the same time")
    p.add_argument("--cached", action="store_true", help="use the cache of compiled kernels; rows then have no times")
    p.add_argument("--again", action="store_true", help="also what passed before")
    p.add_argument("--results", type=Path, help="where rows are kept (default: results.json beside the models)")
    p.add_argument("--render", action="store_true", help="check nothing: add rows of files to the kept ones")
    p.add_argument("--one", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    return p


def table() -> dict[str, Any]:
    """The models by name, from all modules that define them."""
    from exported.spec import TABLE

    for module in TABLES:
        importlib.import_module(f"exported.{module}")
    return dict(TABLE)


def one(what: str, folder: Path, jobs: int, cache: bool) -> None:
    """The work of a child: an export or a check; the last line it prints is its outcome."""
    if what != "export":
        print(json.dumps(asdict(checking.check(folder, what, jobs, cache))))
        return
    import logging
    import warnings

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from exported.exporting import export

    export(table()[folder.name], folder)
    print(json.dumps(asdict(checking.Outcome())))


def in_child(what: str, folder: Path, limit: int, jobs: int, cache: bool = False) -> checking.Outcome:
    """Runs `one` in a process group of its own, which is ended when the time is over."""
    command = [sys.executable, str(Path(__file__)), "--one", what, str(folder), "--parallel", str(jobs)]
    command += ["--cached"] if cache else []
    on_gpu = checking.CHECKS[what].runs and what != "cpu" if what in checking.CHECKS else False
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                             preexec_fn=None if on_gpu else _bound_memory)
    try:
        out, err = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return checking.Outcome(f"took more than {limit} s")
    lines = out.strip().splitlines()
    if child.returncode or not lines:
        said = [line for line in err.strip().splitlines() if line.strip()]
        return checking.Outcome((said[-1] if said else f"exit status {child.returncode}")[:400])
    return checking.Outcome(**json.loads(lines[-1]))


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def export_missing(names: Sequence[str], folder: Path, limit: int) -> dict[str, str]:
    """Exports what is not in `folder`, one at a time; the problems by name."""
    problems = {}
    for name in names:
        if (folder / name / "model.json").exists():
            continue
        problem = in_child("export", folder / name, limit, 0).problem
        print(f"{name:20} export   {problem or 'done'}", flush=True)
        if problem:
            problems[name] = problem
    return problems


def check_all(names: Sequence[str], folder: Path, args: argparse.Namespace) -> bool:
    """Checks models that are in `folder` and keeps a row of each; whether all are right."""
    from xcc.cache.cache import compiler_version

    where = compiler_version()[:12], machine()
    checks = [*(args.check or ()), *(ON_GPU if args.gpu else ())] or list(DEFAULT)
    before = {} if args.again else results.load(args.results)
    jobs = max(1, len(os.sched_getaffinity(0)) // args.parallel)
    fine = True
    with ThreadPoolExecutor(args.parallel) as pool:
        running = {}
        for name in names:
            weights.restore(folder / name / "model.onnx")
            for check in checks:
                old = before.get((name, check))
                if old is None or old.problem or old.compiler != where[0]:
                    running[pool.submit(in_child, check, folder / name, args.limit, jobs, args.cached)] = name, check
        for n, done in enumerate(as_completed(running)):
            name, check = running[done]
            row = results.row(name, check, *_about(folder / name), where, done.result())
            results.save([row], args.results)
            print(f"{n + 1}/{len(running)} {name:20} {check:8} {row.problem or results.cell(row)}", flush=True)
            fine &= not row.problem
    return fine


def _about(folder: Path) -> tuple[str, str]:
    """The library of an exported model, and its sizes as text: ``batch 1, 3; seq 9, 24``."""
    facts = json.loads((folder / "model.json").read_text())
    cases = facts["cases"]
    return facts["library"], "; ".join(f"{dim} {', '.join(str(c[dim]) for c in cases)}" for dim in cases[0])


def machine() -> str:
    """This machine's processors, and its GPU."""
    from xcc.runtime.cuda_api import find_gpu

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    gpu = find_gpu()
    device = f"; a GPU of compute capability {gpu[0]}.{gpu[1]} with {gpu[2]} multiprocessors" if gpu else ""
    return f"{name}, {len(os.sched_getaffinity(0))} processors{device}"


def main() -> int:
    args = parser().parse_args()
    if args.one:
        one(args.one[0], Path(args.one[1]), args.parallel, args.cached)
        return 0
    if args.render:
        for path in args.name:
            results.save(results.load(Path(path)).values(), RESULTS)
        PAGE.write_text(results.render(results.load(RESULTS)))
        return 0
    folder = args.source or args.export or FOLDER
    args.results = args.results or folder / "results.json"
    known = sorted(p.parent.name for p in folder.glob("*/model.json")) if args.source else list(table())
    unknown = [n for n in args.name if n not in known]
    if unknown:
        sys.exit(f"there is no model {', '.join(unknown)}; models are {', '.join(known)}")
    names = args.name or known
    if args.list:
        print("\n".join(names))
        return 0
    problems = {} if args.source else export_missing(names, folder, args.limit)
    if args.export:
        return 1 if problems else 0
    return 0 if check_all([n for n in names if n not in problems], folder, args) and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
