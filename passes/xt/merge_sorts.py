"""Sorts and top_k on GPUs: short runs sorted by counting, then merged in pairs, a thread an element.

    %v, %i = xt.sort_runs(%x) {run = 16}
    %v, %i = xt.merge_runs(%v, %i) {run = 16, keep = ...}       again with runs of 32, 64, ... until there is one

An element's place in the pair is its place in its own run and, by a binary search, how many of the other run stand
before it. For top_k no run keeps more than the power of two that holds k, so that rows halve from then on. (Satish,
Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.rank_sorts import sort_sizes
from xcc.passes.xt.rewrite import at, name_of, replace, walk_ops

__all__ = ["MergeSorts"]

RUN = 16
LAUNCH = 4e-6           # seconds of a merge of few elements: a launch, and a chain of reads
ELEMENT = 16e-12        # of a merge for each element of a large GPU
COMPARE = 0.5e-12       # of a comparison of all pairs (rank-sorts)
STEP = 0.4e-6           # of a heap's step, a chain of reads from memory


@register_pass
@dataclass(frozen=True)
class MergeSorts(Pass):
    """Turns sort and top_k of static sizes into merges where that takes less time than counting or a heap a row."""

    name: ClassVar[str] = "merge-sorts"

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context:
            for op in list(walk_ops(module)):
                if name_of(op) in ("sort", "top_k") and _pays(op, ctx.chip.cores or 1):
                    with at(op):
                        replace(op, _merged(op))


def _pays(op: Any, cores: int) -> bool:
    sizes = sort_sizes(op)
    if sizes is None:
        return False
    rows, size, kept = sizes
    if size <= 2 * RUN or not kept or not rows:
        return False
    seconds, now = 0.0, size
    for run, keep in _levels(size, kept):
        seconds += LAUNCH + rows * now * ELEMENT
        now = -(-now // (2 * run)) * min(2 * run, keep)
    counting = rows * size * (size + kept) * COMPARE
    heap = size * kept.bit_length() * max(1, rows // (cores * 256)) * STEP
    return seconds + LAUNCH < min(counting + 2 * LAUNCH, heap)


def _levels(size: int, kept: int) -> list[tuple[int, int]]:
    """(run, keep) of each merge."""
    keep, run, out = max(RUN, 1 << (kept - 1).bit_length()), RUN, []
    while size > run:
        out.append((run, keep))
        merged = min(2 * run, keep)
        size = size // (2 * run) * merged + min(size % (2 * run), merged)
        run = merged
    return out


def _merged(op: Any) -> list[Any]:
    """Values and indices."""
    a, x = xt.attrs_of(op), op.operands[0]
    descending = a.descending if name_of(op) == "sort" else a.largest
    rank, kept = len(xt.shape_of(x)), xt.shape_of(op.results[0])[a.axis]
    order = (*(d for d in range(rank) if d != a.axis), a.axis)
    back = tuple(order.index(d) for d in range(rank))
    x = xt.transpose(x, perm=order)
    size = xt.shape_of(x)[-1]
    assert isinstance(size, int) and isinstance(kept, int)
    values, indices = xt.sort_runs(x, run=RUN, descending=descending)
    for run, keep in _levels(size, kept):
        values, indices = xt.merge_runs(values, indices, run=run, keep=keep, descending=descending)
    out = []
    for v in (values, xt.convert(indices, dtype="i64")):
        shape = xt.shape_of(v)
        if shape[-1] != kept:
            v = xt.slice(v, starts=(0,) * rank, limits=(*shape[:-1], kept), strides=(1,) * rank)
        out.append(xt.transpose(v, perm=back))
    return out
