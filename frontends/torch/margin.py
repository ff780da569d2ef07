"""Gradients of losses that want the score of a target above the others by a margin; torch decomposes the losses."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, element, scalar, unsqueeze
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.loss import MEAN, NONE
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


def _rows(x: Value) -> Value:
    """The scores as [samples, classes]."""
    shape = xt.shape_of(x)
    return x if len(shape) == 2 else xt.reshape(x, shape=(1, shape[0] if shape else 1))


def _each_grad(cx: Context, rows: Dim, classes: Dim) -> Value:
    """By what the derivative of each sample's sum over classes is multiplied, [samples, 1]."""
    grad = cx.tensor("grad_output")
    each = xt.reshape(grad, shape=(rows if cx["reduction"] == NONE else 1, 1))
    count = dim_scalar(classes * rows if cx["reduction"] == MEAN else classes, element(grad))
    return xt.broadcast(xt.div(each, count), shape=(rows, 1))


@aten("multi_margin_loss_backward")
def multi_margin_loss_backward(cx: Context) -> Value:
    """The loss is the mean over classes of max(0, margin - x[target] + x[i])^p, of all but the target, times its
    weight: each score that is too high has the slope, and the target what takes all of these back."""
    x = _rows(cx.tensor("self"))
    rows, classes = xt.shape_of(x)
    target = xt.reshape(convert(cx.tensor("target"), "i64"), shape=(rows, 1))
    far = xt.add(xt.sub(cx.scalar(cx.number("margin"), x), xt.gather_elements(x, target, axis=1)), x)
    here = xt.compare(xt.iota(shape=(1, classes), axis=1, dtype="i64"), target, direction="eq")
    far = xt.select(here, scalar(0, x), xt.maximum(far, scalar(0, x)))
    slope = convert(xt.compare(far, scalar(0, x), direction="gt"), element(x)) if cx["p"] == 1 \
        else xt.mul(far, scalar(2, x))
    slope = xt.mul(slope, _each_grad(cx, rows, classes))
    weight = cx.optional("weight")
    slope = slope if weight is None else xt.mul(slope, xt.gather(weight, target, axis=0))
    own = xt.neg(xt.reduce(slope, kind="sum", axes=(1,), keepdims=True))
    return xt.reshape(xt.scatter_elements(slope, target, own, axis=1, reduction="add"), shape=cx.shape("self"))


@aten("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(cx: Context) -> Value:
    """The loss is the mean over classes of max(0, 1 - x[t] + x[i]) of all targets t, which end at -1, and classes i
    that are none: each pair that counts gives its sample's gradient to the class, and takes it from the target."""
    x, target = _rows(cx.tensor("self")), _rows(convert(cx.tensor("target"), "i64"))
    none, is_target = scalar(0, target), _rows(cx.tensor("is_target"))
    ended = xt.cumulative(convert(xt.compare(target, none, direction="lt"), "i64"), kind="sum", axis=1)
    live = xt.compare(ended, none, direction="eq")
    places = xt.select(live, target, none)
    far = xt.sub(xt.add(unsqueeze(x, [1]), scalar(1, x)), unsqueeze(xt.gather_elements(x, places, axis=1), [2]))
    others = xt.compare(unsqueeze(is_target, [1]), scalar(0, is_target), direction="eq")
    counts = xt.and_(xt.and_(unsqueeze(live, [2]), others), xt.compare(far, scalar(0, x), direction="gt"))
    slope = xt.mul(convert(counts, element(x)), unsqueeze(_each_grad(cx, *xt.shape_of(x)), [2]))
    own = xt.neg(xt.reduce(slope, kind="sum", axes=(2,)))
    out = xt.scatter_elements(xt.reduce(slope, kind="sum", axes=(1,)), places, own, axis=1, reduction="add")
    return xt.reshape(out, shape=cx.shape("self"))
