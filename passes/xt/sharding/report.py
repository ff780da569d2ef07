"""What was decided, for people: the collectives, where and how many bytes, and the weights that a rank holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xcc.passes.xt.sharding.choose import Choice
    from xcc.passes.xt.sharding.divide import Report
    from xcc.passes.xt.sharding.moves import Mover

__all__ = ["lines_of"]


def lines_of(mover: Mover, choice: Choice, reports: Sequence[Report], weights: int) -> list[str]:
    """A line an axis, a line a collective."""
    total = sum(r.nbytes for r in reports)
    out = [f"axis {mover.axis}: {mover.ranks} ranks, {len(reports)} collectives of {total} bytes a run, "
           f"{choice.weights} of {weights} bytes of weights a rank, {choice.seconds * 1e6:.0f} us predicted"]
    return out + [f"  {r.kind} {r.nbytes} bytes, {r.source} -> {r.target}: {r.location}" for r in reports]
