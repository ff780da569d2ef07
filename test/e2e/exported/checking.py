"""Checks one exported model on one target; needs neither torch nor what exported it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import xcc
from xcc.driver.comparison import compare, computed_in, stated


@dataclass(frozen=True)
class Check:
    """What is done with a model: compiled for a chip, and run at all its sizes where `runs`."""

    target: str
    chip: str = ""
    precision: str = ""
    runs: bool = False


CHECKS = {
    "cpu": Check("cpu", runs=True),
    "cpu-f16": Check("cpu", precision="f16", runs=True),
    "sm_90a": Check("nvptx", "sm_90a"),
    "gfx942": Check("amdgcn", "gfx942"),
    "gfx1100": Check("amdgcn", "gfx1100"),
    "gpu-f32": Check("nvptx", runs=True),
    "gpu-f16": Check("nvptx", precision="f16", runs=True),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a check.

    `error` is the largest difference over an output's largest magnitude, of all outputs; `seconds` are of compiling
    without a cache.
    """

    problem: str = ""
    seconds: float | None = None
    kernels: int = 0
    error: float | None = None


def check(folder: Path, name: str, jobs: int = 0, cache: bool = False) -> Outcome:
    """Compiles the model in `folder` once, and compares it with its reference at each size."""
    what = CHECKS[name]
    begin = time.perf_counter()
    model = xcc.compile(folder / "model.onnx", target=what.target, chip=what.chip, precision=what.precision, jobs=jobs,
                        cache=cache)
    seconds = None if cache else time.perf_counter() - begin
    kernels = len(model.artifact.manifest["kernels"])
    if not what.runs:
        return Outcome("", seconds, kernels)
    problems, error = compared(model, folder)
    return Outcome("; ".join(problems), seconds, kernels, error)


def compared(model: xcc.Model, folder: Path) -> tuple[list[str], float]:
    """Runs each case: what is outside the tolerance of the types computed in, and the largest error of the rest."""
    tolerance = stated(computed_in(model.artifact))
    problems, errors = [], [0.0]
    for path in sorted(folder.glob("case*.npz")):
        data = np.load(path)
        feeds = {k.removeprefix("in."): data[k] for k in data if k.startswith("in.")}
        got = model.run(feeds)
        for output, value in got.items():
            wanted = data[f"out.{output}"]
            same, line = compare(output, value, wanted, tolerance)
            if not same:
                problems.append(f"{path.stem}: {line}")
            elif wanted.size and wanted.dtype.kind == "f":
                errors.append(float(np.nanmax(np.abs(value - wanted)) / max(np.nanmax(np.abs(wanted)), 1e-30)))
    return problems, max(errors)

