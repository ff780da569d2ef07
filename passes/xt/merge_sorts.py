"""Sorts and top_k on GPUs: short runs sorted by counting, then merged several at a time, a thread an element.

    %k = %x as integers of the same order                       (descending: their complement)
    %s, %i = xt.sort_runs(%k) {run = 64}
    %s, %i = xt.merge_runs(%s, %i) {run = 64, ways = 4, keep = ...}     again with runs of 256, ... until there is one
    %v = xt.gather_elements(%x, %i)

An element's place among the runs is its place in its own and, by binary searches side by side, how many of each other
one come before it. For top_k no run keeps more than the power of two that holds k, so that rows shrink from then on. Of
a symbolic size there are merges for the largest that it may have; those of a single run copy it. (Satish, Harris and
Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from xcc.bounds import interval
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.rewrite import at, dim_bounds, name_of, replace, walk_ops
from xcc.symbolic import Dim

__all__ = ["MergeSorts"]

RUN = 64
WAYS = (2, 4, 8)
MOST = 1 << 31          # elements of a row: their numbers are i32
LAUNCH = 3e-6           # seconds of a merge of few elements: a launch, and a chain of reads
ELEMENT = 6e-12         # of a merge for each element of a large GPU, which is read and written
PROBE = 0.35e-12        # and for each step of a search
COMPARE = 0.5e-12       # of a comparison of all pairs (rank-sorts)
STEP = 0.4e-6           # of a heap's step, a chain of reads from memory
Bounds = Mapping[str, tuple[int, int]]


@register_pass
@dataclass(frozen=True)
class MergeSorts(Pass):
    """Turns sort and top_k into merges where that takes less time than counting or a heap a row."""

    name: ClassVar[str] = "merge-sorts"

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context:
            bounds = dim_bounds(module)
            for op in list(walk_ops(module)):
                if name_of(op) not in ("sort", "top_k"):
                    continue
                plan = _plan(op, ctx.chip.cores or 1, bounds)
                if plan is not None:
                    with at(op):
                        replace(op, _merged(op, *plan))


def _plan(op: Any, cores: int, bounds: Bounds) -> tuple[int, int, int] | None:
    """(most elements of a row, most that are kept, ways), or None where another form is as fast."""
    axis = xt.attrs_of(op).axis
    shape, kept = xt.shape_of(op.operands[0]), xt.shape_of(op.results[0])[axis]
    rows: list[Dim] = [d for n, d in enumerate(shape) if n != axis]
    size, keep = (int(min(interval(bounds, d)[1], MOST)) for d in (shape[axis], kept))
    if size <= 2 * RUN or not keep or any(d == 0 for d in rows):
        return None
    if not all(isinstance(d, int) for d in (*shape, kept)):
        return size, keep, WAYS[-1]
    count = math.prod(d for d in rows if isinstance(d, int))
    seconds, ways = min((_seconds(count, size, keep, w), w) for w in WAYS)
    counting = count * size * (size + keep) * COMPARE
    heap = size * keep.bit_length() * max(1, count // (cores * 256)) * STEP
    return (size, keep, ways) if seconds < min(counting + 3 * LAUNCH, heap) else None


def _seconds(rows: int, size: int, kept: int, most: int) -> float:
    total = 3 * LAUNCH + rows * size * RUN * PROBE      # keys, runs, values
    for run, keep, ways in _levels(size, kept, most):
        total += LAUNCH + rows * size * (ELEMENT + (ways - 1) * run.bit_length() * PROBE)
        size = -(-size // (ways * run)) * min(ways * run, keep)
    return total


def _levels(size: int, kept: int, most: int) -> list[tuple[int, int, int]]:
    """(run, keep, ways) of each merge."""
    keep, run, out = max(RUN, 1 << (kept - 1).bit_length()), RUN, []
    while size > run:
        ways = min(most, MOST // run)
        out.append((run, keep, ways))
        merged = min(ways * run, keep)
        size = size // (ways * run) * merged + min(size % (ways * run), merged)
        run = merged
    return out


def _merged(op: Any, size: int, keep: int, ways: int) -> list[Any]:
    """Values and indices."""
    a, x = xt.attrs_of(op), op.operands[0]
    descending = a.descending if name_of(op) == "sort" else a.largest
    rank, kept = len(xt.shape_of(x)), xt.shape_of(op.results[0])[a.axis]
    order = (*(d for d in range(rank) if d != a.axis), a.axis)
    back = tuple(order.index(d) for d in range(rank))
    x = xt.transpose(x, perm=order)
    keys, numbers = xt.sort_runs(_ordered(x, descending), run=RUN)
    for run, some, together in _levels(size, keep, ways):
        keys, numbers = xt.merge_runs(keys, numbers, run=run, ways=together, keep=some)
    index = xt.convert(numbers, dtype="i64")
    shape = xt.shape_of(index)
    if shape[-1] != kept:
        index = xt.slice(index, starts=(0,) * rank, limits=(*shape[:-1], kept), strides=(1,) * rank)
    return [xt.transpose(v, perm=back) for v in (xt.gather_elements(x, index, axis=rank - 1), index)]


def _ordered(x: Any, descending: bool) -> Any:
    """i32 or i64 in the order of `x`, in which zeros of both signs are equal and NaN is the largest."""
    dtype = xt.TensorType.of(x).dtype
    if xt.is_float(dtype):
        bits = 64 if dtype == "f64" else 32
        x = x if dtype == "f64" else xt.convert(x, dtype="f32")
        zero = xt.constant(0.0, dtype=f"f{bits}")
        kind, most = f"i{bits}", (1 << bits - 1) - 1
        raw = xt.bitcast(xt.select(xt.compare(x, zero, direction="eq"), zero, x), dtype=kind)
        sign = xt.shift_right(raw, xt.constant(bits - 1, dtype=kind))
        key = xt.xor(raw, getattr(xt, "and")(sign, xt.constant(most, dtype=kind)))
        key = xt.select(xt.is_nan(x), xt.constant(most, dtype=kind), key)
    elif dtype == "ui64":
        kind = "i64"
        key = xt.xor(xt.bitcast(x, dtype=kind), xt.constant(-(1 << 63), dtype=kind))
    else:
        kind = "i64" if dtype in ("i64", "ui32") else "i32"
        key = x if dtype == kind else xt.convert(x, dtype=kind)
    return xt.xor(key, xt.constant(-1, dtype=kind)) if descending else key
