"""Operands of products in groups: a few neighbours along the sum, which one instruction multiplies, lie together."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Operation, Value, owner_op
from xcc.dialects import xt
from xcc.passes.xt.graph.match import only_user
from xcc.passes.xt.graph.rewrite import producer
from xcc.passes.xt.products.product_sides import before_transpose
from xcc.symbolic import Dim, product


def of_groups(op: Operation, w: Value, inputs: int, outputs: int) -> Value:
    """The convolution with its filter `w` in panels of groups, which may have more inputs and outputs than it had."""
    *_, groups, width, group = xt.shape_of(w)
    rest = vars(xt.attrs_of(op)) | {"filter": "OHWIoi", "outputs": outputs if outputs % width else 0}
    return xt.convolution(filled(op.operands[0], groups * group - inputs), w, **rest)


def filled(x: Value, extra: Dim) -> Value:
    """`x` with `extra` zeros more in its last dim; a padding before it makes them too, where it is stored."""
    if not extra:
        return x
    op, rank = producer(x, "pad"), len(xt.shape_of(x))
    more = (*[0] * (rank - 1), extra)
    if op is not None and only_user(x) and xt.attrs_of(op).mode == "constant":
        a = xt.attrs_of(op)
        wider = xt.pad(op.operands[0], **(vars(a) | {
            "high": tuple(n + m for n, m in zip(a.high, more, strict=True))}))
        if "xcc.stored" in op.attributes:
            owner_op(wider).attributes["xcc.stored"] = op.attributes["xcc.stored"]
        return wider
    return xt.pad(x, low=(0,) * rank, high=more)


def in_groups(x: Value, dims: Sequence[int], batch: int, depth: tuple[Dim, ...], columns: tuple[Dim, Dim]) -> Value:
    """`x`, whose dims in the order `dims` are [.., K, N], filled up with zeros and in panels of groups.

    Its K is split into `depth` = (.., group), its N into `columns` = (panels, width): the panels come behind `batch`
    dims, [.., K / group, width, group] behind them.
    """
    source, order = before_transpose(x)
    shape, place = xt.shape_of(source), [order[d] for d in dims]
    k, n = place[-2:]
    parts = {k: depth, n: columns}
    high = tuple(product(parts[d]) - size if d in parts else 0 for d, size in enumerate(shape))
    source = xt.pad(source, low=(0,) * len(shape), high=high) if any(high) else source
    split = [parts.get(d, (size,)) for d, size in enumerate(shape)]
    first = [sum(map(len, split[:d])) for d in range(len(shape))]
    rest, (*outer, group) = [first[d] for d in place[:-2]], range(first[k], first[k] + len(depth))
    return xt.transpose(xt.reshape(source, shape=tuple(d for part in split for d in part)),
                        perm=(*rest[:batch], first[n], *rest[batch:], *outer, first[n] + 1, group))
