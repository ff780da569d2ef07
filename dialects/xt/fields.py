"""What an op class declares: operands, results, regions and attributes with Python values.

    class Softmax(XtOp, name="softmax"):
        x = operand()
        axis = integer(-1)

Each attribute kind says how its Python value is stored as an MLIR attribute and read back.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcc._mlir import Attribute, ir
from xcc.dialects.xt.base import dims_attr, dims_from_attr
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.reading import Attrs, InferError, axis_of, check_rank
from xcc.dialects.xt.types import dtype_name, numpy_dtype

REQUIRED: Any = object()


@dataclass(frozen=True)
class OperandField:
    """kind: "one", "optional" or "many"."""

    kind: str = "one"


@dataclass(frozen=True)
class RegionField:
    pass


@dataclass(frozen=True)
class AttributeField:
    """`encode` makes the MLIR attribute from a Python value, `decode` reads it back; `complete` says what a value is,
    by name, of an op whose first operand has so many dims. optional: it is stored only where it is not the default."""

    kind: str
    default: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    choices: tuple[str, ...] = ()
    complete: Callable[..., object] | None = None
    optional: bool = False


def operand() -> OperandField:
    return OperandField()


def optional() -> OperandField:
    """An operand that may be absent (None)."""
    return OperandField("optional")


def variadic() -> OperandField:
    """Any number of operands, given as a sequence."""
    return OperandField("many")


def region() -> RegionField:
    return RegionField()


def _i64(v: int) -> Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(v))


def _f64(v: float) -> Attribute:
    return ir.FloatAttr.get(ir.F64Type.get(), float(v))


def integer(default: Any = REQUIRED) -> AttributeField:
    return AttributeField("int", default, _i64, lambda a: a.value)


def boolean(default: bool = REQUIRED, optional: bool = False) -> AttributeField:
    return AttributeField("bool", default, lambda v: ir.BoolAttr.get(bool(v)), lambda a: bool(a.value),
                          optional=optional)


def number(default: float = REQUIRED) -> AttributeField:
    """A float, stored as f64."""
    return AttributeField("float", default, _f64, lambda a: a.value)


def text(default: Any = REQUIRED, choices: Sequence[str] = (), optional: bool = False) -> AttributeField:
    """A string; one of `choices` when given."""
    return AttributeField("str", default, ir.StringAttr.get, lambda a: a.value, tuple(choices), optional=optional)


def dims(default: Any = REQUIRED) -> AttributeField:
    """Dims: ints and Exprs, stored as i64 and text."""
    return AttributeField("dims", default, dims_attr, dims_from_attr)


def integers(default: Any = REQUIRED) -> AttributeField:
    return AttributeField("ints", default, lambda v: ir.ArrayAttr.get([_i64(x) for x in v]),
                          lambda a: tuple(x.value for x in ir.ArrayAttr(a)))


def axis(default: int = REQUIRED) -> AttributeField:
    """A dim of the first operand, from the end where it is negative."""
    return replace(integer(default), complete=axis_of)


def axes(default: Sequence[int] | None = REQUIRED) -> AttributeField:
    """Dims of the first operand, all where it is None; stored in order, each once."""
    return replace(integers(default), complete=lambda v, rank, _: tuple(
        sorted({axis_of(d, rank) for d in (range(rank) if v is None else v)})))


def per_dim(value: float = REQUIRED, kind: Callable[..., AttributeField] = integers, but: int = 0) -> AttributeField:
    """An entry for each dim of the first operand `but` for so many, `value` where none is given."""
    def complete(v: Sequence[float] | None, rank: int, what: str) -> Sequence[float]:
        v = (value,) * (rank - but) if v is None else v
        check_rank(what, v, rank - but)
        return v

    return replace(kind(REQUIRED if value is REQUIRED else None), complete=complete)


def take_fields(cls: type) -> None:
    """Takes what a class body declares, and those of what it shares with others, into the class's tables by kind."""
    own = [item for c in reversed(cls.__mro__) for item in vars(c).items()]
    for table, kind in (("operand_fields", OperandField), ("attribute_fields", AttributeField),
                        ("region_fields", RegionField)):
        taken = {k: v for k, v in own if isinstance(v, kind)}
        setattr(cls, table, taken)
        for k in taken.keys() & vars(cls).keys():
            delattr(cls, k)


