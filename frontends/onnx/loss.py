"""Losses."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, count, element, rank_of
from xcc.frontends.shared.losses import picked_loss, total, weight_sum


@onnx_op("NegativeLogLikelihoodLoss")
def negative_log_likelihood(cx: Context) -> Value:
    """loss = NLL(input [N, C, ...], target [N, ...], weight? [C])."""
    return _nll(cx, cx[0], cx[1], cx.optional(2))


@onnx_op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(cx: Context) -> tuple[Value, Value | None]:
    """loss, log_prob? = NLL of log-softmax over the classes."""
    scores = xt.log_softmax(cx[0], axis=1)
    return _nll(cx, scores, cx[1], cx.optional(2)), scores if cx.wants(1) else None


def _nll(cx: Context, scores: Value, target: Value, weight: Value | None) -> Value:
    loss, factor = picked_loss(scores, convert(target, "i64"), weight, cx.attr("ignore_index"))
    reduction = cx.attr("reduction", "mean")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return total(loss)
    divisor = count(loss, range(rank_of(loss)), element(loss)) if factor is None else weight_sum(factor, loss)
    return xt.div(total(loss), divisor)
