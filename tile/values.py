"""Values of a tile program in Python: tiles and scalars with operators, and buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import arith_d, ir
from xcc.diagnostics import UserError
from xcc.dialects import tile as tile_d
from xcc.dialects.tile.types import TileType, is_float
from xcc.tile.places import place, where

__all__ = ["Value", "as_value", "broadcast", "common", "complain", "convert", "emit", "index_of", "signless"]


def complain(message: str) -> UserError:
    """A UserError at the author's line."""
    file, line, column = where()
    return UserError(f"{file}:{line}:{column}: {message}")


def signless(dtype: str) -> str:
    """The element type in the IR of the dtype `dtype`: ``ui8`` is ``i8``."""
    return dtype[1:] if dtype.startswith("ui") else dtype


def emit(op: str, *operands: Any, **attributes: Any) -> Any:
    """A tile op on MLIR values at the author's line; UserError there where the operands do not fit."""
    try:
        with place():
            return tile_d.build(tile_d.OPS[op], *operands, **attributes)
    except UserError as e:
        raise complain(e.message) from None


def _operator(name: str, swapped: bool = False) -> Callable[[Any, Any], Value]:
    def method(self: Value, other: Any) -> Value:
        a, b = (other, self) if swapped else (self, other)
        return _compare(name, a, b) if name in _ORDER else _divide(a, b) if name == "div" else _binary(name, a, b)

    return method


