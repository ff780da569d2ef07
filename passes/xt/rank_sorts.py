"""Sorts and top_k of few rows by counting, so that a GPU has a thread an element in place of one a row.

    rank[i] = how many j stand before i: x[j] < x[i], or x[j] = x[i] and j < i      (n * n comparisons, side by side)
    index[r] = the sum over i of (i where rank[i] = r, else 0)                      (k * n, one term is not 0)
    value[r] = x[index[r]]

Both are reductions of rows that read x from the cache (rank sort, also called enumeration sort: Knuth, "The Art of
Computer Programming" 3, section 5.2). It does far more work than a heap, in far less time while the comparisons of all
rows are fewer than MOST and the rows too few to fill the chip.
"""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import name_of, rewrite

SHORTEST = 32           # elements that one thread sorts as fast
MOST = 1 << 36          # comparisons: about 20 ms of a large GPU
WORK = 4096             # comparisons of a core in the time of a heap's step, a chain of reads from memory
AND, OR = getattr(xt, "and"), getattr(xt, "or")


@register_pass
class RankSorts(Pass):
    """Turns sort and top_k of static sizes into reductions and a gather, where rows are few."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, dict.fromkeys(("sort", "top_k"), lambda op: _ranked(op) if _pays(op, ctx.chip.cores) else None))


def sort_sizes(op: Operation) -> tuple[int, int, int] | None:
    """Rows, elements of a row and how many are kept of a sort or top_k; None for free sizes and truth values."""
    kinds = [xt.TensorType.of(v) for v in (op.operands[0], op.results[0])]
    if kinds[0].dtype == "i1" or not all(isinstance(d, int) for t in kinds for d in t.shape):
        return None
    shape, axis = [d for d in kinds[0].shape if isinstance(d, int)], xt.attrs_of(op).axis
    kept = kinds[1].shape[axis]
    assert isinstance(kept, int)
    return math.prod(shape) // max(1, shape[axis]), shape[axis], kept


def _pays(op: Operation, cores: int) -> bool:
    sizes = sort_sizes(op)
    if sizes is None:
        return False
    rows, size, kept = sizes
    compared = rows * size * (size + kept)
    steps = size * max(1, kept).bit_length() * max(1, rows // (cores * 256))
    return size > SHORTEST and compared < min(MOST, steps * cores * WORK)


def _ranked(op: Operation) -> list[Value]:
    """Values and indices."""
    a, x = xt.attrs_of(op), op.operands[0]
    descending = a.descending if name_of(op) == "sort" else a.largest
    rank = len(xt.shape_of(x))
    order = (*(d for d in range(rank) if d != a.axis), a.axis)
    x = xt.transpose(x, perm=order)
    shape = tuple(d for d in xt.shape_of(x) if isinstance(d, int))
    kept = xt.shape_of(op.results[0])[a.axis]
    assert isinstance(kept, int)
    size, rows = shape[-1], shape[:-1]
    mine, other = xt.reshape(x, shape=(*rows, size, 1)), xt.reshape(x, shape=(*rows, 1, size))
    numbers = [xt.iota(shape=s, axis=d, dtype="i32") for s, d in (((size, 1), 0), ((1, size), 1))]
    before = OR(_before(other, mine, descending),
                 AND(_same(other, mine), xt.compare(numbers[1], numbers[0], direction="lt")))
    ranks = xt.reduce(xt.convert(before, dtype="i32"), kind="sum", axes=(rank,), keepdims=False)
    place = xt.iota(shape=(kept, 1), axis=0, dtype="i32")
    hit = xt.compare(xt.reshape(ranks, shape=(*rows, 1, size)), place, direction="eq")
    zero = xt.constant(0, dtype="i32")
    index = xt.reduce(xt.select(hit, numbers[1], zero), kind="sum", axes=(rank,), keepdims=False)
    index = xt.convert(index, dtype="i64")
    values = xt.gather_elements(x, index, axis=rank - 1)
    back = tuple(order.index(d) for d in range(rank))
    return [xt.transpose(values, perm=back), xt.transpose(index, perm=back)]


def _before(a: Value, b: Value, descending: bool) -> Value:
    """Whether a comes before b in the order of numbers with NaN as the largest."""
    less = xt.compare(a, b, direction="gt" if descending else "lt")
    if not xt.is_float(xt.TensorType.of(a).dtype):
        return less
    first, last = (a, b) if descending else (b, a)
    return OR(less, AND(xt.is_nan(first), xt.compare(last, last, direction="eq")))


def _same(a: Value, b: Value) -> Value:
    same = xt.compare(a, b, direction="eq")
    if not xt.is_float(xt.TensorType.of(a).dtype):
        return same
    return OR(same, AND(xt.is_nan(a), xt.is_nan(b)))
