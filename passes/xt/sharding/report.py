"""What was decided, for people: the collectives, where and how many bytes, and the weights that a rank holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcc.diagnostics import counted

if TYPE_CHECKING:
    from xcc.passes.xt.sharding.choose import Choice
    from xcc.passes.xt.sharding.divide import Report
    from xcc.passes.xt.sharding.moves import Mover

__all__ = ["lines_of"]


def lines_of(mover: Mover, choice: Choice, reports: Sequence[Report], weights: int) -> list[str]:
    """A line for the axis, one for each weight that is split, and one for each collective."""
    total = sum(r.nbytes for r in reports)
    out = [f"axis {mover.axis}: {counted(mover.ranks, 'rank')}, {counted(len(reports), 'collective')} of {total} bytes "
           f"a run, {choice.weights} of {weights} bytes of weights a rank, {choice.seconds * 1e6:.0f} us predicted"]
    out += [f"  weight {name}, {p}" for name, p in sorted(choice.parts, key=str) if p.kind == "split"]
    return out + [f"  {r.kind} {r.nbytes} bytes, {r.source} -> {r.target}: {r.where}" for r in reports]