class Value:
    """A tile, or a scalar: `shape` is then empty. `dtype` is ``f32``, ``i1``, ``ui32``, ``index`` and the like.

    Operators follow numpy: shapes stretch to each other, a Python number takes the other side's dtype, of two dtypes
    the wider is taken, of an integer and a float the float; an index and an integer give an index. `/` of integers is
    f32. Comparisons give i1. ``x[:, None]`` adds dims. """

    __array_ufunc__ = None
    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", True)
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", True)
    __and__, __rand__ = _operator("and"), _operator("and", True)
    __or__, __ror__ = _operator("or"), _operator("or", True)
    __xor__, __rxor__ = _operator("xor"), _operator("xor", True)
    __lshift__, __rlshift__ = _operator("shl"), _operator("shl", True)
    __rshift__, __rrshift__ = _operator("shr"), _operator("shr", True)
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _operator("gt"), _operator("ge")

    def __init__(self, value: Any, dtype: str = "") -> None:
        self.ir = value
        t = TileType.of(value)
        self.shape, self.dtype = t.shape, dtype or t.dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    ndim = rank

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape) if self.shape else ''}>"

    def __bool__(self) -> bool:
        raise complain(f"{self!r} is known in a run only: use where(), if_() or while_()")

    def __neg__(self) -> Value:
        if is_float(self.dtype):
            with place():
                return Value(arith_d.negf(self.ir), self.dtype)
        return 0 - self

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        return self ^ (True if self.dtype == "i1" else -1)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return _compare("eq", self, other)

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return _compare("ne", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: Any) -> Value:
        """``x[:, None]``: slices keep a dim whole, None adds one of size 1."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys[at:at + 1] = [slice(None)] * (self.rank - sum(k is not None for k in keys) + 1)
        keys += [slice(None)] * (self.rank - sum(k is not None for k in keys))
        if any(k is not None and k != slice(None) for k in keys) or sum(k is not None for k in keys) != self.rank:
            raise complain(f"{self!r} is indexed with something other than : and None; gather() reads elements")
        sizes = iter(self.shape)
        return self.reshape(*(1 if k is None else next(sizes) for k in keys))

    def reshape(self, *shape: Any) -> Value:
        """The same elements in another shape."""
        sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
        return self if sizes == self.shape else Value(emit("reshape", self.ir, shape=sizes), self.dtype)

    def to(self, dtype: Any) -> Value:
        """Converted to `dtype`; floats become integers by rounding towards 0."""
        return convert(self, dtype)

    @property
    def T(self) -> Value:
        return Value(emit("transpose", self.ir), self.dtype)

    def __getattr__(self, name: str) -> Any:
        """Functions of a tile that are methods too: ``t.max(axis=1, keepdims=True)``, ``t.exp()``."""
        from xcc import tile
        from xcc.tile.functions import METHODS

        if name not in METHODS:
            raise AttributeError(f"a tile has no '{name}'")
        return lambda *args, **kwargs: getattr(tile, name)(self, *args, **kwargs)


def as_value(x: Any, dtype: str = "", shape: Sequence[int] = ()) -> Value:
    """A Value of x, which may be a Python number: it takes `dtype` (else i32, f32 or i1)."""
    if isinstance(x, Value):
        return x
    if type(x).__name__ == "Buffer":
        raise complain("a buffer is no value: load a tile of it")
    if hasattr(x, "item") and getattr(x, "ndim", 1) == 0:
        x = x.item()
    if not isinstance(x, (bool, int, float)):
        raise complain(f"a {type(x).__name__} is no number and no tile")
    kind = dtype or ("i1" if isinstance(x, bool) else "i32" if isinstance(x, int) else "f32")
    element = ir.Type.parse(signless(kind))
    if is_float(kind):
        attribute: Any = ir.FloatAttr.get(element, float(x))
    elif isinstance(x, float) and not x.is_integer():
        raise complain(f"{x} is no {kind}")
    else:
        bits = 64 if kind == "index" else element.width
        if not -(1 << bits - 1) <= int(x) < 1 << bits:
            raise complain(f"{x} is no {kind}")
        whole = int(x) & (1 << bits) - 1
        attribute = ir.IntegerAttr.get(element, whole - (1 << bits) if bits > 1 and whole >> bits - 1 else whole)
    if shape:
        vector = ir.VectorType.get(list(shape), element)
        attribute, element = ir.DenseElementsAttr.get_splat(vector, attribute), vector
    with place():
        return Value(arith_d.ConstantOp(element, attribute).result, kind)


def index_of(x: Any) -> Any:
    """The MLIR value of a scalar as index."""
    v = convert(as_value(x, "index" if isinstance(x, int) else ""), "index")
    if v.shape:
        raise complain(f"{v!r} is no scalar")
    return v.ir


def broadcast(v: Value, shape: Sequence[int]) -> Value:
    """v stretched to `shape`."""
    return v if v.shape == tuple(shape) else Value(emit("broadcast", v.ir, shape=tuple(shape)), v.dtype)


def _wider(a: str, b: str) -> str:
    """The dtype that values of both become."""
    if a == b:
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if "index" in (a, b):
        return "index"
    if "i1" in (a, b):
        return b if a == "i1" else a
    wide = {d: ir.Type.parse(signless(d)).width for d in (a, b)}
    if wide[a] == wide[b]:
        return "f32" if is_float(a) else a if a.startswith("ui") else b
    return a if wide[a] > wide[b] else b


def common(*values: Any) -> list[Value]:
    """The values with one dtype and one shape."""
    known = [v for v in values if isinstance(v, Value)]
    if not known:
        known = [as_value(values[0])]
    dtype, shape = known[0].dtype, known[0].shape
    for v in known[1:]:
        dtype, shape = _wider(dtype, v.dtype), _stretched(shape, v)
    if any(isinstance(v, float) for v in values) and not is_float(dtype):
        dtype = "f32"
    if dtype == "i1" and any(isinstance(v, int) and not isinstance(v, bool) for v in values):
        dtype = "i32"
    return [broadcast(convert(v, dtype), shape) if isinstance(v, Value) else as_value(v, dtype, shape) for v in values]


def _stretched(shape: tuple[int, ...], v: Value) -> tuple[int, ...]:
    n = max(len(shape), v.rank)
    pairs = list(zip((1,) * (n - len(shape)) + shape, (1,) * (n - v.rank) + v.shape, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise complain(f"shapes {list(shape)} and {list(v.shape)} do not fit together")
    return tuple(max(p) for p in pairs)


_INT = {"add": "addi", "sub": "subi", "mul": "muli", "floordiv": "floordivsi", "mod": "remsi", "and": "andi",
        "or": "ori", "xor": "xori", "shl": "shli", "shr": "shrsi"}
_UNSIGNED = {**_INT, "floordiv": "divui", "mod": "remui", "shr": "shrui"}
_FLOAT = {"add": "addf", "sub": "subf", "mul": "mulf", "div": "divf", "mod": "remf"}


_ORDER = ("lt", "le", "gt", "ge")


def _binary(name: str, a: Any, b: Any) -> Value:
    x, y = common(a, b)
    table = _FLOAT if is_float(x.dtype) else _UNSIGNED if x.dtype[0] == "u" or x.dtype == "i1" else _INT
    if name not in table or (x.dtype == "i1" and name not in ("and", "or", "xor")):
        raise complain(f"{name} of {x!r} and {y!r}: there is none of {x.dtype}")
    with place():
        if name == "mod" and table is _INT:
            return x - x // y * y       # has the divisor's sign, as in Python
        made: Callable[..., Any] = getattr(arith_d, table[name])
        return Value(made(x.ir, y.ir), x.dtype)


def _divide(a: Any, b: Any) -> Value:
    x, y = common(a, b)
    if not is_float(x.dtype):
        x, y = convert(x, "f32"), convert(y, "f32")
    with place():
        return Value(arith_d.divf(x.ir, y.ir), x.dtype)


def _compare(name: str, a: Any, b: Any) -> Value:
    x, y = common(a, b)
    with place():
        if is_float(x.dtype):
            predicate = getattr(arith_d.CmpFPredicate, {"eq": "OEQ", "ne": "UNE"}.get(name, f"O{name.upper()}"))
            return Value(arith_d.cmpf(predicate, x.ir, y.ir), "i1")
        sign = "" if name in ("eq", "ne") else "u" if x.dtype[0] == "u" or x.dtype == "i1" else "s"
        predicate = getattr(arith_d.CmpIPredicate, sign + name)
        return Value(arith_d.cmpi(predicate, x.ir, y.ir), "i1")


def convert(v: Value, dtype: Any) -> Value:
    """v as `dtype`."""
    from xcc.dialects.xt.types import dtype_name

    to = "index" if dtype == "index" else dtype_name(dtype)
    if to == v.dtype:
        return v
    if signless(to) == signless(v.dtype):
        return Value(v.ir, to)
    element = ir.Type.parse(signless(to))
    kind = ir.VectorType.get(list(v.shape), element) if v.shape else element
    if to == "i1":
        return v != 0
    with place():
        return Value(_converted(v, to, kind), to)


def _converted(v: Value, to: str, kind: Any) -> Any:
    unsigned = v.dtype[0] == "u" or v.dtype == "i1"
    if is_float(to):
        if not is_float(v.dtype):
            whole = convert(v, "i64") if v.dtype == "index" else v
            return (arith_d.uitofp if unsigned else arith_d.sitofp)(kind, whole.ir)
        return _other_float(v, to, kind)
    if is_float(v.dtype):
        if to == "index":
            return convert(convert(v, "i64"), "index").ir
        return (arith_d.fptoui if to[0] == "u" else arith_d.fptosi)(kind, v.ir)
    if "index" in (to, v.dtype):
        return (arith_d.index_castui if unsigned else arith_d.index_cast)(kind, v.ir)
    have, want = (ir.Type.parse(signless(d)).width for d in (v.dtype, to))
    if want < have:
        return arith_d.trunci(kind, v.ir)
    return (arith_d.extui if unsigned else arith_d.extsi)(kind, v.ir)


def _other_float(v: Value, to: str, kind: Any) -> Any:
    have, want = (ir.Type.parse(d).width for d in (v.dtype, to))
    if want == have:
        return convert(convert(v, "f32"), to).ir
    return arith_d.truncf(kind, v.ir) if want < have else arith_d.extf(kind, v.ir)
