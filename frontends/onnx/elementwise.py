"""Element-wise ops and activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.dialects import xt
from xcc.dialects.xt.types import dtype_name
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.element_types import bits, from_onnx, is_floating, is_unsigned
from xcc.frontends.onnx.helpers import along, convert, element, relu, scalar
from xcc.frontends.onnx.registry import onnx_op

_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "not_", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "Log": "log", "Neg": "neg", "Not": "not_", "Reciprocal": "reciprocal", "Round": "round", "Sigmoid": "sigmoid",
    "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}
_BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "And": "and_", "Or": "or_", "Xor": "xor",
    "BitwiseAnd": "and_", "BitwiseOr": "or_", "BitwiseXor": "xor",
}
_COMPARE = {"Equal": "eq", "Greater": "gt", "Less": "lt", "GreaterOrEqual": "ge", "LessOrEqual": "le"}
_VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _unary(builder: str) -> Callable[[Context], Any]:
    return lambda cx: getattr(xt, builder)(cx[0])


def _binary(builder: str) -> Callable[[Context], Any]:
    return lambda cx: getattr(xt, builder)(cx[0], _right(cx))


def _right(cx: Context) -> Any:
    """The second operand; before opset 7 `axis` says where its dims lie, without one they lie last."""
    if cx.opset >= 7 or cx.attr("axis") is None:
        return cx[1]
    after = cx.rank(0) - cx.attr("axis") - cx.rank(1)
    return xt.reshape(cx[1], shape=(*cx.shape(1), *[1] * after))


def _comparison(direction: str) -> Callable[[Context], Any]:
    return lambda cx: xt.compare(cx[0], _right(cx), direction=direction)


def _fold(builder: str) -> Callable[[Context], Any]:
    def convert_all(cx: Context) -> Any:
        values = cx.values()
        out = values[0]
        for value in values[1:]:
            out = getattr(xt, builder)(out, value)
        return out

    return convert_all


for _op, _name in _UNARY.items():
    onnx_op(_op)(_unary(_name))
for _op, _name in _BINARY.items():
    onnx_op(_op)(_binary(_name))
for _op, _name in _COMPARE.items():
    onnx_op(_op)(_comparison(_name))
for _op, _name in _VARIADIC.items():
    onnx_op(_op)(_fold(_name))


@onnx_op("Mean")
def mean_of(cx: Context) -> Any:
    """mean = Mean(data_0, ...): element-wise, with broadcasting."""
    total = _fold("add")(cx)
    return xt.div(total, scalar(len(cx), total))


@onnx_op("Pow")
def power(cx: Context) -> Any:
    """Z = Pow(X, Y): the result has X's type; whole-number exponents of floats stay exact."""
    x = cx[0]
    exponent = cx.tensor(1).const
    if exponent is not None and exponent.size == 1 and is_floating(cx.dtype(0)) and exponent.ndim <= cx.rank(0):
        value = float(exponent.reshape(()).item())
        if value == 2.0:
            return xt.mul(x, x)
        if value == 3.0:
            return xt.mul(xt.mul(x, x), x)
        if value == 0.5:
            return xt.sqrt(x)
    if is_floating(cx.dtype(1)) and not is_floating(cx.dtype(0)):
        y = cx[1]
        return convert(xt.pow(convert(x, element(y)), y), element(x))
    return xt.pow(x, convert(_right(cx), element(x)))


@onnx_op("Mod")
def modulo(cx: Context) -> Any:
    """C = Mod(A, B, fmod): the sign of B for integers, the sign of A with fmod=1."""
    return (xt.rem if cx.attr("fmod", 0) else xt.mod)(cx[0], cx[1])


@onnx_op("BitShift")
def bit_shift(cx: Context) -> Any:
    """Z = BitShift(X, Y, direction)."""
    return (xt.shift_left if cx.attr("direction") == "LEFT" else xt.shift_right)(cx[0], cx[1])


@onnx_op("Where")
def where(cx: Context) -> Any:
    """output = Where(condition, X, Y)."""
    return xt.select(cx[0], cx[1], cx[2])


@onnx_op("IsNaN")
def is_nan(cx: Context) -> Any:
    return xt.is_nan(cx[0])


@onnx_op("IsInf")
def is_inf(cx: Context) -> Any:
    return xt.is_inf(cx[0], detect_positive=bool(cx.attr("detect_positive", 1)),
                     detect_negative=bool(cx.attr("detect_negative", 1)))


@onnx_op("Cast")
def cast(cx: Context) -> Any:
    """output = Cast(input, to, saturate)."""
    return _cast(cx, cx[0], from_onnx(cx.attr("to")))


@onnx_op("CastLike")
def cast_like(cx: Context) -> Any:
    return _cast(cx, cx[0], cx.dtype(1))


