"""What was decided, for people: the collectives, where and how many bytes, and the weights that a rank holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Value, ir
from xcc.diagnostics import counted
from xcc.passes.xt.sharding.choose import Choice
from xcc.passes.xt.sharding.moves import Mover


@dataclass(frozen=True)
class Report:
    """A collective that was put in: of what, its kind, from where to where, the bytes of the whole value."""

    where: str
    kind: str
    how: str
    nbytes: int


def named(value: Value) -> str:
    """What makes `value`, by its node's name."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return f"argument {value.arg_number}"
    found = re.search(r'"([^"]+)"', str(owner.operation.location))
    return f"node '{found.group(1)[:1000]}'" if found else f"an {owner.operation.name}"


@dataclass(frozen=True)
class AxisReport:
    """`lines` for people; `weights`: bytes of them that a rank holds; `seconds` of a run, of a pipeline."""

    lines: tuple[str, ...]
    exchanged: tuple[Report, ...]
    weights: int = 0
    seconds: float = 0.0


def axis_report(mover: Mover, choice: Choice, reports: Sequence[Report], weights: int, inside: int) -> AxisReport:
    """A line for the axis, one for each weight that is split, and one for each collective. `weights` are bytes,
    `inside` those that loops and branches alone read."""
    held = (f"{choice.weights + inside} of {weights + inside} bytes of weights a rank, "
            f"{choice.seconds * 1e6:.0f} us predicted")
    parts = [f"  weight {name}, {p}" for name, p in sorted(choice.parts, key=str) if p.kind == "split"]
    lines = (f"{head(mover, reports)}, {held}", *parts, *exchanges(reports))
    return AxisReport(lines, tuple(reports), choice.weights + inside)


def head(mover: Mover, reports: Sequence[Report]) -> str:
    """The axis and what is exchanged along it in all."""
    ranks, collectives = counted(mover.ranks, "rank"), counted(len(reports), "collective")
    return f"axis {mover.axis}: {ranks}, {collectives} of {sum(r.nbytes for r in reports)} bytes a run"


def exchanges(reports: Sequence[Report]) -> list[str]:
    """A line for each collective."""
    return [f"  {r.kind} {r.nbytes} bytes, {r.how}: {r.where}" for r in reports]
