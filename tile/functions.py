"""What a tile program can do element by element, and with shapes: functions of :mod:`xcc.tile`.

An `axis` may be negative. Where a tile is expected a Python number will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import arith_d, ir, math_d
from xcc.diagnostics import UserError
from xcc.dialects.tile.types import is_float
from xcc.tile.places import place
from xcc.tile.values import Value, as_value, broadcast, common, complain, convert, emit, signless

METHODS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "transpose", "split",
           "sort", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "abs", "floor", "ceil",
           "sigmoid", "bitcast")
"""Functions of one tile that are its methods, too."""


# -- where an instance is ----------------------------------------------------------------------------------------

def program_id(axis: int = 0) -> Value:
    """The number of this instance along `axis` of the grid, an index."""
    return Value(emit("program_id", axis=axis))


def num_programs(axis: int = 0) -> Value:
    """How many instances there are along `axis`, an index."""
    return Value(emit("num_programs", axis=axis))


# -- making tiles ------------------------------------------------------------------------------------------------

def arange(size: int, dtype: str = "i32") -> Value:
    """0, 1, ... below `size`, a power of two."""
    return Value(emit("iota", size=size, dtype=signless(dtype)), dtype)


def full(shape: Sequence[int], value: float, dtype: str = "f32") -> Value:
    """A tile of one value."""
    if isinstance(value, Value):
        return broadcast(convert(value, dtype), shape)
    return as_value(value, dtype, tuple(shape))


def zeros(shape: Sequence[int], dtype: str = "f32") -> Value:
    return full(shape, 0, dtype)


def constant(x: Any, dtype: str = "") -> Value:
    """A scalar of a Python number."""
    return as_value(x, dtype)


# -- elementwise -------------------------------------------------------------------------------------------------

def where(condition: Value | bool, a: float | Value, b: float | Value) -> Value:
    """a where the condition is true, else b."""
    x, y = common(a, b) if isinstance(a, Value) or isinstance(b, Value) else map(as_value, (a, b))
    c = as_value(condition)
    if c.dtype != "i1":
        raise complain(f"the condition is {c!r}, not i1")
    shape = common(x, convert(c, x.dtype))[0].shape if c.shape else x.shape
    c, x, y = (broadcast(v, shape) if v.shape != shape and (v is not c or c.shape) else v for v in (c, x, y))
    with place():
        return Value(arith_d.select(c.ir, x.ir, y.ir), x.dtype)


def _math(name: str, doc: str) -> Callable[[Any], Value]:
    def function(x: Value) -> Value:
        v = as_value(x, "f32" if isinstance(x, (int, float)) else "")
        if not is_float(v.dtype):
            raise complain(f"{name} of {v!r}: floats are needed")
        with place():
            return Value(getattr(math_d, name)(v.ir), v.dtype)

    function.__name__, function.__doc__ = name, doc
    return function


exp = _math("exp", "e to the power of x.")
exp2 = _math("exp2", "2 to the power of x.")
expm1 = _math("expm1", "exp(x) - 1.")
log = _math("log", "The natural logarithm.")
log1p = _math("log1p", "log(1 + x).")
log2 = _math("log2", "The logarithm to the base 2.")
sqrt = _math("sqrt", "The square root.")
rsqrt = _math("rsqrt", "1 over the square root.")
sin = _math("sin", "The sine.")
cos = _math("cos", "The cosine.")
tan = _math("tan", "The tangent.")
asin = _math("asin", "The angle whose sine x is.")
acos = _math("acos", "The angle whose cosine x is.")
atan = _math("atan", "The angle whose tangent x is.")
sinh = _math("sinh", "The hyperbolic sine.")
cosh = _math("cosh", "The hyperbolic cosine.")
tanh = _math("tanh", "The hyperbolic tangent.")
erf = _math("erf", "The error function.")
floor = _math("floor", "Rounded down.")
ceil = _math("ceil", "Rounded up.")
roundeven = _math("roundeven", "Rounded to the nearest, of two the even one.")


def sigmoid(x: Any) -> Value:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + exp(-as_value(x)))


def abs(x: Any) -> Value:
    """The absolute value."""
    v = as_value(x)
    with place():
        return Value(math_d.absf(v.ir) if is_float(v.dtype) else math_d.absi(v.ir), v.dtype)


def _extreme(name: str, a: Value, b: Value) -> Value:
    x, y = common(a, b)
    tail = "imumf" if is_float(x.dtype) else "ui" if x.dtype[0] == "u" or x.dtype == "i1" else "si"
    with place():
        return Value(getattr(arith_d, name + tail)(x.ir, y.ir), x.dtype)


def maximum(a: Value, b: Value) -> Value:
    """The larger of a and b; NaN where one is."""
    return _extreme("max", a, b)


def minimum(a: Any, b: Any) -> Value:
    """The smaller of a and b; NaN where one is."""
    return _extreme("min", a, b)


def clip(x: Any, low: Any, high: Any) -> Value:
    return minimum(maximum(x, low), high)


def fma(a: Any, b: Any, c: Any) -> Value:
    """a * b + c, rounded once."""
    x, y, z = common(a, b, c)
    with place():
        return Value(math_d.fma(x.ir, y.ir, z.ir), x.dtype)


def power(a: Value, b: Value) -> Value:
    """a to the power of b, of floats."""
    x, y = common(a, b)
    with place():
        return Value(math_d.powf(x.ir, y.ir), x.dtype)


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up; of Python numbers a Python number."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + (b - 1)) // b


def mulhi(a: Value, b: int) -> Value:
    """The upper half of the product of two 32-bit integers, as unsigned ones."""
    x, y = (convert(convert(as_value(v, "ui32"), "ui32"), "ui64") for v in (a, b))
    return convert((x * y) >> 32, "ui32")


def bitcast(x: Value, dtype: str) -> Value:
    """The bits of x as another dtype of the same width."""
    element = ir.Type.parse(signless(dtype))
    kind = ir.VectorType.get(list(x.shape), element) if x.shape else element
    with place():
        return Value(arith_d.bitcast(kind, x.ir) if signless(dtype) != signless(x.dtype) else x.ir, dtype)


# -- shapes ------------------------------------------------------------------------------------------------------

def transpose(x: Value, *order: int) -> Value:
    """Dim i of the result is dim order[i] of x; without an order all are reversed."""
    return Value(emit("transpose", x.ir, order=order or None), x.dtype)


def broadcast_to(x: Any, shape: Sequence[int]) -> Value:
    return broadcast(as_value(x), shape)


def expand_dims(x: Value, axis: int) -> Value:
    """x with a dim of size 1 at `axis`."""
    at = axis % (x.rank + 1)
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


def join(a: Any, b: Any) -> Value:
    """a and b side by side along a new last dim."""
    x, y = common(a, b)
    return Value(emit("join", x.ir, y.ir), x.dtype)


def split(x: Value) -> tuple[Value, Value]:
    """The halves of x along its last dim, which has size 2."""
    a, b = emit("split", x.ir)
    return Value(a, x.dtype), Value(b, x.dtype)


# -- what says something -----------------------------------------------------------------------------------------

def assert_(condition: Any, message: str = "") -> None:
    """All elements of the condition are true; an evaluation ends where one is not. Compiled code does not look."""
    emit("assert", as_value(condition).ir, message=message)


def print_(*values: Any, prefix: str = "") -> None:
    """Writes values, a line an instance, in an evaluation; targets refuse it."""
    emit("print", *(as_value(v).ir for v in values), prefix=prefix)


def unsupported(message: str) -> UserError:
    """An error at the author's line, for languages built on this."""
    return complain(message)
