"""Element-wise ops."""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.element_types import is_floating
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, scalar

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


def _unary(builder: str) -> Callable[[Context], Value]:
    return lambda cx: getattr(xt, builder)(cx[0])


def _binary(builder: str) -> Callable[[Context], Value]:
    return lambda cx: getattr(xt, builder)(cx[0], _right(cx))


def _right(cx: Context) -> Value:
    """The second operand; before opset 7 `axis` says where its dims lie, without one they lie last."""
    if cx.opset >= 7 or cx.attr("axis") is None:
        return cx[1]
    after = cx.rank(0) - cx.attr("axis") - cx.rank(1)
    return xt.reshape(cx[1], shape=(*cx.shape(1), *[1] * after))


def _comparison(direction: str) -> Callable[[Context], Value]:
    return lambda cx: xt.compare(cx[0], _right(cx), direction=direction)


def _fold(builder: str) -> Callable[[Context], Value]:
    def convert_all(cx: Context) -> Value:
        values = cx.values()
        out = values[0]
        for value in values[1:]:
            out = getattr(xt, builder)(out, value)
        return out

    return convert_all


for _op, _name in _UNARY.items():
    onnx_op(_op)(_unary(_name))
for _op, _name in _BINARY.items():
    onnx_op(_op, broadcasts=True)(_binary(_name))
for _op, _name in _COMPARE.items():
    onnx_op(_op, broadcasts=True)(_comparison(_name))
for _op, _name in _VARIADIC.items():
    onnx_op(_op, broadcasts=True)(_fold(_name))


@onnx_op("Mean", broadcasts=True)
def mean_of(cx: Context) -> Value:
    """mean = Mean(data_0, ...): element-wise, with broadcasting."""
    total = _fold("add")(cx)
    return xt.div(total, scalar(len(cx), total))


@onnx_op("Pow", broadcasts=True)
def power(cx: Context) -> Value:
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


@onnx_op("Mod", broadcasts=True)
def modulo(cx: Context) -> Value:
    """C = Mod(A, B, fmod): the sign of B for integers, the sign of A with fmod=1."""
    return (xt.rem if cx.attr("fmod", 0) else xt.mod)(cx[0], cx[1])


@onnx_op("BitShift", broadcasts=True)
def bit_shift(cx: Context) -> Value:
    """Z = BitShift(X, Y, direction)."""
    return (xt.shift_left if cx.attr("direction") == "LEFT" else xt.shift_right)(cx[0], cx[1])


@onnx_op("Where", broadcasts=True)
def where(cx: Context) -> Value:
    """output = Where(condition, X, Y)."""
    return xt.select(cx[0], cx[1], cx[2])


@onnx_op("IsNaN")
def is_nan(cx: Context) -> Value:
    return xt.is_nan(cx[0])


@onnx_op("IsInf")
def is_inf(cx: Context) -> Value:
    return xt.is_inf(cx[0], detect_positive=bool(cx.attr("detect_positive", 1)),
                     detect_negative=bool(cx.attr("detect_negative", 1)))