def check_attributes(op: str, fields: dict[str, AttributeField], given: dict[str, Any]) -> Attrs:
    """Defaults filled in, names and choices checked; TypeError for a name that the op lacks."""
    for k in given:
        if k not in fields:
            raise TypeError(f"{op} has no attribute '{k}'; it has {', '.join(fields) or 'none'}")
    a = Attrs()
    for k, f in fields.items():
        value = given.get(k, f.default)
        if value is REQUIRED:
            raise TypeError(f"{op} needs the attribute '{k}'")
        if f.kind == "dtype" and value is not None and value != "index":     # which positions of tiles are
            value = dtype_name(value)
        elif f.kind in ("dims", "ints", "floats", "strs") and value is not None:
            value = tuple(value)
        setattr(a, k, value)
    check_choices(fields, a)
    return a


def check_choices(fields: dict[str, AttributeField], a: Attrs) -> None:
    for k, f in fields.items():
        if f.choices and getattr(a, k) not in f.choices:
            raise InferError(f"{k} = '{getattr(a, k)}' is none of {', '.join(f.choices)}")


def as_tuple(x: Any) -> tuple[Any, ...]:
    """What `infer` or `evaluate` gives, of one result or none too."""
    return tuple(x) if isinstance(x, (tuple, list)) else () if x is None else (x,)


def complete(fields: dict[str, AttributeField], a: Attrs, types: Sequence[object]) -> None:
    """Completes the attributes `a`; InferError where one does not fit the first operand."""
    for k, f in fields.items():
        if f.complete is not None:
            first = types[0][0] if isinstance(types[0], tuple) and types[0] else types[0]
            setattr(a, k, f.complete(getattr(a, k), getattr(first, "rank", 0), k))


def numbers(default: Any = REQUIRED) -> AttributeField:
    return AttributeField("floats", default, lambda v: ir.ArrayAttr.get([_f64(x) for x in v]),
                          lambda a: tuple(x.value for x in ir.ArrayAttr(a)))


def texts(default: Any = REQUIRED) -> AttributeField:
    return AttributeField("strs", default, lambda v: ir.ArrayAttr.get([ir.StringAttr.get(x) for x in v]),
                          lambda a: tuple(x.value for x in ir.ArrayAttr(a)))


def dtype(default: Any = REQUIRED) -> AttributeField:
    """An element type, in Python its name."""
    return AttributeField("dtype", default, lambda v: ir.TypeAttr.get(ir.Type.parse(v)), lambda a: str(a.value))


def symbol_ref(default: str = REQUIRED) -> AttributeField:
    """The name of a function."""
    return AttributeField("symbol", default, ir.FlatSymbolRefAttr.get, lambda a: a.value)


def dense(default: Array = REQUIRED) -> AttributeField:
    """A numpy array."""
    return AttributeField("dense", default, encode_dense, decode_dense)


def encode_dense(value: Array) -> Attribute:
    """A DenseElementsAttr of the array `value`, of any dtype in NUMPY_DTYPES."""
    array = np.asarray(value, order="C")
    element = ir.Type.parse(dtype_name(array.dtype))
    kind = ir.RankedTensorType.get(list(array.shape), element)
    if array.size == 0:
        return ir.Attribute.parse(f"dense<> : {kind}")
    raw = array.reshape(-1).view(f"u{array.dtype.itemsize}")
    if raw.size > 1 and not (raw != raw[0]).any():
        raw = raw[:1]
    return ir.DenseElementsAttr.get(raw, type=kind)


def decode_dense(attr: Any) -> Array:
    """The array of a DenseElementsAttr, read-only where it can be a view of the attribute."""
    kind = ir.RankedTensorType(attr.type)
    name = str(kind.element_type)
    if name in _BUFFER_TYPES:
        return np.array(attr).astype(numpy_dtype(name), copy=False).reshape(tuple(kind.shape))
    flat = _decode_text(str(attr), name)
    return np.broadcast_to(flat.reshape(()), tuple(kind.shape)) if attr.is_splat else flat.reshape(tuple(kind.shape))


_BUFFER_TYPES = {"f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}


def _decode_text(printed: str, name: str) -> Array:
    """Types without a Python buffer (bf16, f8, i4) are read from the attribute's text."""
    target = numpy_dtype(name)
    body = printed[printed.index("<") + 1:printed.rindex("> :")]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), target)
    out = []
    for token in re.findall(r"[^\[\],\s]+", body):
        if token.startswith("0x"):
            out.append(np.array(int(token, 16), f"u{target.itemsize}").view(target))
        else:
            out.append(np.array(float(token)).astype(target))
    return np.array(out, target)
