"""The table of ``xcc-bench --kernels``: what each kernel of a run costs, beside what it must cost on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from xcc import symbolic
from xcc.diagnostics import UserError

__all__ = ["Row", "kernel_rows", "kernel_text", "limits_of"]


class Limits(Protocol):
    """What a machine can do at best."""

    def limit(self, flops: float, moved: float, dtype: str = "f32") -> float:
        """Seconds."""
        ...


@dataclass
class Row:
    """All launches of one kernel in a run: how many, their seconds, operations, bytes, and the least seconds possible.

    `flops`, `moved` and `limit` are 0 where the artifact does not say what the kernel does.
    """

    kernel: str
    calls: int = 0
    seconds: float = 0.0
    flops: int = 0
    moved: int = 0
    limit: float = 0.0


def kernel_rows(model: Any, inputs: Mapping[str, Any], limits: Limits) -> list[Row]:
    """A row a kernel, the longest first."""
    facts: dict[str, tuple[dict[str, Any], bool]] = {}
    for entry in model.artifact.manifest.get("kernels", []):
        for n, name in enumerate(entry.get("entries", [])):
            facts[name] = entry, n == 0
    rows: dict[str, Row] = {}
    for launch in model.profile(inputs):
        entry, first = facts.get(launch.kernel, ({}, False))
        row = rows.setdefault(entry.get("name", launch.kernel), Row(entry.get("name", launch.kernel)))
        row.calls += 1
        row.seconds += launch.seconds
        if first and "flops" in entry and "bytes" in entry:
            env = {f"d{i}": v for i, v in enumerate(launch.symbols)}
            flops, moved = (symbolic.evaluate(symbolic.parse(str(entry[key])), env) for key in ("flops", "bytes"))
            row.flops += flops
            row.moved += moved
            row.limit += limits.limit(flops, moved, str(entry.get("dtype", "f32")))
    return sorted(rows.values(), key=lambda r: -r.seconds)


def kernel_text(rows: list[Row]) -> str:
    """The rows in columns. *of limit*: the least time possible over the time taken."""
    total = sum(r.seconds for r in rows) or 1.0
    width = max([6, *(len(r.kernel) for r in rows)])
    lines = [f"{'kernel':{width}} {'calls':>5} {'us':>10} {'share':>6} {'MFLOP':>10} {'MB':>9} {'GFLOP/s':>8} "
             f"{'GB/s':>7} {'limit us':>10} {'of limit':>8}"]
    for r in rows:
        lines.append(f"{r.kernel:{width}} {r.calls:5} {r.seconds * 1e6:10.1f} {r.seconds / total:6.1%} "
                     f"{r.flops / 1e6:10.2f} {r.moved / 1e6:9.2f} {r.flops / r.seconds / 1e9:8.1f} "
                     f"{r.moved / r.seconds / 1e9:7.1f} {r.limit * 1e6:10.1f} {r.limit / r.seconds:8.0%}")
    limit = sum(r.limit for r in rows)
    lines.append(f"{'all':{width}} {sum(r.calls for r in rows):5} {total * 1e6:10.1f} {1:6.1%} "
                 f"{sum(r.flops for r in rows) / 1e6:10.2f} {sum(r.moved for r in rows) / 1e6:9.2f} "
                 f"{sum(r.flops for r in rows) / total / 1e9:8.1f} {sum(r.moved for r in rows) / total / 1e9:7.1f} "
                 f"{limit * 1e6:10.1f} {limit / total:8.0%}")
    return "\n".join(lines)


def limits_of(model: Any, again: bool = False) -> tuple[Limits, str]:
    """The limits of what `model` runs on, and a line about them: measured, or of the chip table."""
    from xcc.targets.chip_spec import chip_from_facts
    from xcc.targets.folders import part

    try:
        measured = getattr(part(model.target, "measure"), "limits", None)
        if measured is not None:
            found: tuple[Limits, str] = measured(model, again)
            return found
    except ModuleNotFoundError as e:
        raise UserError(f"measuring this machine needs the compiler's packages ({e.name} is missing)") from None
    chip = chip_from_facts(model.artifact.manifest.get("chip_attributes"), model.target)
    return _ChipLimits(dict(chip.flops), chip.bandwidth), f"limits: those of {chip.name} in the chip table"


@dataclass(frozen=True)
class _ChipLimits:
    """The rates of a chip's data sheet."""

    flops: Mapping[str, float]
    bandwidth: float

    def limit(self, flops: float, moved: float, dtype: str = "f32") -> float:
        peak = self.flops.get(dtype, self.flops.get("f32", 0.0))
        return max(flops / peak if peak else 0.0, moved / self.bandwidth if self.bandwidth else 0.0)
