"""Losses."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, scalar, squeeze, unsqueeze


@onnx_op("NegativeLogLikelihoodLoss")
def negative_log_likelihood(cx: Context) -> Any:
    """loss = NLL(input [N, C, ...], target [N, ...], weight? [C])."""
    return _nll(cx, cx[0], cx[1], cx.optional(2))


@onnx_op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(cx: Context) -> Any:
    """loss, log_prob? = NLL of log-softmax over the classes."""
    scores = xt.log_softmax(cx[0], axis=1)
    return _nll(cx, scores, cx[1], cx.optional(2)), scores if cx.wants(1) else None


def _nll(cx: Context, scores: Any, target: Any, weight: Any) -> Any:
    target = convert(target, "i64")
    ignore = cx.attr("ignore_index")
    ignored = xt.compare(target, xt.scalar(ignore, "i64"), direction="eq") if ignore is not None else None
    safe = target if ignored is None else xt.select(ignored, scalar(0, target), target)
    picked = squeeze(xt.gather_elements(scores, unsqueeze(safe, [1]), axis=1), [1])
    factor = xt.gather(weight, safe, axis=0) if weight is not None else None
    if ignored is not None:
        ones = factor if factor is not None else scalar(1, scores)
        factor = xt.select(ignored, scalar(0, scores), ones)
    loss = xt.neg(picked if factor is None else xt.mul(picked, factor))
    reduction = cx.attr("reduction", "mean")
    if reduction == "none":
        return loss
    total = xt.reduce(loss, kind="sum")
    if reduction == "sum":
        return total
    if factor is None:
        shape = xt.shape_of(loss)
        size = symbolic.product(shape)
        return xt.div(total, convert(xt.dim(value=size), element(total)) if not isinstance(size, int)
                      else scalar(size, total))
    return xt.div(total, xt.reduce(xt.broadcast(factor, shape=xt.shape_of(loss)), kind="sum"))
