"""Losses; reduction 0 is none, 1 the mean, 2 the sum."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, count, element, rank_of, scalar, squeeze, unsqueeze
from xcc.frontends.shared.losses import picked_loss, total, weight_sum
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.promotion import promote
from xcc.frontends.torch.registry import aten

NONE, MEAN, SUM = 0, 1, 2


def reduced(cx: Context, loss: Value) -> Value:
    """The loss by the node's reduction."""
    kind = int(cx["reduction"])
    if kind == NONE:
        return loss
    out = total(loss)
    return xt.div(out, count(loss, range(rank_of(loss)), element(loss))) if kind == MEAN else out


@aten("nll_loss_forward", "nll_loss2d_forward")
def nll_loss(cx: Context) -> tuple[Value, Value]:
    """-weight[target] * self[target], and the sum of the weights: of all that are not `ignore_index`."""
    x, target, weight = cx.tensor("self"), convert(cx.tensor("target"), "i64"), cx.optional("weight")
    alone = rank_of(x) == 1
    if alone:
        x, target = unsqueeze(x, [0]), xt.reshape(target, shape=(1,))
    loss, factor = picked_loss(x, target, weight, int(cx.number("ignore_index")))
    weights = weight_sum(factor, loss)
    kind = int(cx["reduction"])
    if kind == NONE:
        return (squeeze(loss, [0]) if alone else loss), scalar(0, x)
    return xt.div(total(loss), weights) if kind == MEAN else total(loss), weights


@aten("mse_loss", "smooth_l1_loss", "huber_loss")
def distance_loss(cx: Context) -> Value:
    """Of the difference d: d^2, and two that are square near 0 and straight outside."""
    a, b = cx.operands("self", "target", dtype=cx.out().dtype)
    op = cx.node.op.split(".")[1]
    d = xt.sub(a, b)
    if op == "mse_loss":
        return reduced(cx, xt.mul(d, d))
    d = xt.abs(d)
    if op == "smooth_l1_loss" and cx["beta"] == 0:
        return reduced(cx, d)
    edge = cx.scalar(cx["beta" if op == "smooth_l1_loss" else "delta"], d)
    half = scalar(0.5, d)
    square, straight = xt.mul(half, xt.mul(d, d)), xt.sub(d, xt.mul(half, edge))
    square, straight = (xt.div(square, edge), straight) if op == "smooth_l1_loss" else (square, xt.mul(edge, straight))
    return reduced(cx, xt.select(xt.compare(d, edge, direction="lt"), square, straight))


@aten("binary_cross_entropy")
def binary_cross_entropy(cx: Context) -> Value:
    """-weight * (t log p + (1 - t) log(1 - p)), logarithms -100 at least."""
    p, t = cx.tensor("self"), cx.tensor("target")
    least = scalar(-100, p)
    yes, no = xt.maximum(xt.log(p), least), xt.maximum(xt.log1p(xt.neg(p)), least)
    loss = xt.sub(xt.mul(xt.sub(t, scalar(1, t)), no), xt.mul(t, yes))
    return reduced(cx, _weighed(cx, loss))


def _weighed(cx: Context, loss: Value) -> Value:
    """The loss times the node's weight, of the type that torch gives the result."""
    weight = cx.optional("weight")
    return convert(loss if weight is None else _times(loss, weight), cx.out().dtype)


def _times(x: Value, factor: Value) -> Value:
    """x * factor in the wider of their types."""
    kind = promote(element(x), element(factor))
    return xt.mul(convert(x, kind), convert(factor, kind))


@aten("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(cx: Context) -> Value:
    """weight * ((1 - t) x + (1 + (pos_weight - 1) t) * softplus(-x)); factors may be of a wider type."""
    x, t = cx.operands("self", "target")
    one = scalar(1, x)
    soft = xt.add(xt.maximum(xt.neg(x), scalar(0, x)), xt.log1p(xt.exp(xt.neg(xt.abs(x)))))
    positive, loss = cx.optional("pos_weight"), xt.mul(xt.sub(one, t), x)
    if positive is not None:
        positive = convert(positive, promote(element(positive), element(t)))
        more = xt.sub(positive, scalar(1, positive))
        soft = _times(soft, xt.add(scalar(1, more), _times(t, more)))
    return reduced(cx, _weighed(cx, xt.add(convert(loss, element(soft)), soft)))