def _cast(cx: Context, x: Any, target: np.dtype[Any]) -> Any:
    float8 = is_floating(target) and target.itemsize == 1
    if dtype_name(target) == "f8E8M0FNU":
        return _to_power_of_two(convert(x, "f32"), cx.attr("round_mode", "up"), bool(cx.attr("saturate", 1)))
    if float8 and cx.attr("saturate", 1):
        return xt.convert(x, dtype=target, saturate=True)
    if bits(target) in (2, 4) and is_floating(cx.dtype(0)):  # wraps, where a direct conversion clamps
        return xt.convert(convert(x, "i32"), dtype=target)
    return convert(x, target)


def _to_power_of_two(x: Any, mode: str, saturate: bool) -> Any:
    """f32 to f8E8M0FNU, which is an exponent alone: the bits of x rounded up, down or to nearest."""
    word = xt.bitcast(xt.abs(x), dtype="ui32")
    step = {"up": (1 << 23) - 1, "down": 0, "nearest": 1 << 22}[mode]
    exponent = xt.shift_right(xt.add(word, scalar(step, word)), scalar(23, word))
    if saturate:
        exponent = xt.minimum(exponent, scalar(254, exponent))
    special = xt.not_(xt.is_finite(x)) if not saturate else xt.is_nan(x)
    exponent = xt.select(special, scalar(255, exponent), exponent)
    return xt.bitcast(convert(exponent, "ui8"), dtype="f8E8M0FNU")


@onnx_op("BitCast")
def bit_cast(cx: Context) -> Any:
    target = from_onnx(cx.attr("to"))
    if element(cx[0]) == "i1":
        return xt.bitcast(convert(cx[0], "ui8"), dtype=target)
    if target == np.bool_:
        return convert(xt.bitcast(cx[0], dtype="ui8"), "i1")
    return xt.bitcast(cx[0], dtype=target)


@onnx_op("Clip")
def clip_attributes(cx: Context) -> Any:
    """Y = Clip(X, min, max), bounds as attributes."""
    x = xt.maximum(cx[0], scalar(cx.attr("min"), cx[0])) if cx.attr("min") is not None else cx[0]
    return xt.minimum(x, scalar(cx.attr("max"), x)) if cx.attr("max") is not None else x


@onnx_op("Clip", since=11)
def clip_operands(cx: Context) -> Any:
    """Y = Clip(X, min?, max?)."""
    x = xt.maximum(cx[0], cx[1]) if cx.has(1) else cx[0]
    return xt.minimum(x, cx[2]) if cx.has(2) else x


@onnx_op("Relu")
def relu_(cx: Context) -> Any:
    return relu(cx[0])


@onnx_op("LeakyRelu")
def leaky_relu(cx: Context) -> Any:
    x = cx[0]
    return xt.select(xt.compare(x, scalar(0, x), direction="lt"), xt.mul(x, scalar(cx.attr("alpha", 0.01), x)), x)


@onnx_op("PRelu")
def parametric_relu(cx: Context) -> Any:
    x, slope = cx[0], cx[1]
    if cx.opset < 7 and cx.rank(1) == 1 and cx.shape(1) != (1,):  # one slope a channel
        slope = along(slope, 1, cx.rank(0))
    return xt.select(xt.compare(x, scalar(0, x), direction="lt"), xt.mul(x, slope), x)


@onnx_op("ThresholdedRelu")
def thresholded_relu(cx: Context) -> Any:
    x = cx[0]
    return xt.select(xt.compare(x, scalar(cx.attr("alpha", 1.0), x), direction="gt"), x, scalar(0, x))


@onnx_op("Elu")
def elu(cx: Context) -> Any:
    """x if x > 0 else alpha * (e^x - 1)."""
    x = cx[0]
    return _positive_or(x, xt.mul(scalar(cx.attr("alpha", 1.0), x), xt.expm1(x)))


@onnx_op("Celu")
def celu(cx: Context) -> Any:
    """max(0, x) + min(0, alpha * (e^(x/alpha) - 1))."""
    x = cx[0]
    alpha = scalar(cx.attr("alpha", 1.0), x)
    return xt.add(relu(x), xt.minimum(scalar(0, x), xt.mul(alpha, xt.expm1(xt.div(x, alpha)))))


@onnx_op("Selu")
def selu(cx: Context) -> Any:
    """gamma * (x if x > 0 else alpha * (e^x - 1))."""
    x = cx[0]
    inner = _positive_or(x, xt.mul(scalar(cx.attr("alpha", 1.67326319217681884765625), x), xt.expm1(x)))
    return xt.mul(scalar(cx.attr("gamma", 1.05070102214813232421875), x), inner)


def _positive_or(x: Any, other: Any) -> Any:
    return xt.select(xt.compare(x, scalar(0, x), direction="gt"), x, other)


