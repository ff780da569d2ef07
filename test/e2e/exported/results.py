"""What the checks found: rows in a JSON file, and the page that is made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from exported.checking import CHECKS, Outcome

HEAD = """# Exported models

Written by `python test/e2e/exported_models.py --render`; do not edit. Small models are built from configurations of
transformers, torchvision, timm and diffusers with random weights, exported with `torch.onnx.export(dynamo=True)`, and
compiled once for all sizes. A number is the largest difference from onnxruntime on the CPU in f32, over the largest
magnitude of that output, over all sizes and outputs: at most 1e-4 is right in f32, 2e-2 in f16. Chips that were only
compiled for have no error. Behind it are the seconds that compiling took, without a cache, where they were measured.
"""


@dataclass
class Row:
    """A check of a model; `compiler` says which sources made it, `machine` where."""

    model: str
    check: str
    library: str
    sizes: str
    compiler: str
    machine: str
    seconds: float | None
    kernels: int
    error: float | None
    problem: str

    @property
    def key(self) -> tuple[str, str]:
        return self.model, self.check


def row(model: str, check: str, library: str, sizes: str, where: tuple[str, str], outcome: Outcome) -> Row:
    """The row of an outcome; `where` is the compiler's version and the machine."""
    return Row(model, check, library, sizes, *where, **asdict(outcome))


def load(path: Path) -> dict[tuple[str, str], Row]:
    """The rows of a file, none where there is no file."""
    rows = [Row(**r) for r in json.loads(path.read_text())] if path.exists() else []
    return {r.key: r for r in rows}


def save(rows: Iterable[Row], path: Path) -> None:
    """Adds rows to a file, in the place of older ones of the same model and check."""
    kept = load(path) | {r.key: r for r in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(asdict(r)) for _, r in sorted(kept.items()))
    path.write_text(f"[\n{lines}\n]\n")


def render(rows: dict[tuple[str, str], Row]) -> str:
    """The page: a line a model, a column a check."""
    checks = [c for c in CHECKS if any(r.check == c for r in rows.values())]
    lines = [f"| model | library | sizes | {' | '.join(checks)} |", "|---" * (len(checks) + 3) + "|"]
    for name in sorted({r.model for r in rows.values()}):
        found = [rows.get((name, c)) for c in checks]
        any_row = next(r for r in found if r)
        lines.append(f"| {name} | {any_row.library} | {any_row.sizes} | {' | '.join(map(cell, found))} |")
    machines = "".join(f"\n{', '.join(of)}: {machine}." for machine, of in sorted(_machines(rows).items()))
    return f"{HEAD}{machines}\n\n" + "\n".join(lines) + "\n"


def _machines(rows: dict[tuple[str, str], Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for check in CHECKS:
        for machine in sorted({r.machine for r in rows.values() if r.check == check}):
            found.setdefault(machine, []).append(check)
    return found


def cell(found: Row | None) -> str:
    """``error seconds``, or that it failed."""
    if found is None:
        return ""
    if found.problem:
        return "failed"
    parts = [] if found.error is None else [f"{found.error:.0e}"]
    parts += [] if found.seconds is None else [f"{found.seconds:.0f} s"]
    return " ".join(parts) or "compiled"
