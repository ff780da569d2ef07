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
LAUNCH = 3e-6
COMBINED = ("f32", "f16", "bf16", "f64", "i32", "i64", "i16", "i8", "ui32", "ui64", "ui16", "ui8")
GUESSED = 1 << 20       # updates of a column, where only the run knows
PARTS = 4096            # of a column, at most
NOTHING = {"add": 0, "mul": 1}  # what changes no place; for the other reductions the columns are not cut


@dataclass(frozen=True)
class Columns:
    """Of the tiles of a scatter: columns and places of a workgroup, parts of a column of updates, estimated time."""

    columns: int
    held: int
    parts: int
    seconds: float


def planned(op: Operation, chip: Chip) -> Columns | None:
    """The fastest tiles; None where sizes are not known, or places so many that none are held."""
    x, _, updates = op.operands
    a, kind = xt.attrs_of(op), xt.TensorType.of(x)
    known = [d for d in (*xt.shape_of(x), *(n for d, n in enumerate(xt.shape_of(updates)) if d != a.axis))
             if isinstance(d, int)]
    if len(known) < 2 * len(kind.shape) - 1 or kind.dtype not in COMBINED:
        return None
    count = xt.shape_of(updates)[a.axis]
    most = PARTS if a.reduction in NOTHING else 1
    found = [_plan(op, 1 << n, count if isinstance(count, int) else GUESSED, chip) for n in range(most.bit_length())]
    return min(found, key=lambda c: c.seconds)


def _plan(op: Operation, parts: int, count: int, chip: Chip) -> Columns:
    before, places, after = _sides(op)
    dtype = xt.TensorType.of(op.operands[0]).dtype
    size = 4 if parts > 1 and dtype in HALVES else xt.width(dtype) // 8
    before *= parts
    lines = after if after > 1 else before      # side by side in a tile
    columns = min(COLUMNS, pow2_above(lines))
    room = min(HELD, chip.shared_bytes - columns * (STEP * max(4, size) + SPARE)) // (columns * size)
    held = min(pow2_above(room + 1) // 2, pow2_above(places))
    tiles = before * after // lines * -(-lines // columns) * -(-places // held)
    seconds = -(-tiles // chip.cores) * (-(-count // parts) * COMBINED_SECONDS + columns * held * size * MOVED_SECONDS)
    if parts > 1:       # added up, and given to warps in a launch of their own
        seconds += 2 * LAUNCH + before * places * after * 2 * size * MOVED_SECONDS / chip.cores
    return Columns(columns, held, parts, seconds)


def _sides(op: Operation) -> tuple[int, int, int]:
    axis = xt.attrs_of(op).axis
    shape = [d for d in xt.shape_of(op.operands[0]) if isinstance(d, int)]
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])


def combined(op: Operation, indices: Value, plan: Columns) -> Value:
    """The result of the scatter_elements `op` at `indices` of its updates' shape."""
    x, _, updates = op.operands
    a, shape, parts = xt.attrs_of(op), xt.shape_of(x), plan.parts
    before, places, after = _sides(op)
    count = xt.shape_of(updates)[a.axis]
    dtype = xt.TensorType.of(x).dtype
    start = x
    if parts > 1:
        wide = "f32" if dtype in HALVES else dtype
        updates = _whole_parts(updates if wide == dtype else xt.convert(updates, dtype=wide), a.axis, parts,
                               NOTHING[a.reduction])
        indices = _whole_parts(indices, a.axis, parts, 0)
        count = ceildiv(count, parts)
        start = xt.broadcast(xt.constant(NOTHING[a.reduction], dtype=wide), shape=(before * parts, places, after))
    made = xt.combine_columns(
        xt.reshape(start, shape=(before * parts, places, after)),
        *[xt.reshape(v, shape=(before * parts, count, after)) for v in (indices, updates)],
        reduction=a.reduction, columns=plan.columns, held=plan.held)
    if parts == 1:
        return xt.reshape(made, shape=shape)
    every = xt.reshape(made, shape=(before, parts, places * after))
    whole = xt.reshape(xt.reduce(every, kind="sum" if a.reduction == "add" else "prod", axes=(1,)), shape=shape)
    both = (xt.add if a.reduction == "add" else xt.mul)(x if wide == dtype else xt.convert(x, dtype=wide), whole)
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
