"""Element-wise ops. Most come from two tables: name -> (element types, formula, numpy function)."""

from collections.abc import Callable
from types import new_class
from typing import Any

import numpy as np

from xcc.dialects.xt import angles, elementary
from xcc.dialects.xt import elementwise_numpy as n
from xcc.dialects.xt.broadcasting import broadcast_shapes, same_dtype
from xcc.dialects.xt.fields import boolean, dtype, operand, text
from xcc.dialects.xt.numeric import Array, cast
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.types import TensorType, dtype_name, is_float, is_integer, numpy_dtype, width

DIRECTIONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
              "ge": np.greater_equal}
KINDS: dict[str, Callable[[str], bool]] = {
    "float": is_float, "number": lambda d: d != "i1", "integer": is_integer, "bits": lambda d: not is_float(d),
    "any": lambda d: True}

TYPES = {"float": "floats", "number": "numbers", "integer": "integers", "bits": "bools and integers", "any": "all"}

# name: (element types, what it gives, numpy function in the operand's type)
UNARY: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "abs": ("number", "|x|; the least integer stays", np.abs),
    "acos": ("float", "arc cosine", n.wide(angles.acos)),
    "acosh": ("float", "inverse hyperbolic cosine", n.wide(elementary.acosh)),
    "asin": ("float", "arc sine", n.wide(angles.asin)),
    "asinh": ("float", "inverse hyperbolic sine", n.wide(elementary.asinh)),
    "atan": ("float", "arc tangent", n.wide(angles.atan)),
    "atanh": ("float", "inverse hyperbolic tangent", n.wide(elementary.atanh)),
    "cbrt": ("float", "cube root", n.wide(elementary.cbrt)),
    "ceil": ("float", "least integer not below x", n.wide(np.ceil)),
    "cos": ("float", "cosine", n.wide(angles.cos)),
    "cosh": ("float", "hyperbolic cosine", n.wide(elementary.cosh)),
    "erf": ("float", "error function", n.wide(elementary.erf)),
    "exp": ("float", "e^x", n.wide(elementary.exp)),
    "exp2": ("float", "2^x", n.wide(elementary.exp2)),
    "expm1": ("float", "e^x - 1, exact near 0", n.wide(elementary.expm1)),
    "floor": ("float", "largest integer not above x", n.wide(np.floor)),
    "log": ("float", "natural logarithm", n.wide(elementary.log)),
    "log1p": ("float", "log(1 + x), exact near 0", n.wide(elementary.log1p)),
    "log2": ("float", "logarithm to base 2", n.wide(elementary.log2)),
    "neg": ("number", "-x; integers wrap", np.negative),
    "not": ("bits", "logical not of bools, bitwise not of integers", np.invert),
    "reciprocal": ("float", "1/x", n.wide(lambda x: 1 / x)),
    "round": ("float", "nearest integer, halves to even", n.wide(np.rint)),
    "rsqrt": ("float", "1/sqrt(x)", n.wide(lambda x: 1 / np.sqrt(x))),
    "sigmoid": ("float", "1/(1 + e^-x)", n.wide(elementary.sigmoid)),
    "sign": ("number", "-1, 0 or 1; NaN stays", np.sign),
    "sin": ("float", "sine", n.wide(angles.sin)),
    "sinh": ("float", "hyperbolic sine", n.wide(elementary.sinh)),
    "sqrt": ("float", "square root", n.wide(np.sqrt)),
    "tan": ("float", "tangent", n.wide(angles.tan)),
    "tanh": ("float", "hyperbolic tangent", n.wide(elementary.tanh)),
    "trunc": ("float", "integer part", n.wide(np.trunc)),
}

BINARY: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "add": ("number", "a + b; integers wrap", np.add),
    "and": ("bits", "logical and of bools, bitwise and of integers", np.bitwise_and),
    "atan2": ("float", "angle of the point (b, a)", n.wide(angles.atan2)),
    "div": ("number", "a / b; integers truncate toward 0, x/0 gives 0", n.divide),
    "maximum": ("any", "the larger; NaN wins", n.maximum),
    "minimum": ("any", "the smaller; NaN wins", n.minimum),
    "mod": ("number", "a - b*floor(a/b), the sign of b; integers modulo 0 give 0", n.mod),
    "mul": ("number", "a * b; integers wrap", np.multiply),
    "next_after": ("float", "the next representable value after a toward b", n.next_after),
    "or": ("bits", "logical or of bools, bitwise or of integers", np.bitwise_or),
    "pow": ("number", "a to the power b; integers wrap, a negative exponent gives 1/a^|b| truncated", n.power),
    "rem": ("number", "a - b*trunc(a/b), the sign of a; integers modulo 0 give 0", n.rem),
    "shift_left": ("integer", "a * 2^b; 0 when b is not below the width", n.shift_left),
    "shift_right": ("integer", "a shifted right, by sign for signed types; b is clamped to the width", n.shift_right),
    "sub": ("number", "a - b; integers wrap", np.subtract),
    "xor": ("bits", "logical or bitwise exclusive or", np.bitwise_xor),
}


