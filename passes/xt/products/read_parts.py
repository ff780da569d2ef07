"""Products of which one slice is all that is read: the rest is not computed.

    slice(gelu(dot_general(x : 128x256, w : 256x1000) + b)) [127:128, :]
becomes
    gelu(dot_general(slice(x) [127:128, :], w) + b)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import aligned_shape, is_pointwise, name_of, producer, rebuilt, users_of
from xcc.symbolic import Dim

Cut = tuple[Dim, Dim, int]
"""Start, limit and stride along a dim."""
MOST = 64
"""Pointwise ops that are looked through."""


def slice_of_product(op: Operation) -> Value | None:
    """The product of slices, or the pointwise op of slices where a product is behind it; None where others read it."""
    made = producer(op.operands[0])
    if made is None:
        return None
    a = xt.attrs_of(op)
    cuts = list(zip(a.starts, a.limits, a.strides, strict=True))
    if name_of(made) == "dot_general":
        return _product(made, cuts) if _read_by(made, op, {}) else None
    if not is_pointwise(made) or not _behind(made, op):
        return None
    rank = len(cuts)
    return rebuilt(made, [_part(v, [(0, 1, 1) if size == 1 else cut for size, cut in
                                    zip(aligned_shape(v, rank), cuts, strict=True)]) for v in made.operands])


def _read_by(made: Operation, op: Operation, inside: Mapping[Operation, None]) -> bool:
    """Whether slices like `op` and the ops `inside` are all that read the result."""
    own = vars(xt.attrs_of(op))
    return all(user in inside or name_of(user) == "slice" and vars(xt.attrs_of(user)) == own
               for user in users_of(made.results[0]))


def _behind(made: Operation, op: Operation) -> bool:
    """Whether a product is behind `made` and other pointwise ops, all of which end in slices like `op`."""
    inside: dict[Operation, None] = {}
    waiting = [made]
    while len(inside) < MOST:
        found = next((w for w in waiting if _read_by(w, op, inside)), None)
        if found is None or name_of(found) == "dot_general":
            return found is not None
        waiting.remove(found)
        inside[found] = None
        sources = [source for v in found.operands if (source := producer(v)) is not None]
        waiting += [s for s in dict.fromkeys(sources) if s not in waiting and s not in inside
                    and (name_of(s) == "dot_general" or is_pointwise(s))]
    return False


def _product(made: Operation, cuts: Sequence[Cut]) -> Value:
    """Result dims: batch, free dims of the left operand, free dims of the right one."""
    a, (left, right) = xt.attrs_of(made), made.operands
    count = len(a.lhs_batch)
    rest = iter(cuts[count:])
    parts = []
    for value, batch, summed in ((left, a.lhs_batch, a.lhs_contract), (right, a.rhs_batch, a.rhs_contract)):
        whole = [(0, n, 1) for n in xt.shape_of(value)]
        parts.append(_part(value, [cuts[batch.index(d)] if d in batch else own if d in summed else next(rest)
                                   for d, own in enumerate(whole)]))
    return xt.dot_general(*parts, **vars(a))


def _part(value: Value, cuts: Sequence[Cut]) -> Value:
    """`value` where `cuts`, which have a cut for each dim from the last on."""
    shape = xt.shape_of(value)
    own = cuts[len(cuts) - len(shape):]
    if all(cut == (0, n, 1) for cut, n in zip(own, shape, strict=True)):
        return value
    starts, limits, strides = zip(*own, strict=True)
    return xt.slice_(value, starts=starts, limits=limits, strides=strides)
