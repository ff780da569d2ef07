"""Distances of points, and their gradients."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import element, full, rank_of, scalar, unsqueeze
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.reduce import norm_over
from xcc.frontends.torch.registry import aten


@aten("_cdist_forward", "cdist")
def cdist(cx: Context) -> Value:
    """The p-norm of the difference of each row of x1 and each of x2; leading dims are batches."""
    a, b = cx.tensor("x1"), cx.tensor("x2")
    far = xt.sub(unsqueeze(a, [rank_of(a) - 1]), unsqueeze(b, [rank_of(b) - 2]))
    return norm_over(xt.abs(far), (rank_of(far) - 1,), float(cx["p"]), False)


@aten("dist")
def dist(cx: Context) -> Value:
    """The p-norm of the difference."""
    a, b = cx.operands("self", "other")
    far = xt.abs(xt.sub(a, b))
    return norm_over(far, tuple(range(rank_of(far))), float(cx.number("p")), False)


@aten("_pdist_forward")
def pdist(cx: Context) -> Value:
    """The p-norm of the difference of each two rows, one after the other."""
    x = cx.tensor("self")
    first, second = (xt.gather(x, rows, axis=0) for rows in _pairs(cx, x))
    return norm_over(xt.abs(xt.sub(first, second)), (1,), float(cx.get("p", 2)), False)


def _pairs(cx: Context, x: Value) -> tuple[Value, Value]:
    """The rows of each two, i64."""
    rows = xt.shape_of(x)[0]
    if not isinstance(rows, int):
        cx.fail(f"the number of rows, {rows}, must be known: use torch.cdist")
    first, second = (xt.constant(np.asarray(i, np.int64)) for i in np.triu_indices(rows, 1))
    return first, second


def _slopes(far: Value, distance: Value, p: float) -> Value:
    """The derivatives of the p-norm `distance` by each difference in `far`, of one more dim at the end; 0 at 0."""
    if p == 0:
        return full(xt.shape_of(far), 0, element(far))
    wide = unsqueeze(distance, [rank_of(distance)])
    size, side = xt.abs(far), xt.sign(far)
    if p == float("inf"):
        return xt.select(xt.compare(size, wide, direction="eq"), side, scalar(0, far))
    power = size if p == 2 else xt.pow(size, scalar(p - 1, far))
    below = wide if p == 2 else xt.pow(wide, scalar(p - 1, far))
    out = side if p == 1 else xt.mul(side, xt.div(power, below))
    zero = xt.compare(size if p < 1 else wide, scalar(0, far), direction="eq")
    return xt.select(zero, scalar(0, far), out)


@aten("_cdist_backward")
def cdist_backward(cx: Context) -> Value:
    """The gradient of x1; that of x2 is the op with the two exchanged."""
    a, b = cx.tensor("x1"), cx.tensor("x2")
    far = xt.sub(unsqueeze(a, [rank_of(a) - 1]), unsqueeze(b, [rank_of(b) - 2]))
    grad = cx.tensor("grad")
    each = xt.mul(_slopes(far, cx.tensor("cdist"), float(cx["p"])), unsqueeze(grad, [rank_of(grad)]))
    total = xt.reduce(each, kind="sum", axes=(rank_of(each) - 2,))
    wanted = cx.out().shape
    extra = rank_of(total) - len(wanted)
    stretched = tuple(d for d in range(extra, rank_of(total)) if wanted[d - extra] == 1 != xt.shape_of(total)[d])
    axes = (*range(extra), *stretched)      # batches along which x1 was repeated
    return xt.reshape(xt.reduce(total, kind="sum", axes=axes), shape=wanted) if axes else total


@aten("_pdist_backward")
def pdist_backward(cx: Context) -> Value:
    """Each pair's gradient, added to its first row and taken from its second."""
    x, grad = cx.tensor("self"), cx.tensor("grad")
    first, second = _pairs(cx, x)
    far = xt.sub(xt.gather(x, first, axis=0), xt.gather(x, second, axis=0))
    each = xt.mul(_slopes(far, cx.tensor("pdist"), float(cx["p"])), unsqueeze(grad, [1]))
    places, parts = xt.concatenate(first, second, axis=0), xt.concatenate(each, xt.neg(each), axis=0)
    return xt.scatter_nd(full(xt.shape_of(x), 0, element(x)), unsqueeze(places, [1]), parts, reduction="add")
