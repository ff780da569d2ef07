"""Torch's own operator samples through the PyTorch frontend: ``make conformance-torch`` writes docs/torch-coverage.md.

    python test/e2e/torch_conformance.py                     # every sample, by the xt dialect's own semantics
    python test/e2e/torch_conformance.py gather 'linalg.*'   # these ops alone; prints what fails, writes nothing
    python test/e2e/torch_conformance.py --compile --core    # compiled for this CPU, the ops that are core ATen
    python test/e2e/torch_conformance.py --compile --every 9 # a ninth of all, drawn by their names
    python test/e2e/torch_conformance.py --gradients --every 12      # forward and backward of f32 samples
    python test/e2e/torch_conformance.py --compile --target nvptx --dtypes f32,f16 --limit 150   # on this GPU

Forks of this process trace, evaluate and compile (torch_forks.py); what is compiled for a GPU runs in processes that do
nothing else (torch_device.py). With ``--limit`` the samples of each op are dealt into slices, and one of every op comes
before the next of any: what there is time for is a fair draw.

Traces are kept under build/torch-conformance, and results until a converter or an op changes: what was interrupted goes
on from there. A sample that fails must be in torch_expected_failures.txt, one that is there must not pass.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import pickle
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch_gradients
import torch_outcomes
import torch_report
import torch_samples
from torch_device import Device
from torch_forks import DIED, Unit, worked
from torch_report import Row
from torch_samples import DTYPES, Case, database, supported

from xcc.frontends.torch.op_table import core
from xcc.process.forked import prepare
from xcc.targets.base import get_target

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "torch-conformance"
TRACED_BY = ("frontends/torch/capture.py", "frontends/torch/fx_nodes.py", "frontends/torch/fx_facts.py",
             "frontends/torch/graph.py", "frontends/torch/keep.py", "frontends/torch/sizes.py",
             "frontends/torch/symbols.py", "test/e2e/torch_samples.py")
EVALUATED_BY = ("frontends/torch", "frontends/shared", "dialects/xt", "test/e2e/torch_outcomes.py")
COMPILED_BY = (*EVALUATED_BY, "passes", "targets")
LONGEST = 60        # seconds of one sample
SLICES = 16         # of an op's samples, where there is a limit: about three samples each


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


def _too_long(signum: int, frame: Any) -> None:
    raise TimeoutError(f"longer than {LONGEST} s")


@dataclass(frozen=True)
class Samples:
    """What a run does with samples: `target` "" evaluates them, else they are compiled for `chip`; `seed` says which
    samples of an op belong to which slice."""

    target: str = ""
    chip: str = ""
    gradients: bool = False
    seed: int = 0

    def rows(self, unit: Unit, done: frozenset[int]) -> Iterator[Row]:
        """Of a unit's samples but those that are done; each that counts is said when it begins, too."""
        for case in self._cases(unit):
            row = Row(case.sample.number, case.left_out, " ".join(case.beyond), "")
            if row.number in done:
                continue
            if case.counts:
                yield row._replace(failure=DIED)
                row = row._replace(failure=self._limited(case))
            yield row

    def _cases(self, unit: Unit) -> Iterator[Case]:
        def drawn(sample: torch_samples.Sample) -> bool:
            return zlib.crc32(f"{sample}{self.seed or ''}".encode()) % unit.slices == unit.slice

        if self.gradients:
            yield from torch_gradients.cases(unit.op, unit.dtype, drawn)
        elif unit.slices > 1:
            yield from torch_samples.cases(unit.op, unit.dtype, drawn)
        else:
            yield from traced(unit.op, unit.dtype)

    def _limited(self, case: Case) -> str:
        """The sample's outcome; what takes too long fails."""
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(LONGEST)
        try:
            return torch_outcomes.outcome(case, self._results)
        finally:
            signal.alarm(0)

    def _results(self, case: Case) -> list[Any]:
        if not self.target:
            return torch_outcomes.evaluated(case)
        return torch_outcomes.compiled(case, self.target, self.chip, None if self.target == "cpu" else _device())

    def file(self, unit: Unit) -> Path:
        """Where a unit's rows are kept."""
        part = f"-{unit.slices}.{unit.slice}" + (f"-{self.seed}" if self.seed else "")
        return _folder(self.gradients) / f"{unit.op}-{unit.dtype}-{self.target or 'evaluated'}{part}.json"


@cache
def _device() -> Device:
    """This fork's."""
    return Device()


