"""softmax, log_softmax, layer_norm, rms_norm, group_norm and lrn."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import column, const, mean, shape, total, widened
from xcc.symbolic import product


@decomposes("softmax")
def softmax(a: Attrs, x: Value) -> Value:
    """e = exp(x - max x); e / sum e."""

    def f(v: Value) -> Value:
        e = xt.exp(xt.sub(v, xt.reduce(v, kind="max", axes=(a.axis,), keepdims=True)))
        return xt.div(e, total(e, (a.axis,)))

    return widened(f, x)


@decomposes("log_softmax")
def log_softmax(a: Attrs, x: Value) -> Value:
    """y = x - max x; y - log(sum(exp y))."""

    def f(v: Value) -> Value:
        y = xt.sub(v, xt.reduce(v, kind="max", axes=(a.axis,), keepdims=True))
        return xt.sub(y, xt.log(total(xt.exp(y), (a.axis,))))

    return widened(f, x)


def _normalized(v: Value, axes: tuple[int, ...], eps: float, centred: bool) -> Value:
    y = xt.sub(v, mean(v, axes)) if centred else v
    variance = mean(xt.mul(y, y), axes)
    return xt.mul(y, xt.rsqrt(xt.add(variance, const(eps, variance))))


def _affine(y: Value, scale: Value | None, bias: Value | None) -> Value:
    y = y if scale is None else xt.mul(y, scale)
    return y if bias is None else xt.add(y, bias)


@decomposes("layer_norm")
def layer_norm(a: Attrs, x: Value, scale: Value, bias: Value) -> Value:
    """y = x - mean x; y * rsqrt(mean y^2 + eps) * scale + bias."""
    return widened(lambda v, s, b: _affine(_normalized(v, a.axes, a.eps, True), s, b), x, scale, bias)


@decomposes("rms_norm")
def rms_norm(a: Attrs, x: Value, scale: Value) -> Value:
    """x * rsqrt(mean x^2 + eps) * scale."""
    return widened(lambda v, s: _affine(_normalized(v, a.axes, a.eps, False), s, None), x, scale)


@decomposes("group_norm")
def group_norm(a: Attrs, x: Value, scale: Value | None, bias: Value | None) -> Value:
    """Mean and rsqrt(variance + eps) of groups, then (x - mean) * rsqrt * scale + bias a channel: what goes through
    memory between the two has an element a channel."""
    dims = shape(x)

    def channels(t: Value) -> Value:
        """[N, groups, 1] as [N, channels, 1, ...], or [N, 1, ..., channels]."""
        each = xt.broadcast(t, shape=(dims[0], a.groups, dims[a.axis] // a.groups))
        return xt.reshape(each, shape=[n if d in (0, a.axis) else 1 for d, n in enumerate(dims)])

    def f(v: Value, grouped: Value, *affine: Value) -> Value:
        middle, variance = _moments(grouped) if a.axis == 1 else _moments_of_columns(v, a.groups)
        scaled = xt.rsqrt(xt.add(variance, const(a.eps, v)))
        return _affine(xt.mul(xt.sub(v, channels(middle)), channels(scaled)),
                       *(None if t is None else column(t, a.axis, len(dims)) for t in affine))

    return widened(f, x, xt.reshape(x, shape=(dims[0], a.groups, product(dims[1:]) // a.groups)), scale, bias)


def _moments(grouped: Value) -> tuple[Value, Value]:
    """Mean and variance of [N, groups, rest] over the rest."""
    middle = mean(grouped, (2,))
    y = xt.sub(grouped, middle)
    return middle, mean(xt.mul(y, y), (2,))


def _moments_of_columns(v: Value, groups: int) -> tuple[Value, Value]:
    """Mean and variance [N, groups, 1] of [N, ..., channels]: those of each channel, and then of its group."""
    dims = shape(v)
    between = tuple(range(1, len(dims) - 1))
    middle = mean(v, between)
    y = xt.sub(v, middle)
    middles, variances = (xt.reshape(t, shape=(dims[0], groups, dims[-1] // groups))
                          for t in (middle, mean(xt.mul(y, y), between)))
    mean_of_group, variance = _moments(middles)
    return mean_of_group, xt.add(variance, mean(variances, (2,)))


@decomposes("lrn")
def lrn(a: Attrs, x: Value) -> Value:
    """x * (bias + alpha/size * window sum of x^2 over channels)^-beta."""
    rank = len(shape(x))

    def along(value: int) -> list[int]:
        return [value if d == 1 else 0 for d in range(rank)]

    def f(v: Value) -> Value:
        window = [a.size if d == 1 else 1 for d in range(rank)]
        around = xt.reduce_window(xt.mul(v, v), kind="sum", window=window, low=along((a.size - 1) // 2),
                                  high=along(a.size // 2))
        base = xt.add(xt.mul(around, const(a.alpha / a.size, v)), const(a.bias, v))
        return xt.mul(v, xt.pow_(base, const(-a.beta, v)))

    return widened(f, x)
