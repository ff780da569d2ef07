"""Functions of kernels on tiles: mathematics, choice, products, scans, and what an instance is told."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile, as_tile, binary, convert, is_number, stretch
from xcc.frontends.kernel.types import DTYPES, NUMBER_INT, TileType, broadcast_shapes

__all__ = ["abs", "acos", "asin", "atan", "cdiv", "ceil", "cos", "cosh", "cumprod", "cumsum", "device_assert",
           "device_print", "dot", "erf", "exp", "exp2", "expm1", "floor", "log", "log1p", "log2", "maximum", "minimum",
           "num_programs", "power", "program_id", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "static_range", "tan",
           "tanh", "to_even", "where"]


def program_id(axis: int = 0) -> Tile:
    """Which instance this is, along an axis of the grid."""
    return Tile(NUMBER_INT, machine().program("id", _axis(axis)))


def num_programs(axis: int = 0) -> Tile:
    """How many instances there are, along an axis of the grid."""
    return Tile(NUMBER_INT, machine().program("count", _axis(axis)))


def _axis(axis: int) -> int:
    if axis not in (0, 1, 2):
        raise error(f"a grid has the axes 0, 1 and 2, not {axis}")
    return axis


def _function(name: str, text: str) -> Callable[[object], Tile]:
    def apply(x: object) -> Tile:
        x = as_tile(x)
        if x.dtype.kind == "bool":
            raise error(f"{name} of {x.type}: convert it with .to(xcc.f32)")
        x = convert(x, DTYPES["f32"]) if x.type.weak or x.dtype.is_integer else x
        return Tile(x.type, machine().op(name, x.type, x))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{text} Of f16 and bf16 it is computed in f32 and rounded, integers become f32."
    return apply


exp = _function("exp", "e to the power of each element.")
exp2 = _function("exp2", "2 to the power of each element.")
expm1 = _function("expm1", "exp(x) - 1, exact for small elements, too.")
log = _function("log", "The natural logarithm.")
log1p = _function("log1p", "log(1 + x), exact for small elements, too.")
log2 = _function("log2", "The logarithm of base 2.")
sqrt = _function("sqrt", "The square root.")
rsqrt = _function("rsqrt", "1 over the square root.")
sin = _function("sin", "The sine.")
cos = _function("cos", "The cosine.")
tan = _function("tan", "The tangent.")
asin = _function("asin", "The angle from -pi/2 to pi/2 whose sine it is.")
acos = _function("acos", "The angle from 0 to pi whose cosine it is.")
atan = _function("atan", "The angle from -pi/2 to pi/2 whose tangent it is.")
sinh = _function("sinh", "The hyperbolic sine.")
cosh = _function("cosh", "The hyperbolic cosine.")
tanh = _function("tanh", "The hyperbolic tangent.")
erf = _function("erf", "The error function.")
floor = _function("floor", "The integer at or below each element.")
ceil = _function("ceil", "The integer at or above each element.")
to_even = _function("roundeven", "The integer next to each element, of two the even one: ``round`` of a tile.")


def sigmoid(x: object) -> Tile:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + exp(-as_tile(x)))


def abs(x: object) -> Tile:
    """Each element without its sign."""
    return as_tile(x).__abs__()


def maximum(a: Any, b: Any) -> Any:
    """The larger of each two elements; NaN where one is."""
    return builtins.max(a, b) if is_number(a) and is_number(b) else binary("maximum", a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of each two elements; NaN where one is."""
    return builtins.min(a, b) if is_number(a) and is_number(b) else binary("minimum", a, b)


def power(x: object, exponent: object) -> Tile:
    """`x` to a power: a product, its inverse or a root where a number known when the kernel is compiled says so, else
    the power of floats, which is NaN where `x` is negative and the exponent no integer."""
    x = as_tile(x)
    if not is_number(exponent) or exponent not in (0.5, -0.5, *range(-16, 17)):
        return _power(x, as_tile(exponent))
    if exponent in (0.5, -0.5):
        return sqrt(x) if exponent == 0.5 else rsqrt(x)
    n = int(exponent)       # type: ignore[call-overload]
    if n < 0:
        return 1.0 / power(x, -n)
    if n < 2:
        return x if n else stretch(convert(as_tile(1), x.dtype), x.shape)
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def _power(x: Tile, exponent: Tile) -> Tile:
    if not (x.dtype.is_float or exponent.dtype.is_float):
        raise error(f"{x.type} ** {exponent.type}: the exponent of integers is one from -16 to 16, known when the "
                    "kernel is compiled: convert one of the two with .to(xcc.f32)")
    return binary("pow", x, exponent)


