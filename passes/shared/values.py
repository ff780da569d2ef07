"""Builders of single operations: constants, scalars, and vectors of one dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xcc._mlir import Attribute, Operation, Type, Value, arith_d, ir


def op(name: str, results: Sequence[Type], operands: Sequence[Value], **attributes: Attribute) -> Value:
    """Builds the op `name` at the current insertion point; returns its one result, or the op."""
    built = ir.Operation.create(name, results=list(results), operands=list(operands), attributes=attributes)
    return built.results[0] if len(results) == 1 else built


def with_operands(source: Operation, operands: Iterable[Value], results: Iterable[Type] | None = None,
                  attributes: Mapping[str, Attribute] | None = None) -> Operation:
    """Builds `source` on other operands, with other types of results and attributes where given; regions are empty."""
    return ir.Operation.create(source.name, operands=list(operands), regions=len(source.regions),
                               results=[r.type for r in source.results] if results is None else list(results),
                               attributes=dict(source.attributes.items() if attributes is None else attributes))


def whole_transfer(rank: int, segments: Sequence[int]) -> dict[str, Attribute]:
    """The attributes of a vector.transfer of all dims of an array, all of it there; `segments`: how many operands of
    each kind it has."""
    return {"in_bounds": ir.ArrayAttr.get([ir.BoolAttr.get(True)] * rank),
            "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments))}


def is_vector(value: Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def is_elementwise(operation: Operation) -> bool:
    return operation.name.startswith(("arith.", "math.")) and operation.name != "arith.constant"


def i64s(values: Sequence[int]) -> Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))


def vec(width: int, elem: Type) -> Type:
    return ir.VectorType.get([width], elem)


def index(value: int) -> Value:
    t = ir.IndexType.get()
    return op("arith.constant", [t], [], value=ir.IntegerAttr.get(t, value))


def as_index(value: Value) -> Value:
    """An integer as an index."""
    return value if isinstance(value.type, ir.IndexType) else op("arith.index_cast", [ir.IndexType.get()], [value])


def predicate(name: str) -> Attribute:
    """Of arith.cmpi: "eq", "slt", ..."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), arith_d.CmpIPredicate[name].value)


def scalar_attr(elem: Type, value: float) -> Attribute:
    return ir.FloatAttr.get(elem, float(value)) if isinstance(elem, ir.FloatType) else ir.IntegerAttr.get(elem, value)


def splat_constant(t: Type, value: float) -> Value:
    """A constant of type `t` (vector or scalar) whose every element is `value`."""
    if isinstance(t, ir.VectorType):
        attr = ir.DenseElementsAttr.get_splat(t, scalar_attr(t.element_type, value))
    else:
        attr = scalar_attr(t, value)
    return op("arith.constant", [t], [], value=attr)


def dense_constant(elem: Type, values: Sequence[int]) -> Value:
    t = vec(len(values), elem)
    attr = ir.DenseElementsAttr.get([scalar_attr(elem, v) for v in values], t)
    return op("arith.constant", [t], [], value=attr)


def shuffle(a: Value, b: Value, mask: Sequence[int]) -> Value:
    elem = ir.VectorType(a.type).element_type
    return op("vector.shuffle", [vec(len(mask), elem)], [a, b], mask=i64s(mask))


def splat(value: Value, width: int) -> Value:
    """The scalar `value` in every lane."""
    return op("vector.broadcast", [vec(width, value.type)], [value])


def extract(chunk: Value, lane: int) -> Value:
    """Lane `lane` of a chunk; the scalar itself where the chunk is a splat of one."""
    owner = chunk.owner
    if isinstance(owner, ir.Operation) or hasattr(owner, "operation"):
        source = owner.operation
        if source.name == "vector.broadcast" and not isinstance(source.operands[0].type, ir.VectorType):
            return source.operands[0]
        if source.name == "vector.from_elements":
            return source.operands[lane]
    elem = ir.VectorType(chunk.type).element_type
    return op("vector.extract", [elem], [chunk], static_position=i64s([lane]))


def is_less(a: Sequence[Value], b: Sequence[Value], signed: bool = True) -> Value:
    """Whether the number of the words `a` is less than that of `b`; the highest words come first."""
    lt, eq = arith_d.CmpIPredicate.slt if signed else arith_d.CmpIPredicate.ult, arith_d.CmpIPredicate.eq
    less = arith_d.cmpi(lt, a[-1], b[-1])
    for x, y in zip(a[-2::-1], b[-2::-1], strict=True):
        less = arith_d.ori(arith_d.cmpi(lt, x, y), arith_d.andi(arith_d.cmpi(eq, x, y), less))
    return less


def conjunction(conditions: Iterable[Value | None]) -> Value | None:
    """Whether all of `conditions` hold, of which None always does; None where all do."""
    total = None
    for c in conditions:
        total = c if total is None else total if c is None else op("arith.andi", [c.type], [total, c])
    return total


def pack(scalars: Sequence[Value]) -> Value:
    """The scalars as one chunk."""
    if len(scalars) > 1 and all(s == scalars[0] for s in scalars):
        return splat(scalars[0], len(scalars))
    return op("vector.from_elements", [vec(len(scalars), scalars[0].type)], list(scalars))
