"""Element-wise ops."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, pi

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, element
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.promotion import category
from xcc.frontends.torch.registry import aten

_UNARY = {      # computed in the result's type: a float where torch makes floats of integers
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh",
    "bitwise_not": "not_", "cos": "cos", "cosh": "cosh", "erf": "erf", "exp": "exp",
    "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "neg": "neg",
    "reciprocal": "reciprocal", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt",
    "tan": "tan", "tanh": "tanh",
}
_WHOLE = {"ceil": "ceil", "floor": "floor", "round": "round", "trunc": "trunc"}
_BINARY = {
    "atan2.default": "atan2", "bitwise_and.Tensor": "and_", "bitwise_and.Scalar": "and_",
    "bitwise_or.Tensor": "or_", "bitwise_or.Scalar": "or_", "bitwise_xor.Tensor": "xor", "bitwise_xor.Scalar": "xor",
    "div.Tensor": "div", "div.Scalar": "div", "fmod.Tensor": "rem", "fmod.Scalar": "rem",
    "maximum.default": "maximum", "minimum.default": "minimum", "mul.Tensor": "mul", "mul.Scalar": "mul",
    "nextafter.default": "next_after", "remainder.Tensor": "mod", "remainder.Scalar": "mod",
    "true_divide.Tensor": "div", "true_divide.Scalar": "div",
}
_BINARY |= {f"{name}.Scalar_Tensor": _BINARY[f"{name}.Tensor"]
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "remainder")}
_COMPARE = ("eq", "ge", "gt", "le", "lt", "ne")
_IN_HALF = ("f16", "i16", "i8", "ui8", "i1")      # types whose values f16 has, rounded
_LOGICAL = {"logical_and": "and_", "logical_or": "or_", "logical_xor": "xor"}


def _unary(builder: str) -> Callable[[Context], Value]:
    return lambda cx: getattr(xt, builder)(convert(cx.tensor("self"), cx.out().dtype))


def _whole(builder: str) -> Callable[[Context], Value]:
    def rounded(cx: Context) -> Value:
        x = cx.tensor("self")
        return getattr(xt, builder)(x) if category(element(x)) == 2 else x

    return rounded


def _binary(builder: str) -> Callable[[Context], Value]:
    def computed(cx: Context) -> Value:
        kind = cx.out().dtype
        name = "and_" if builder == "mul" and kind == "i1" else builder
        return getattr(xt, name)(*cx.operands("self", "other", dtype=kind))

    return computed


def _scaled(builder: str) -> Callable[[Context], Value]:
    """A product or quotient; torch multiplies f16 by numbers and tensors of rank 0 in f32."""
    own = _binary(builder)

    def computed(cx: Context) -> Value:
        if cx.out().dtype != "f16" or all(_fits_half(cx[n]) for n in ("self", "other")):
            return own(cx)
        return convert(getattr(xt, builder)(*cx.operands("self", "other", dtype="f32")), "f16")

    return computed


def _fits_half(factor: object) -> bool:
    """Whether f16 has a factor in its own precision."""
    if isinstance(factor, int | float):
        return not isfinite(factor) or factor == 0 or 2.0 ** -14 <= abs(factor) < 65520
    return isinstance(factor, Value) and (bool(xt.shape_of(factor)) or element(factor) in _IN_HALF)


def _compare(direction: str) -> Callable[[Context], Value]:
    def compared(cx: Context) -> Value:
        return xt.compare(*cx.operands("self", "other"), direction=direction)

    return compared


def truth(x: Value) -> Value:
    """i1: where `x` is not zero."""
    return x if element(x) == "i1" else xt.compare(x, xt.scalar(0, element(x)), direction="ne")


def _logical(builder: str) -> Callable[[Context], Value]:
    return lambda cx: getattr(xt, builder)(truth(cx.tensor("self")), truth(cx.tensor("other")))


for _op, _name in _UNARY.items():
    aten(_op)(_unary(_name))
for _op, _name in _WHOLE.items():
    aten(_op)(_whole(_name))
for _op, _name in _BINARY.items():
    aten(_op)((_scaled if _name in ("mul", "div") else _binary)(_name))
for _op in _COMPARE:
    aten(f"{_op}.Tensor", f"{_op}.Scalar")(_compare(_op))
for _op, _name in _LOGICAL.items():
    aten(_op)(_logical(_name))


@aten("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar")
def add(cx: Context) -> Value:
    """self + alpha * other; - for sub; rsub is other - alpha * self."""
    kind = cx.out().dtype
    left, right = cx.operands("self", "other", dtype=kind)
    op = cx.node.op.split(".")[1]
    if op == "rsub":
        left, right = right, left
    alpha = cx.get("alpha", 1)
    if kind == "i1":
        return xt.or_(left, xt.and_(right, cx.value_of(alpha, kind)))
    if alpha != 1:
        right = xt.mul(right, cx.value_of(alpha, kind))
    return xt.add(left, right) if op == "add" else xt.sub(left, right)


@aten("logical_not")
def logical_not(cx: Context) -> Value:
    return xt.not_(truth(cx.tensor("self")))


@aten("angle")
def angle(cx: Context) -> Value:
    """Of real numbers: pi of those below 0, else 0; nan of nan."""
    x = convert(cx.tensor("self"), cx.out().dtype)
    below = xt.compare(x, xt.scalar(0, element(x)), direction="lt")
    out = xt.select(below, xt.scalar(pi, element(x)), xt.scalar(0, element(x)))
    return xt.select(xt.compare(x, x, direction="ne"), x, out)


@aten("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(cx: Context) -> Value:
    """self where condition, else other."""
    return xt.select(truth(cx.tensor("condition")), *cx.operands("self", "other", dtype=cx.out().dtype))


@aten("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous")
def same(cx: Context) -> Value:
    """The value itself: there are no strides here."""
    return cx.tensor("self")


@aten("copy_strided.default", namespace="prims")
def copy_strided(cx: Context) -> Value:
    """The value itself, which torch's rules for `lerp` and `index_fill` lay out as the op's result."""
    return cx.tensor("a")


@aten("_to_copy", "to.dtype", "to.device", "to.dtype_layout")
def to_copy(cx: Context) -> Value:
    return cast(cx.tensor("self"), cx.out().dtype)


@aten("convert_element_type.default", namespace="prims")
def convert_element_type(cx: Context) -> Value:
    return cast(cx.tensor("a"), cx.out().dtype)


def cast(x: Value, dtype: str) -> Value:
    """`x` by value in another type; a bool of what is not zero, a byte of the lowest bits of a float's integer."""
    if dtype == "ui8" and xt.is_float(xt.TensorType.of(x).dtype):
        x = convert(x, "i32")
    return truth(x) if dtype == "i1" else convert(x, dtype)


@aten("fill.Scalar", "fill.Tensor", "copy")
def fill(cx: Context) -> Value:
    """A value, or the elements of src, in the shape and type of self."""
    value = cx["src"] if "src" in cx.args else cx["value"]
    return xt.broadcast(cast(cx.value_of(value), cx.out().dtype), shape=cx.out().shape)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(cx: Context) -> Value:
    """value where mask, else self."""
    x, value = cx.operands("self", "value", dtype=cx.out().dtype)
    return xt.select(cx.tensor("mask"), value, x)