def kept(file: Path, code: str) -> list[Row] | None:
    """The rows in `file`, where they were made by the same code."""
    found = json.loads(file.read_text()) if file.exists() else {}
    return [Row(*row) for row in found["rows"]] if found.get("code") == code else None


def results(units: list[Unit], samples: Samples, jobs: int, seconds: float) -> Iterator[tuple[Unit, list[Row], bool]]:
    """Each unit's rows, those that are known first, and whether they are all of them."""
    code = digest(*(COMPILED_BY if samples.target else EVALUATED_BY))
    missing = []
    for unit in units:
        rows = kept(samples.file(unit), code)
        if rows is None:
            missing.append(unit)
        else:
            yield unit, rows, True
    end = time.monotonic() + seconds
    for unit, rows, whole in worked(missing, samples.rows, jobs, end):
        if whole:
            samples.file(unit).write_text(json.dumps({"code": code, "rows": [list(row) for row in rows]}))
        yield unit, rows, whole


def chosen(options: argparse.Namespace) -> list[Unit]:
    """What is to be run; in an order that is drawn, where it may not come to an end."""
    patterns = options.ops
    keys = [(op, dtype) for op in database() for dtype in options.dtypes.split(",")
            if supported(op, dtype) and (not patterns or any(fnmatch(op, p) for p in patterns))
            and (not options.core or op in core())
            and (not options.gradients or dtype == "f32" and database()[op].supports_autograd)]
    if not options.limit:
        return [Unit(op, dtype, 0, options.every) for op, dtype in keys]
    keys.sort(key=lambda k: zlib.crc32(f"{k}{options.seed}".encode()))
    slices = options.every if options.every > 1 else SLICES
    return [Unit(op, dtype, n, slices) for n in range(slices) for op, dtype in keys]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", help="names or patterns of ops; default: all")
    parser.add_argument("--compile", action="store_true", help="compiled for this machine, else evaluated")
    parser.add_argument("--target", default="cpu", help="what to compile for: cpu or nvptx")
    parser.add_argument("--dtypes", default="f32,i64,i1", help=f"of {', '.join(DTYPES)}")
    parser.add_argument("--gradients", action="store_true", help="of f32 samples, else what the ops give")
    parser.add_argument("--core", action="store_true", help="only the ops that are core ATen")
    parser.add_argument("--every", type=int, default=1, help="one sample of so many, drawn by their names")
    parser.add_argument("--seed", type=int, default=0, help="draws others")
    parser.add_argument("--section", default="", help="writes the summary as a section of the document; its title")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=float, default=0, metavar="S",
                        help="stop after so many seconds, imports not counted; slice after slice of all ops")
    options = parser.parse_args()
    units = chosen(options)
    target = options.target if options.compile else ""
    if target:      # forks have it then; they do not ask the GPU what it is, as this process may have done
        prepare(target, "torch")
    samples = Samples(target, get_target(target).default_chip().name if target not in ("", "cpu") else "",
                      options.gradients, options.seed)
    whole = 0
    done: dict[tuple[str, str], list[Row]] = {}
    for unit, rows, complete in results(units, samples, options.jobs, options.limit or math.inf):
        whole += complete
        done.setdefault((unit.op, unit.dtype), []).extend(rows)
        for row in rows:
            if row.failure:
                print(f"{unit.op} {unit.dtype} {row.number}: {row.failure}", flush=True)
    if whole < len(units):
        print(f"stopped after {whole} of {len(units)} parts: the next call goes on from here")
    return _reported(options, done, {(u.op, u.dtype): n for n, u in enumerate(units)})


def _reported(options: argparse.Namespace, done: dict[tuple[str, str], list[Row]],
              place: dict[tuple[str, str], int]) -> int:
    """Prints and writes what `options` ask for."""
    found = [torch_report.Results(op, dtype, rows) for (op, dtype), rows in
             sorted(done.items(), key=lambda entry: place[entry[0]])]
    plain = not (options.compile or options.gradients)
    report = torch_report.Report(found, torch_report.expected_failures() if plain else {})
    print(report.summary(types=options.compile))
    if options.section:
        report.section(options.section, types=options.compile)
    if options.ops or options.core or not plain or options.every > 1 or options.limit or "f16" in options.dtypes:
        return 0
    report.write()
    unexpected = report.unexpected()
    print("\n".join(unexpected))
    return bool(unexpected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
