"""Torch's own operator samples through the PyTorch frontend: ``make conformance-torch`` writes docs/torch-coverage.md.

    python test/e2e/torch_conformance.py                     # every sample, by the xt dialect's own semantics
    python test/e2e/torch_conformance.py gather 'linalg.*'   # these ops alone; prints what fails, writes nothing
    python test/e2e/torch_conformance.py --compile --core    # compiled for this CPU, the ops that are core ATen
    python test/e2e/torch_conformance.py --compile --every 9 # a ninth of all, drawn by their names
    python test/e2e/torch_conformance.py --gradients --every 12      # forward and backward of f32 samples
    python test/e2e/torch_conformance.py --compile --target nvptx --dtypes f32,f16 --every 30    # on this GPU

Traces are kept under build/torch-conformance, and results until a converter or an op changes: what was interrupted goes
on from there. A sample that fails must be in torch_expected_failures.txt, one that is there must not pass.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch_gradients
import torch_outcomes
import torch_report
import torch_samples
from torch_samples import DTYPES, Case, database, supported

from xcc.frontends.torch.op_table import core

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "torch-conformance"
TRACED_BY = ("frontends/torch/capture.py", "frontends/torch/fx_nodes.py", "frontends/torch/fx_facts.py",
             "frontends/torch/graph.py", "frontends/torch/keep.py", "frontends/torch/sizes.py",
             "frontends/torch/symbols.py", "test/e2e/torch_samples.py")
EVALUATED_BY = ("frontends/torch", "frontends/shared", "dialects/xt", "test/e2e/torch_outcomes.py")
COMPILED_BY = (*EVALUATED_BY, "passes", "targets")
LONGEST = 60        # seconds of one sample


def digest(*parts: str) -> str:
    """Of the sources under these paths."""
    h = hashlib.sha256(torch.__version__.encode())
    for part in parts:
        path = ROOT / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            h.update(file.read_bytes())
    return h.hexdigest()[:16]


@cache
def _folder(gradients: bool) -> Path:
    folder = KEPT / digest(*TRACED_BY, *(("test/e2e/torch_gradients.py",) if gradients else ()))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def traced(op: str, dtype: str) -> list[Case]:
    """The samples of an op, traced now or before."""
    file = _folder(False) / f"{op}-{dtype}.pkl"
    if file.exists():
        found: list[Case] = pickle.loads(file.read_bytes())
        return found
    out = list(torch_samples.cases(op, dtype))
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(out))
    part.replace(file)
    return out


def limited(case: Case, target: str) -> str:
    """The sample's outcome, evaluated where there is no target; what takes too long fails."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST)
    try:
        results = partial(torch_outcomes.compiled, target=target) if target else torch_outcomes.evaluated
        return torch_outcomes.outcome(case, results)
    finally:
        signal.alarm(0)


def _too_long(signum: int, frame: Any) -> None:
    raise TimeoutError(f"longer than {LONGEST} s")


def run(target: str, gradients: bool, every: int, code: str, key: tuple[str, str]) -> torch_report.Results:
    """What each sample of an op came to, now or before."""
    op, dtype = key

    def drawn(sample: torch_samples.Sample) -> bool:
        return zlib.crc32(str(sample).encode()) % every == 0

    file = _folder(gradients) / f"{op}-{dtype}-{target or 'evaluated'}-{every}.json"
    if file.exists():
        found = json.loads(file.read_text())
        if found["code"] == code:
            return torch_report.Results(op, dtype, [torch_report.Row(*row) for row in found["rows"]])
    own = torch_gradients.cases(op, dtype, drawn) if gradients else torch_samples.cases(op, dtype, drawn) if every > 1 \
        else traced(op, dtype)
    rows = [torch_report.Row(c.sample.number, c.left_out, " ".join(c.beyond),
                             limited(c, target) if c.counts else "") for c in own]
    file.write_text(json.dumps({"code": code, "rows": [list(row) for row in rows]}))
    return torch_report.Results(op, dtype, rows)


def chosen(patterns: list[str], dtypes: list[str]) -> list[tuple[str, str]]:
    return [(op, dtype) for op in database() for dtype in dtypes
            if supported(op, dtype) and (not patterns or any(fnmatch(op, p) for p in patterns))]


def results(keys: list[tuple[str, str]], target: str, gradients: bool, every: int,
            jobs: int) -> Iterator[torch_report.Results]:
    one = partial(run, target, gradients, every, digest(*(COMPILED_BY if target else EVALUATED_BY)))
    if jobs == 1:
        yield from map(one, keys)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))       # CUDA works in no forked process
    try:
        for done in as_completed([pool.submit(one, key) for key in keys]):
            yield done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", help="names or patterns of ops; default: all")
    parser.add_argument("--compile", action="store_true", help="compiled for this machine, else evaluated")
    parser.add_argument("--target", default="cpu", help="what to compile for: cpu or nvptx")
    parser.add_argument("--dtypes", default="f32,i64,i1", help=f"of {', '.join(DTYPES)}")
    parser.add_argument("--gradients", action="store_true", help="of f32 samples, else what the ops give")
    parser.add_argument("--core", action="store_true", help="only the ops that are core ATen")
    parser.add_argument("--every", type=int, default=1, help="one sample of so many, drawn by their names")
    parser.add_argument("--section", default="", help="writes the summary as a section of the document; its title")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=int, default=0, metavar="S", help="stop after so many seconds")
    options = parser.parse_args()
    keys = [k for k in chosen(options.ops, options.dtypes.split(",")) if (not options.core or k[0] in core())
            and (not options.gradients or k[1] == "f32" and database()[k[0]].supports_autograd)]
    place = {key: n for n, key in enumerate(keys)}
    if options.limit:
        keys.sort(key=lambda k: zlib.crc32(str(k).encode()))        # what is left out is drawn, too
    done = []
    target = options.target if options.compile else ""
    begin = time.monotonic()
    for found in results(keys, target, options.gradients, options.every, options.jobs):
        done.append(found)
        for row in found.rows:
            if row.failure:
                print(f"{found.op} {found.dtype} {row.number}: {row.failure}", flush=True)
        if options.limit and time.monotonic() - begin > options.limit and len(done) < len(keys):
            print(f"stopped after {len(done)} of {len(keys)} ops and types: the next call goes on from here")
            break
    done.sort(key=lambda found: place[found.op, found.dtype])
    plain = not (options.compile or options.gradients)
    report = torch_report.Report(done, torch_report.expected_failures() if plain else {})
    print(report.summary())
    if options.section:
        report.section(options.section)
    if options.ops or options.core or not plain or options.every > 1 or "f16" in options.dtypes:
        return 0
    report.write()
    unexpected = report.unexpected()
    print("\n".join(unexpected))
    return bool(unexpected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
