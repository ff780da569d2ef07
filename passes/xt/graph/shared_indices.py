"""Scatters whose index is one for all of a row: it is not repeated for each element.

    scatter_elements(x, broadcast(i : 4000x1) : 4000x64, u : 4000x64) {axis = 1}   becomes   scatter_elements(x, i, u)

Along the first axis, with whole rows, it is a scatter of rows: ``scatter_nd(x, i, u)``. Where a row of x and one of u
hold one number each (how often a place is written to), one of its elements is computed.
"""

from __future__ import annotations

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import producer
from xcc.symbolic import Dim, dim_min, product


def shared_index(op: Operation) -> Value | None:
    """The scatter with each index once; None where it has no more."""
    x, indices, updates = op.operands
    a, source = xt.attrs_of(op), producer(indices, "broadcast")
    if source is None:
        return None
    given, whole = xt.shape_of(source.operands[0]), xt.shape_of(indices)
    given = (*(1,) * (len(whole) - len(given)), *given)
    if given[a.axis] != whole[a.axis] or given == whole:
        return None
    once = xt.reshape(source.operands[0], shape=given)
    beside = [d for d in range(len(whole)) if d != a.axis]
    alike = [d for d in beside if given[d] == 1 != whole[d] and _repeated(x, d) and _repeated(updates, d)]
    if alike:
        return _one_a_row(op, once, alike)
    rows = all(given[d] == 1 and xt.shape_of(x)[d] == whole[d] for d in beside)
    if a.axis == 0 and rows and beside:
        return xt.scatter_nd(x, xt.reshape(once, shape=(whole[0], 1)), updates, reduction=a.reduction)
    return xt.scatter_elements(x, once, updates, axis=a.axis, reduction=a.reduction)


def _repeated(v: Value, axis: int) -> bool:
    """Whether `v` is repeated along `axis`."""
    source = producer(v, "broadcast")
    if source is None:
        return False
    missing = len(xt.shape_of(v)) - len(xt.shape_of(source.operands[0]))
    return axis < missing or xt.shape_of(source.operands[0])[axis - missing] == 1


def _one_a_row(op: Operation, once: Value, alike: list[int]) -> Value:
    """The scatter of one element along the dims `alike`, repeated as far as there are updates."""
    x, _, updates = op.operands
    a, shape, whole = xt.attrs_of(op), xt.shape_of(x), xt.shape_of(updates)
    some = dim_min(1, product(whole[d] for d in alike))     # without updates nothing is written

    def single(v: Value) -> Value:
        source, sizes = producer(v, "broadcast"), xt.shape_of(v)
        assert source is not None
        return xt.broadcast(source.operands[0], shape=tuple(1 if d in alike else n for d, n in enumerate(sizes)))

    def written(v: Value) -> Value:
        limits = tuple(n * some if d == a.axis else n for d, n in enumerate(xt.shape_of(v)))
        return v if some == 1 else xt.slice(v, starts=(0,) * len(limits), limits=limits)

    out = xt.broadcast(xt.scatter_elements(single(x), written(once), written(single(updates)), **vars(a)), shape=shape)
    for d in alike:
        if shape[d] != whole[d]:
            out = xt.select(_below(whole[d], shape[d], len(shape) - d), out, x)
    return out


def _below(end: Dim, size: Dim, rank: int) -> Value:
    """Which of `size` numbers from 0 on are less than `end`, along the first of `rank` dims."""
    numbers = xt.iota(shape=(size,), axis=0, dtype="i64")
    return xt.reshape(xt.compare(numbers, xt.dim(value=end), direction="lt"), shape=(size, *(1,) * (rank - 1)))