def where(condition: object, a: object, b: object) -> Tile:
    """Of each two elements `a`'s where `condition` holds, else `b`'s."""
    c, x, y = as_tile(condition), as_tile(a), as_tile(b)
    if c.dtype.kind != "bool":
        raise error(f"the condition is {c.type}: compare it, as in t != 0")
    if x.type.weak and y.type.weak:
        x = convert(x, DTYPES["f32" if x.dtype.is_float or y.dtype.is_float else "i64"])
    from xcc.frontends.kernel.types import promote

    dtype = promote(x.type, y.type)
    shape = broadcast_shapes(x.shape, y.shape)
    shape = broadcast_shapes(c.shape, shape) if shape is not None else None
    if dtype is None or shape is None:
        raise error(f"where({c.type}, {x.type}, {y.type}): " + (
            "the shapes do not broadcast; t[:, None] and t[None, :] add dims of one" if shape is None else
            "convert one of the two to the type of the other with .to()"))
    kind = TileType(dtype, shape)
    return Tile(kind, machine().op("where", kind, stretch(c, shape), stretch(convert(x, dtype), shape),
                                   stretch(convert(y, dtype), shape)))


def dot(a: Tile, b: Tile, acc: Tile | None = None) -> Tile:
    """The matrix product of tiles m x k and k x n, added to `acc` where there is one.

    Products and sums are in f32 for narrower floats, in i32 for narrower integers; that is the result's type.
    """
    a, b, acc = as_tile(a), as_tile(b), None if acc is None else as_tile(acc)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise error(f"dot({a.type}, {b.type}): give tiles of shapes [m, k] and [k, n]; .T exchanges the dims")
    if a.dtype != b.dtype or a.dtype.kind == "bool":
        raise error(f"dot({a.type}, {b.type}): convert one to the type of the other with .to()")
    wide = a.dtype.is_float and a.dtype.bits < 32
    dtype = DTYPES["f32"] if wide else DTYPES["i32"] if a.dtype.is_integer and a.dtype.bits < 32 else a.dtype
    if a.dtype.is_integer and a.dtype.bits == 16:       # for which no chip has products
        a, b = convert(a, dtype), convert(b, dtype)
    kind = TileType(dtype, (a.shape[0], b.shape[1]))
    if acc is not None and (acc.shape != kind.shape or acc.dtype != dtype):
        raise error(f"dot({a.type}, {b.type}) is {kind} and cannot be added to {acc.type}: begin with "
                    f"xcc.zeros({list(kind.shape)}, xcc.{dtype})")
    return Tile(kind, machine().op("dot", kind, a, b, *(() if acc is None else (acc,))))


def cumsum(x: Tile, axis: int = -1, reverse: bool = False) -> Tile:
    """The sums of the elements up to each one along `axis`, itself included; `reverse`: from each one to the last."""
    return _scan("sum", x, axis, reverse)


def cumprod(x: Tile, axis: int = -1, reverse: bool = False) -> Tile:
    """The products of the elements up to each one along `axis`."""
    return _scan("prod", x, axis, reverse)


def _scan(kind: str, x: Tile, axis: int, reverse: bool) -> Tile:
    x = as_tile(x)
    if not -x.ndim <= axis < x.ndim:
        raise error(f"{x.type} has no axis {axis}")
    if x.dtype.kind == "bool":
        raise error(f"a scan of {x.type}: convert it with .to(xcc.i32)")
    return Tile(x.type, machine().op("scan", x.type, x, kind=kind, axis=axis % x.ndim, reverse=reverse))


def cdiv(a: Any, b: Any) -> Any:
    """`a` / `b`, rounded up: how many blocks of `b` cover `a`. Of numbers a number."""
    return -(-a // b) if is_number(a) and is_number(b) else (a + (b - 1)) // b


def static_range(*bounds: int) -> range:
    """A ``range`` whose loop is unrolled: its counter is a number known when the kernel is compiled."""
    return range(*bounds)


def device_print(label: str, *tiles: object) -> None:
    """Prints tiles when the kernel runs."""
    for t in tiles:
        machine().show(label, as_tile(t))


def device_assert(condition: object, message: str = "") -> None:
    """Ends the run where `condition` does not hold, for a tile all of it."""
    c = as_tile(condition)
    if c.dtype.kind != "bool":
        raise error(f"the condition is {c.type}: compare it, as in t != 0")
    machine().check(c, message)
