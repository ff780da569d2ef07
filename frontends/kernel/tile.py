"""The values of kernels: tiles and scalars, with Python's operators, on whichever machine runs the kernel."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.python_object import PythonObject
from xcc.frontends.kernel.types import DTYPES, DType, Number, TileType, broadcast_shapes, dtype_of, number_type, promote

__all__ = ["Tile", "as_tile", "binary", "convert", "element_type", "is_number", "stretch"]

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
            "xor": "^", "shl": "<<", "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
            "maximum": "maximum", "minimum": "minimum", "where": "where", "pow": "**"}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_BITS = ("and", "or", "xor")
_INTEGERS = ("floordiv", "mod", "shl", "shr")
_OF_FLOATS = {"floordiv": "xcc.floor(a / b)", "mod": "a - xcc.floor(a / b) * b", "shl": "a * 2.0 ** b",
              "shr": "a / 2.0 ** b"}     # what of floats is said in their place


_UFUNCS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "floor_divide": "floordiv",
           "remainder": "mod", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "less": "lt",
           "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
           "maximum": "maximum", "minimum": "minimum"}
"""What numpy calls the operators, which its numbers leave to tiles."""


def _operator(name: str, swapped: bool = False) -> Callable[[object, object], Any]:
    def apply(self: object, other: object) -> Tile:
        return binary(name, other, self) if swapped else binary(name, self, other)

    return apply


class Tile(PythonObject):
    """A block of elements, or a scalar. Nothing changes it: operators make new ones.

    The shape is known when the kernel is compiled. Operands of an operator broadcast as numpy's do.
    """

    __slots__ = ("_data", "constant")

    def __init__(self, kind: TileType, data: object, constant: Number | None = None) -> None:
        self.type, self._data = kind, data
        self.constant = constant        # the number of Python's that it is, if it is one

    @property
    def data(self) -> Any:
        """The machine's, made where it is used where this is a number of Python's."""
        return self._data if self.constant is None else machine().constant(self.constant, self.type)

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    def __repr__(self) -> str:
        if isinstance(self.data, np.ndarray):
            return f"{self.type}: {np.array2string(self.data, threshold=100)}" if self.ndim else str(self.data)
        return f"<{self.type}, known when the kernel runs>"

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: object, **_: object) -> Tile:
        """An operator of a number of numpy's and a tile."""
        if method != "__call__" or function.__name__ not in _UFUNCS:
            raise error(f"numpy.{function.__name__} is for arrays, not for {self.type}: use xcc's functions, such as "
                        "xcc.exp")
        return binary(_UFUNCS[function.__name__], *given)

    def __matmul__(self, other: Tile) -> Tile:
        from xcc.frontends.kernel.functions import dot

        return dot(self, other)

    def __getitem__(self, at: object) -> Tile:
        """``t[:, None]``: adds dims of one."""
        from xcc.frontends.kernel.shapes import with_units

        return with_units(self, at if isinstance(at, tuple) else (at,))

    def to(self, dtype: object) -> Tile:
        """The elements as `dtype`: floats become integers towards zero, integers lose their upper bits."""
        return convert(self, element_type(dtype))

    def bitcast(self, dtype: object) -> Tile:
        """The bits of the elements, as elements of another type of that size."""
        wanted = element_type(dtype)
        if wanted.bits != self.dtype.bits or self.dtype.kind == "bool":
            raise error(f"{self.type} has elements of {self.dtype.bits} bits, {wanted} has {wanted.bits}: .to() "
                        "converts the numbers")
        return Tile(self.type.of(wanted), machine().op("bitcast", self.type.of(wanted), self))

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swapped=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swapped=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", swapped=True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", swapped=True)
    __and__, __rand__ = _operator("and"), _operator("and", swapped=True)
    __or__, __ror__ = _operator("or"), _operator("or", swapped=True)
    __xor__, __rxor__ = _operator("xor"), _operator("xor", swapped=True)
    __lshift__, __rlshift__ = _operator("shl"), _operator("shl", swapped=True)
    __rshift__, __rrshift__ = _operator("shr"), _operator("shr", swapped=True)
    __lt__, __le__, __gt__, __ge__ = _operator("lt"), _operator("le"), _operator("gt"), _operator("ge")
    __eq__, __ne__ = _operator("eq"), _operator("ne")
    __hash__ = object.__hash__

    def __neg__(self) -> Tile:
        return _same("neg", self) if self.dtype.is_float else binary("sub", 0, self)

    def __pos__(self) -> Tile:
        return self

    def __abs__(self) -> Tile:
        return self if self.dtype.kind == "uint" else _same("abs", self)

    def __invert__(self) -> Tile:
        ones = {"bool": True, "uint": (1 << self.dtype.bits) - 1}
        return binary("xor", self, ones.get(self.dtype.kind, -1))

    def __divmod__(self, other: object) -> tuple[Tile, Tile]:
        return binary("floordiv", self, other), binary("mod", self, other)

    def max(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tile:
        """The largest element along `axis` (an int, several, or None for all)."""
        return _reduced("max", self, axis, keepdims)

    def min(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tile:
        """The smallest element."""
        return _reduced("min", self, axis, keepdims)

    def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tile:
        """The sum: of narrow floats in f32, rounded at the end; of bools how many hold, an i32."""
        return _reduced("sum", self, axis, keepdims)

    def prod(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tile:
        """The product."""
        return _reduced("prod", self, axis, keepdims)

    def any(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tile:
        """Whether one of the bools holds."""
        return _reduced("any", self, axis, keepdims)

    def all(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tile:
        """Whether all of the bools hold."""
        return _reduced("all", self, axis, keepdims)

    def reshape(self, *shape: int | Sequence[int]) -> Tile:
        """The elements in row-major order in another shape."""
        from xcc.frontends.kernel.shapes import reshape

        return reshape(self, *shape)

    def broadcast_to(self, shape: Sequence[int]) -> Tile:
        """Stretched to `shape` by numpy's rule."""
        if broadcast_shapes(self.shape, tuple(shape)) != tuple(shape):
            raise error(f"{self.type} does not stretch to the shape {list(shape)}")
        return stretch(self, tuple(shape))

    @property
    def T(self) -> Tile:
        """The last two dims exchanged."""
        from xcc.frontends.kernel.shapes import transpose

        return transpose(self)


def is_number(value: object) -> bool:
    """Whether `value` is a number of Python's or numpy's."""
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def as_tile(value: object) -> Tile:
    """`value` as a tile or scalar; an error at the user's line where it is neither nor a number."""
    if isinstance(value, Tile):
        return value
    if isinstance(value, (bool, int, float)):
        kind, number = number_type(value), value
    elif isinstance(value, (np.number, np.bool_)) and dtype_of(value.dtype) is not None:
        kind, number = TileType(element_type(value.dtype)), value.item()
    else:
        getattr(value, "no_value", lambda: None)()
        raise error(f"a {type(value).__name__} is no tile and no number: arrays are arguments of the kernel, of which "
                    ".tile() reads blocks")
    if kind.dtype.is_integer and not -2**63 <= number < 2**63:
        if not 0 <= number < 2**64:
            raise error(f"{number} has more than 64 bits")
        kind = TileType(DTYPES["ui64"], weak=True)
    return Tile(kind, None, number)


def element_type(value: object) -> DType:
    """The element type that the user named."""
    found = dtype_of(value)
    if found is None:
        raise error(f"{value!r} is no element type: give one of xcc.f32, xcc.f16, xcc.bf16, xcc.i32, ...")
    return found


def convert(x: Tile, dtype: DType) -> Tile:
    """`x` as `dtype`."""
    if x.dtype == dtype:
        return x if not x.type.weak else Tile(x.type.of(dtype), x._data, x.constant)
    kind = x.type.of(dtype)
    if x.constant is None:
        return Tile(kind, machine().op("convert", kind, x))
    value = x.constant
    if dtype.is_integer:
        low = -(1 << dtype.bits - 1) if dtype.kind == "int" else 0
        if not low <= value < low + (1 << dtype.bits):
            raise error(f"{value} does not fit into {dtype}: convert what it meets to a wider type with .to()")
        value = int(value)
    return Tile(kind, None, value)


def stretch(x: Tile, shape: tuple[int, ...]) -> Tile:
    """`x` broadcast to `shape`, which it is known to fit."""
    if x.shape == shape:
        return x
    kind = TileType(x.dtype, shape)
    return Tile(kind, machine().op("broadcast", kind, x))


def binary(name: str, left: object, right: object) -> Tile:
    """An operator of two operands, in the type in which they meet (:func:`xcc.frontends.kernel.types.promote`)."""
    a, b = as_tile(left), as_tile(right)
    dtype = promote(a.type, b.type)
    shape = broadcast_shapes(a.shape, b.shape)
    symbol = _SYMBOLS[name]
    if shape is None:
        raise error(f"{a.type} {symbol} {b.type}: the shapes {list(a.shape)} and {list(b.shape)} do not broadcast; "
                    "t[:, None] and t[None, :] add dims of one")
    if dtype is None:
        raise error(f"{a.type} {symbol} {b.type}: convert one to the type of the other, as in "
                    f".to(xcc.{(b if a.dtype.kind == 'bool' else a).dtype})")
    if name == "div" and dtype.is_integer:
        dtype = DTYPES["f64" if a.type.weak and b.type.weak else "f32"]
    _check_kind(name, symbol, a, b, dtype)
    weak = a.type.weak and b.type.weak
    kind = TileType(DTYPES["i1"] if name in COMPARISONS else dtype, shape, weak and name not in COMPARISONS)
    return Tile(kind, machine().op(name, kind, stretch(convert(a, dtype), shape), stretch(convert(b, dtype), shape)))


def _check_kind(name: str, symbol: str, a: Tile, b: Tile, dtype: DType) -> None:
    """UserError where the operator is none of such elements."""
    if name in _INTEGERS and not dtype.is_integer:
        instead = _OF_FLOATS[name] if dtype.is_float else ".to(xcc.i32)"
        raise error(f"{a.type} {symbol} {b.type}: {symbol} is for integers; use {instead}")
    if name in _BITS and dtype.is_float:
        raise error(f"{a.type} {symbol} {b.type}: {symbol} is for integers and bools; .bitcast() gives a float's bits")
    if dtype.kind == "bool" and name not in (*_BITS, "eq", "ne", "where"):
        raise error(f"{a.type} {symbol} {b.type}: bools take &, |, ^, == and !=; convert them with .to(xcc.i32)")


def _same(name: str, x: Tile) -> Tile:
    if x.dtype.kind == "bool":
        raise error(f"{name} of {x.type}: convert it with .to(xcc.i32)")
    return Tile(x.type, machine().op(name, x.type, x))


def _reduced(kind: str, x: Tile, axis: int | tuple[int, ...] | None, keepdims: bool) -> Tile:
    """A reduction along some axes."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(operator.index(a) for a in
                                                           (axis if isinstance(axis, tuple) else (axis,)))
    if any(not -x.ndim <= a < x.ndim for a in axes):
        raise error(f"{x.type} has no axis {axis}")
    if (kind in ("any", "all")) != (x.dtype.kind == "bool") and kind != "sum":
        raise error(f"{kind} of {x.type}: " + ("compare it first, as in t != 0" if kind in ("any", "all") else
                                               "bools have .any(), .all() and .sum()"))
    if x.dtype.kind == "bool" and kind == "sum":
        x = convert(x, DTYPES["i32"])
    axes = tuple(sorted({a % x.ndim for a in axes}))
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
    if not axes:
        return x
    result = x.type.shaped(shape)
    return Tile(result, machine().op("reduce", result, x, kind=kind, axes=axes, keepdims=keepdims))
