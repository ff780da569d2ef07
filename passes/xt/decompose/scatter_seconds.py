"""Estimates for scatters that combine updates: threads walk them, or they are sorted by place."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xcc._mlir import Operation
from xcc.dialects import xt
from xcc.passes.xt.decompose.scattered_columns import GUESSED
from xcc.symbolic import Dim
from xcc.targets.base import Chip

WALKED_SECONDS = 0.11e-6        # of an update that a thread looks at in memory, among all that wait for one
SORT_LAUNCHES = 8
SORTED_SECONDS = 0.3e-9         # of an update
FOLLOWED_SECONDS = 90e-9        # of an update that a thread follows to a row, one after the other


def estimated(shape: Sequence[Dim]) -> int:
    """Elements of a tensor, where sizes that only a run knows are large."""
    return math.prod(d if isinstance(d, int) else GUESSED for d in shape)


def walk_seconds(op: Operation, chip: Chip) -> float:
    """Of a scatter_elements whose threads each look at all updates that there are for a column: never few where only a
    run knows."""
    axis, shape = xt.attrs_of(op).axis, xt.shape_of(op.operands[0])
    count = xt.shape_of(op.operands[2])[axis]
    if not isinstance(count, int):
        return math.inf
    columns = estimated([n for d, n in enumerate(shape) if d != axis])
    walkers = max(1, math.isqrt((1 << 22) // columns)) * columns
    return chip.launch_seconds + count * WALKED_SECONDS * max(1.0, walkers / (chip.cores * 512))


def sort_seconds(op: Operation, chip: Chip) -> float:
    """Of updates that are sorted by their place."""
    return SORT_LAUNCHES * chip.launch_seconds + estimated(xt.shape_of(op.operands[2])) * SORTED_SECONDS


def rows_seconds(count: int, places: int, chip: Chip) -> float:
    """Of `count` rows that are sorted by their place, each of which a thread for each element then follows."""
    return SORT_LAUNCHES * chip.launch_seconds + count * (SORTED_SECONDS + FOLLOWED_SECONDS / places)
