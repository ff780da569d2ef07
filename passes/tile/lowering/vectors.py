"""Building blocks of block-level vector code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xcc._mlir import Attribute, Type, Value, arith_d, ir
from xcc.passes.shared.values import i64s, is_vector, op, splat_constant


def shape_of(value: Value) -> tuple[int, ...]:
    return tuple(ir.VectorType(value.type).shape) if is_vector(value) else ()


def element_of(value: Value) -> Type:
    return ir.VectorType(value.type).element_type if is_vector(value) else value.type


def vector_of(shape: Sequence[int], element: Type) -> Type:
    return ir.VectorType.get(list(shape), element) if len(shape) else element


def like(value: Value, element: Type) -> Type:
    """The type of `value` with other elements."""
    return vector_of(shape_of(value), element)


def broadcast(value: Value, shape: Sequence[int]) -> Value:
    """`value` stretched as numpy does it."""
    if shape_of(value) == tuple(shape):
        return value
    return op("vector.broadcast", [vector_of(shape, element_of(value))], [value])


def reshaped(value: Value, shape: Sequence[int]) -> Value:
    """The elements in another shape; of a single one, the scalar where `shape` is empty."""
    while shape_of(value) != tuple(shape) and not isinstance(value.owner, ir.Block) \
            and value.owner.name == "vector.shape_cast":
        value = value.owner.operands[0]
    if shape_of(value) == tuple(shape):
        return value
    if not is_vector(value):
        return broadcast(value, shape)
    if not len(shape):
        return reduced(value, "xor" if not isinstance(element_of(value), ir.FloatType) else "sum",
                       range(len(shape_of(value))))
    return op("vector.shape_cast", [vector_of(shape, element_of(value))], [value])


def transposed(value: Value, order: Sequence[int]) -> Value:
    if list(order) == list(range(len(order))):
        return value
    shape = shape_of(value)
    return op("vector.transpose", [vector_of([shape[d] for d in order], element_of(value))], [value],
              permutation=i64s(order))


def step(shape: Sequence[int], dim: int) -> Value:
    """Each element's place along `dim`, as index."""
    line = op("vector.step", [vector_of([shape[dim]], ir.IndexType.get())], [])
    if len(shape) == 1:
        return line
    return broadcast(reshaped(line, (shape[dim],) + (1,) * (len(shape) - dim - 1)), shape)


_FLOATS = {"sum": -0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_KINDS = {"sum": "add", "prod": "mul", "and": "and", "or": "or", "xor": "xor", "umax": "maxui", "umin": "minui"}


def neutral(kind: str, element: Type) -> float:
    """What changes nothing in a reduction of `kind`."""
    if isinstance(element, ir.FloatType):
        return _FLOATS[kind]
    bits = 64 if isinstance(element, ir.IndexType) else element.width
    return {"sum": 0, "or": 0, "xor": 0, "umax": 0, "prod": 1, "and": -1, "umin": -1,
            "max": -(1 << bits - 1), "min": (1 << bits - 1) - 1}[kind]


def kind_attr(kind: str, element: Type) -> Attribute:
    """``#vector.kind<...>`` of a reduction."""
    if kind in ("max", "min"):
        name = f"{kind}{'imumf' if isinstance(element, ir.FloatType) else 'si'}"
    else:
        name = _KINDS[kind]
    return ir.Attribute.parse(f"#vector.kind<{name}>")


def widened(value: Value, kind: str) -> Value:
    """Elements of fewer than 32 bits in 32, so that `kind` gives the same."""
    element = element_of(value)
    if isinstance(element, ir.IndexType):
        return arith_d.index_cast(like(value, ir.IntegerType.get_signless(64)), value)
    if element.width >= 32:
        return value
    if isinstance(element, ir.FloatType):
        return arith_d.extf(like(value, ir.F32Type.get()), value)
    whole = like(value, ir.IntegerType.get_signless(32))
    return (arith_d.extui if kind[0] == "u" or element.width == 1 else arith_d.extsi)(whole, value)


def narrowed(value: Value, element: Type) -> Value:
    """Back to `element`, from what `widened` gave."""
    if element_of(value) == element:
        return value
    kind = like(value, element)
    if isinstance(element, ir.IndexType):
        return arith_d.index_cast(kind, value)
    return arith_d.truncf(kind, value) if isinstance(element, ir.FloatType) else arith_d.trunci(kind, value)


def reduced(value: Value, kind: str, axes: Sequence[int]) -> Value:
    """The reduction along `axes`."""
    element = element_of(value)
    wide = widened(value, kind)
    left = [n for d, n in enumerate(shape_of(value)) if d not in axes]
    result = vector_of(left, element_of(wide))
    start = splat_constant(result, neutral(kind, element_of(wide)))
    made = op("vector.multi_reduction", [result], [wide, start], kind=kind_attr(kind, element_of(wide)),
              reduction_dims=i64s(sorted(axes)))
    return narrowed(made, element)
