"""Scatters along an axis by columns in shared memory, and their cost.

    %y = xt.scatter_elements(%x, %i, %u) {axis = 1, reduction = "add"} : 3x100, 3x1000000
becomes, with 512 parts of each row of updates side by side,
    %p = xt.combine_columns(0, %i, %u) : 1536x100x1, 1536x1954x1
    %y = %x + the sums of the 512 parts

A workgroup keeps some columns of places and combines the updates there, a warp for each; with few columns, most warps
of a GPU would have no work. Parts are of equal length: the last is padded with updates that change nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.positions import HALVES
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import Dim, ceildiv
from xcc.targets.base import Chip

COLUMNS = 8             # that a workgroup combines: a sector of four bytes each
HELD = 128 << 10        # bytes of them in shared memory
STEP = 512              # updates of a column that are on their way to their threads
SPARE = 64              # bytes that a column may need beside
COMBINED_SECONDS = 6e-9         # of an update of each column
MOVED_SECONDS = 0.1e-9          # of a byte of a core that is read and written
COMBINED = ("f32", "f16", "bf16", "f64", "i32", "i64", "i16", "i8", "ui32", "ui64", "ui16", "ui8")
GUESSED = 1 << 20       # updates of a column, where only the run knows
PARTS = 4096            # of a column, at most
NOTHING = {"add": 0, "mul": 1}  # what changes no place; for the other reductions the columns are not cut


@dataclass(frozen=True)
class Scatter:
    """An ``xt.scatter_elements``: `updates` at `indices`, of their shape, along an axis of x."""

    x: Value
    indices: Value
    updates: Value
    axis: int
    reduction: str

    @staticmethod
    def of(op: Operation, indices: Value) -> Scatter:
        x, _, updates = op.operands
        a = xt.attrs_of(op)
        return Scatter(x, indices, updates, a.axis, a.reduction)

    @property
    def count(self) -> Dim:
        """Updates of a column."""
        return xt.shape_of(self.updates)[self.axis]

    def sides(self) -> tuple[int, int, int]:
        """Lines ahead of the axis, places along it, columns behind it."""
        shape = [d for d in xt.shape_of(self.x) if isinstance(d, int)]
        return math.prod(shape[:self.axis]), shape[self.axis], math.prod(shape[self.axis + 1:])


@dataclass(frozen=True)
class Columns:
    """Of the tiles of a scatter: columns and places of a workgroup, parts of a column of updates, estimated time."""

    columns: int
    held: int
    parts: int
    seconds: float


def planned(s: Scatter, chip: Chip) -> Columns | None:
    """The fastest tiles; None where sizes are not known, or places so many that none are held."""
    kind = xt.TensorType.of(s.x)
    known = [d for d in (*kind.shape, *(n for d, n in enumerate(xt.shape_of(s.updates)) if d != s.axis))
             if isinstance(d, int)]
    if len(known) < 2 * len(kind.shape) - 1 or kind.dtype not in COMBINED:
        return None
    count = s.count if isinstance(s.count, int) else GUESSED
    most = PARTS if s.reduction in NOTHING else 1
    return min((_plan(s, 1 << n, count, chip) for n in range(most.bit_length())), key=lambda c: c.seconds)


def _plan(s: Scatter, parts: int, count: int, chip: Chip) -> Columns:
    before, places, after = s.sides()
    dtype = xt.TensorType.of(s.x).dtype
    size = 4 if parts > 1 and dtype in HALVES else xt.width(dtype) // 8
    before *= parts
    lines = after if after > 1 else before      # side by side in a tile
    columns = min(COLUMNS, pow2_above(lines))
    room = min(HELD, chip.shared_bytes - columns * (STEP * max(4, size) + SPARE)) // (columns * size)
    held = min(pow2_above(room + 1) // 2, pow2_above(places))
    tiles = before * after // lines * -(-lines // columns) * -(-places // held)
    seconds = -(-tiles // chip.cores) * (-(-count // parts) * COMBINED_SECONDS + columns * held * size * MOVED_SECONDS)
    if parts > 1:       # added up, and given to warps in a launch of their own
        seconds += 2 * chip.launch_seconds + before * places * after * 2 * size * MOVED_SECONDS / chip.cores
    return Columns(columns, held, parts, seconds)


def combined(s: Scatter, plan: Columns) -> Value:
    """The result of the scatter."""
    x, indices, updates, axis, parts = s.x, s.indices, s.updates, s.axis, plan.parts
    shape, count = xt.shape_of(x), s.count
    before, places, after = s.sides()
    dtype = xt.TensorType.of(x).dtype
    start = x
    if parts > 1:
        wide = "f32" if dtype in HALVES else dtype
        updates = _whole_parts(updates if wide == dtype else xt.convert(updates, dtype=wide), axis, parts,
                               NOTHING[s.reduction])
        indices = _whole_parts(indices, axis, parts, 0)
        count = ceildiv(count, parts)
        start = xt.broadcast(xt.constant(NOTHING[s.reduction], dtype=wide), shape=(before * parts, places, after))
    made = xt.combine_columns(
        xt.reshape(start, shape=(before * parts, places, after)),
        *[xt.reshape(v, shape=(before * parts, count, after)) for v in (indices, updates)],
        reduction=s.reduction, columns=plan.columns, held=plan.held)
    if parts == 1:
        return xt.reshape(made, shape=shape)
    every = xt.reshape(made, shape=(before, parts, places * after))
    whole = xt.reshape(xt.reduce(every, kind="sum" if s.reduction == "add" else "prod", axes=(1,)), shape=shape)
    both = (xt.add if s.reduction == "add" else xt.mul)(x if wide == dtype else xt.convert(x, dtype=wide), whole)
    return both if wide == dtype else xt.convert(both, dtype=dtype)


def _whole_parts(v: Value, axis: int, parts: int, value: int) -> Value:
    """`v` with so many more elements of `value` along `axis` that its parts are equally long."""
    shape = xt.shape_of(v)
    size: Dim = shape[axis]
    missing = ceildiv(size, parts) * parts - size
    if missing == 0:
        return v
    high: list[Dim] = [0] * len(shape)
    high[axis] = missing
    return xt.pad(v, low=[0] * len(shape), high=high, value=value)
