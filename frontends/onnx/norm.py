"""Normalisations and softmax."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import along, convert, element, full, mean, scalar
from xcc.frontends.shared.norms import affine_by_channel, inverse_deviation, moments


@onnx_op("Softmax", "LogSoftmax")
def softmax_flat(cx: Context) -> Value:
    """Before opset 13 the dims from `axis` on are one."""
    return softmax_over(cx[0], cx.axis(default=1), flat=True, log=cx.op == "LogSoftmax")


@onnx_op("Softmax", "LogSoftmax", since=13)
def softmax(cx: Context) -> Value:
    """output = Softmax(input, axis)."""
    return softmax_over(cx[0], cx.axis(default=-1), flat=False, log=cx.op == "LogSoftmax")


def softmax_over(x: Value, axis: int, flat: bool, log: bool = False) -> Value:
    """Over one axis; `flat`: over it and all behind it."""
    of, shape = xt.log_softmax if log else xt.softmax, xt.shape_of(x)
    if not flat or axis == len(shape) - 1:
        return of(x, axis=axis)
    rows = xt.reshape(x, shape=(symbolic.product(shape[:axis]), symbolic.product(shape[axis:])))
    return xt.reshape(of(rows, axis=1), shape=shape)


@onnx_op("BatchNormalization")
def batch_normalization(cx: Context) -> Value | tuple[Value, Value, Value]:
    """Y = (X - mean) / sqrt(var + eps) * scale + B, as one multiply and one add by channel."""
    x = cx[0]
    eps = cx.attr("epsilon", 1e-5)
    if cx.attr("training_mode", 0):
        return _batch_normalization_training(cx, x, eps)
    center, variance = (convert(cx[i], element(cx[3])) for i in (3, 4))
    return affine_by_channel(x, center, inverse_deviation(variance, eps), cx[1], cx[2])


def _batch_normalization_training(cx: Context, x: Value, eps: float) -> tuple[Value, Value, Value]:
    rank, momentum = cx.rank(0), cx.attr("momentum", 0.9)
    axes = tuple(i for i in range(rank) if i != 1)
    wide = convert(x, element(cx[3]))
    center = mean(wide, axes)
    difference = xt.sub(wide, center)
    variance = mean(xt.mul(difference, difference), axes)
    scaled = xt.mul(xt.mul(difference, xt.rsqrt(xt.add(variance, scalar(eps, variance)))),
                    along(convert(cx[1], element(wide)), 1, rank))
    y = convert(xt.add(scaled, along(convert(cx[2], element(wide)), 1, rank)), element(x))

    def running(old: Value, new: Value) -> Value:
        flat = xt.reshape(new, shape=xt.shape_of(old))
        return xt.add(xt.mul(old, scalar(momentum, old)), xt.mul(flat, scalar(1 - momentum, old)))

    return y, running(cx[3], center), running(cx[4], variance)


@onnx_op("InstanceNormalization")
def instance_normalization(cx: Context) -> Value:
    """Each channel of each sample on its own: group norm with a group a channel."""
    samples, channels, *spatial = cx.shape(0)
    eps = cx.attr("epsilon", 1e-5)
    if isinstance(channels, int):
        return xt.group_norm(cx[0], cx[1], cx[2], groups=channels, eps=eps)
    one, zero = (full((1,), v, element(cx[0])) for v in (1, 0))
    images = xt.reshape(cx[0], shape=(samples * channels, 1, *spatial))
    out = xt.reshape(xt.group_norm(images, one, zero, groups=1, eps=eps), shape=cx.shape(0))
    scale, bias = (along(cx[i], 1, cx.rank(0)) for i in (1, 2))
    return xt.add(xt.mul(out, scale), bias)


@onnx_op("GroupNormalization", since=18)
def group_normalization_by_group(cx: Context) -> Value:
    """Opset 18: scale and bias have an entry a group."""
    channels, groups = cx.shape(0)[1], cx.attr("num_groups")
    each = symbolic.floordiv(channels, groups)

    def spread(v: Value) -> Value:
        return xt.reshape(xt.broadcast(xt.reshape(v, shape=(groups, 1)), shape=(groups, each)), shape=(channels,))

    return xt.group_norm(cx[0], spread(cx[1]), spread(cx[2]), groups=groups, eps=cx.attr("epsilon", 1e-5))


@onnx_op("GroupNormalization", since=21)
def group_normalization(cx: Context) -> Value:
    """Y = GroupNormalization(X, scale, bias, num_groups), computed in stash_type."""
    x = cx[0]
    wide = convert(x, "f32") if cx.attr("stash_type", 1) == 1 and element(x) in ("f16", "bf16") else x
    scale, bias = (convert(cx[i], element(wide)) for i in (1, 2))
    return convert(xt.group_norm(wide, scale, bias, groups=cx.attr("num_groups"), eps=cx.attr("epsilon", 1e-5)),
                   element(x))


@onnx_op("LayerNormalization", since=17)
def layer_normalization(cx: Context) -> Value | tuple[Value, Value, Value]:
    """Y, Mean?, InvStdDev? = LayerNormalization(X, Scale, B?; axis, epsilon, stash_type)."""
    x = cx[0]
    axis = cx.axis(default=-1)
    axes = tuple(range(axis, cx.rank(0)))
    eps = cx.attr("epsilon", 1e-5)
    y = _normalized(cx, x, axes, eps)
    if not (cx.wants(1) or cx.wants(2)):
        return y
    center, variance = moments(convert(x, "f32"), axes)
    return y, center, inverse_deviation(variance, eps)


def _normalized(cx: Context, x: Value, axes: tuple[int, ...], eps: float) -> Value:
    scale, bias = cx[1], cx.optional(2)
    kinds = {element(v) for v in (scale, bias) if v is not None}
    if kinds == {element(x)}:
        return xt.layer_norm(x, scale, bias, axes=axes, eps=eps)
    plain = convert(xt.layer_norm(x, None, None, axes=axes, eps=eps), element(scale))
    out = xt.mul(plain, scale)
    return out if bias is None else xt.add(out, bias)


@onnx_op("RMSNormalization", since=23)
@onnx_op("SimplifiedLayerNormalization")
def rms_normalization(cx: Context) -> Value:
    """Y = X / sqrt(mean(X^2) + eps) * scale."""
    x = cx[0]
    axes = tuple(range(cx.axis(default=-1), cx.rank(0)))
    scale, eps = cx[1], cx.attr("epsilon", 1e-5)
    if element(scale) == element(x):
        return xt.rms_norm(x, scale, axes=axes, eps=eps)
    return xt.mul(convert(xt.rms_norm(x, None, axes=axes, eps=eps), element(scale)), scale)


@onnx_op("LRN")
def local_response(cx: Context) -> Value:
    return xt.lrn(cx[0], size=cx.attr("size"), alpha=cx.attr("alpha", 1e-4), beta=cx.attr("beta", 0.75),
                  bias=cx.attr("bias", 1.0))


@onnx_op("LpNormalization")
def lp_normalization(cx: Context) -> Value:
    """x / |x|_p along `axis`; 0 where the norm is 0."""
    x, axis = cx[0], cx.axis(default=-1)
    if cx.attr("p", 2) == 1:
        norm = xt.reduce(xt.abs(x), kind="sum", axes=(axis,), keepdims=True)
    else:
        norm = xt.sqrt(xt.reduce(xt.mul(x, x), kind="sum", axes=(axis,), keepdims=True))
    zero = xt.compare(norm, scalar(0, norm), direction="eq")
    return xt.select(zero, scalar(0, x), xt.div(x, xt.select(zero, scalar(1, norm), norm)))


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization(cx: Context) -> Value:
    """(X - mean) / (sqrt(variance) + 1e-9) over `axes`."""
    x = cx[0]
    axes = tuple(cx.normal_axis(a) for a in cx.attr("axes", [0, 2, 3]))
    center = mean(x, axes)
    difference = xt.sub(x, center)
    deviation = xt.sqrt(mean(xt.mul(difference, difference), axes))
    return xt.div(difference, xt.add(deviation, scalar(1e-9, x)))