def _check(kind: str, name: str) -> None:
    if not KINDS[kind](name):
        raise InferError(f"takes {TYPES[kind]}, not {name}")


def _define(operands: str, shapes: str, name: str, kind: str, meaning: str, function: Callable[..., Any]) -> None:
    def infer(a: Attrs, *types: TensorType) -> TensorType:
        dtype = same_dtype(*types)
        _check(kind, dtype)
        return TensorType(broadcast_shapes(*(t.shape for t in types)), dtype)

    def evaluate(a: Attrs, *arrays: Array) -> Array:
        return n.same_type(function, *arrays)

    body = {"__doc__": f"Gives {meaning}. Element types: {TYPES[kind]}{shapes}.", "access": "pointwise", "infer": infer,
            "evaluate": evaluate, "__module__": __name__} | {k: operand() for k in operands}
    new_class(name.title().replace("_", ""), (XtOp,), {"name": name}, lambda namespace: namespace.update(body))


for _name, _row in UNARY.items():
    _define("x", ". Same shape", _name, *_row)
for _name, _row in BINARY.items():
    _define("ab", "; shapes broadcast as in numpy", _name, *_row)


class IsNan(XtOp, name="is_nan"):
    """True where x is NaN: float -> i1."""

    x = operand()
    access = "pointwise"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        _check("float", x.dtype)
        return x.with_dtype("i1")

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.isnan(x)


class IsInf(XtOp, name="is_inf"):
    """True where x is an infinity of a detected sign: float -> i1."""

    x = operand()
    detect_positive = boolean(True)
    detect_negative = boolean(True)
    access = "pointwise"
    infer = IsNan.infer

    def evaluate(a: Attrs, x: Array) -> Array:
        zero = np.zeros((), x.dtype)
        return np.isinf(x) & (((x > zero) & a.detect_positive) | ((x < zero) & a.detect_negative))


class IsFinite(XtOp, name="is_finite"):
    """True where x is neither NaN nor infinite: float -> i1."""

    x = operand()
    access = "pointwise"
    infer = IsNan.infer

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.isfinite(x)


class Compare(XtOp, name="compare"):
    """a (direction) b -> i1; shapes broadcast. Every comparison with NaN is false, but ne is true."""

    a = operand()
    b = operand()
    direction = text(choices=tuple(DIRECTIONS))
    access = "pointwise"

    def infer(a: Attrs, lhs: TensorType, rhs: TensorType) -> TensorType:
        same_dtype(lhs, rhs)
        return TensorType(broadcast_shapes(lhs.shape, rhs.shape), "i1")

    def evaluate(a: Attrs, lhs: Array, rhs: Array) -> Array:
        return DIRECTIONS[a.direction](lhs, rhs)


class Select(XtOp, name="select"):
    """Where pred (i1) is true a, else b; all three shapes broadcast, a and b have one element type."""

    pred = operand()
    a = operand()
    b = operand()
    access = "pointwise"

    def infer(a: Attrs, pred: TensorType, x: TensorType, y: TensorType) -> TensorType:
        if pred.dtype != "i1":
            raise InferError(f"the predicate is {pred.dtype}, not i1")
        return TensorType(broadcast_shapes(pred.shape, x.shape, y.shape), same_dtype(x, y))

    def evaluate(a: Attrs, pred: Array, x: Array, y: Array) -> Array:
        return np.where(pred, x, y)


class Convert(XtOp, name="convert"):
    """x with another element type, by value.

    Float to integer truncates and clamps to the range, NaN gives 0; integer to integer wraps; not zero is true.
    `saturate` clamps integers, and floats to the finite range of the target.
    """

    x = operand()
    dtype = dtype()
    saturate = boolean(False)
    access = "pointwise"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        return x.with_dtype(a.dtype)

    def evaluate(a: Attrs, x: Array) -> Array:
        return cast(x, a.dtype, a.saturate)


class Bitcast(XtOp, name="bitcast"):
    """The bits of x read as another element type: of its width, of a multiple, which the last dim makes one element and
    is gone, or of a part, of which the result has a last dim."""

    x = operand()
    dtype = dtype()
    access = "pointwise"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        have, want = width(x.dtype), width(a.dtype)
        if have == want:
            return x.with_dtype(a.dtype)
        if have > want >= 8 and have % want == 0:
            return TensorType((*x.shape, have // want), a.dtype)
        if have < 8 or not x.shape or not isinstance(x.shape[-1], int) or x.shape[-1] * have != want:
            raise InferError(f"{x.dtype} and {a.dtype} differ in width, and a last dim does not make up for it")
        return TensorType(x.shape[:-1], a.dtype)

    def evaluate(a: Attrs, x: Array) -> Array:
        shape = TensorType(x.shape, dtype_name(x.dtype))
        return np.ascontiguousarray(x).view(numpy_dtype(a.dtype)).reshape(Bitcast.infer(a, shape).shape)