@onnx_op("HardSigmoid")
def hard_sigmoid(cx: Context) -> Any:
    """max(0, min(1, alpha * x + beta))."""
    return _hard_sigmoid(cx[0], cx.attr("alpha", 0.2), cx.attr("beta", 0.5))


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    line = xt.add(xt.mul(x, scalar(alpha, x)), scalar(beta, x))
    return xt.minimum(xt.maximum(line, scalar(0, x)), scalar(1, x))


@onnx_op("HardSwish")
def hard_swish(cx: Context) -> Any:
    return xt.mul(cx[0], _hard_sigmoid(cx[0], 1 / 6, 0.5))


@onnx_op("Swish")
def swish(cx: Context) -> Any:
    """x * sigmoid(alpha * x)."""
    x, alpha = cx[0], cx.attr("alpha", 1.0)
    return xt.mul(x, xt.sigmoid(x if alpha == 1.0 else xt.mul(x, scalar(alpha, x))))


@onnx_op("Mish")
def mish(cx: Context) -> Any:
    """x * tanh(softplus(x))."""
    return xt.mul(cx[0], xt.tanh(_softplus(cx[0])))


@onnx_op("Softplus")
def softplus(cx: Context) -> Any:
    return _softplus(cx[0])


def _softplus(x: Any) -> Any:
    """log(1 + e^x) as max(x, 0) + log1p(e^-|x|), which does not overflow."""
    return xt.add(relu(x), xt.log1p(xt.exp(xt.neg(xt.abs(x)))))


@onnx_op("Softsign")
def softsign(cx: Context) -> Any:
    x = cx[0]
    return xt.div(x, xt.add(scalar(1, x), xt.abs(x)))


@onnx_op("Shrink")
def shrink(cx: Context) -> Any:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    x, bias, limit = cx[0], cx.attr("bias", 0.0), cx.attr("lambd", 0.5)
    if is_unsigned(cx.dtype(0)):
        cx.fail("Shrink of unsigned integers is not supported")
    low = xt.compare(x, scalar(-limit, x), direction="lt")
    high = xt.compare(x, scalar(limit, x), direction="gt")
    inner = xt.select(high, xt.sub(x, scalar(bias, x)), scalar(0, x))
    return xt.select(low, xt.add(x, scalar(bias, x)), inner)


@onnx_op("Gelu", since=20)
@onnx_op("Gelu", "FastGelu", domain="com.microsoft")
def gelu(cx: Context) -> Any:
    """x/2 * (1 + erf(x / sqrt 2)), or its tanh approximation."""
    x = cx[0]
    fast = cx.op == "FastGelu"
    if fast and cx.has(1):
        x = xt.add(x, cx[1])
    return xt.gelu(x, approximate="tanh" if fast else cx.attr("approximate", "none"))


@onnx_op("BiasGelu", domain="com.microsoft")
def bias_gelu(cx: Context) -> Any:
    return xt.gelu(xt.add(cx[0], cx[1]), approximate="none")


@onnx_op("QuickGelu", domain="com.microsoft")
def quick_gelu(cx: Context) -> Any:
    x = cx[0]
    return xt.mul(x, xt.sigmoid(xt.mul(x, scalar(cx.attr("alpha", 1.702), x))))


@onnx_op("Dropout")
def dropout(cx: Context) -> Any:
    """Inference: the identity; the mask is all true."""
    if cx.op == "Dropout" and cx.has(2):
        training = cx.tensor(2).const
        ratio = cx.tensor(1).const if cx.has(1) else np.array(0.5)
        if training is None or (bool(training.reshape(-1)[0]) and (ratio is None or float(ratio.reshape(-1)[0]) > 0)):
            return _dropout_training(cx)
    mask_type = np.bool_ if cx.opset >= 10 else cx.dtype(0)
    mask = xt.broadcast(xt.scalar(1, np.dtype(mask_type)), shape=cx.shape(0)) if cx.wants(1) else None
    return cx.tensor(0), mask


def _dropout_training(cx: Context) -> Any:
    x = cx[0]
    ratio = convert(cx[1], element(x)) if cx.has(1) else scalar(0.5, x)
    seed = cx.attr("seed")
    noise = xt.random_uniform(shape=cx.shape(0), low=0.0, high=1.0, seed=0 if seed is None else int(seed), dtype="f32")
    mask = xt.compare(noise, convert(ratio, "f32"), direction="ge")
    if cx.has(2):
        mask = xt.or_(mask, xt.not_(cx[2]))
        ratio = xt.select(cx[2], ratio, scalar(0, x))
    kept = xt.div(x, xt.sub(scalar(1, x), ratio))
    return xt.select(mask, kept, scalar(0, x)), mask if cx.wants(1) else None


