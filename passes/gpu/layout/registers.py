"""A thread's values: 1-D vectors of its registers, and how their element types are kept in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc._mlir import Type, Value, arith_d, ir, maker, vector_d
from xcc.passes.gpu.layout.linear import bits
from xcc.passes.shared.regions import when
from xcc.passes.shared.values import vec


def registers_of(value: Value) -> list[Value]:
    """The scalars of a 1-D register vector."""
    made = maker(value, "vector.from_elements")
    if made is not None:
        return list(made.operands)
    return [vector_d.extract(value, [], [i]) for i in range(ir.VectorType(value.type).shape[0])]


def from_registers(scalars: Sequence[Value]) -> Value:
    return vector_d.from_elements(vec(len(scalars), scalars[0].type), list(scalars))


def select_registers(value: Value, indices: Sequence[int]) -> Value:
    """A register vector of the named registers of `value`."""
    count = ir.VectorType(value.type).shape[0]
    if list(indices) == list(range(count)):
        return value
    made = maker(value, "vector.from_elements")
    if made is not None:
        return from_registers([made.operands[i] for i in indices])
    return vector_d.shuffle(value, value, list(indices))


def register_groups(count: int, run: Sequence[int]) -> list[list[int]]:
    """Registers split into runs: each group walks the bits `run`, groups go over the other bits in order."""
    rest = [b for b in range(count.bit_length() - 1) if b not in run]
    groups = []
    for outer in range(1 << len(rest)):
        base = sum(1 << rest[i] for i in bits(outer))
        groups.append([base + sum(1 << run[i] for i in bits(inner)) for inner in range(1 << len(run))])
    return groups


def guarded(condition: Value | None, build: Callable[[], object]) -> None:
    """Runs `build` inside an scf.if of `condition`, or plainly when it is None."""
    if condition is None:
        build()
        return
    with when(condition):
        build()


def memory_type(element_type: Type) -> Type:
    """How a register's element type is kept in shared memory: i1 as i8, index as i64."""
    if isinstance(element_type, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    if isinstance(element_type, ir.IntegerType) and element_type.width < 8:
        return ir.IntegerType.get_signless(8)
    return element_type


def to_memory(value: Value, stored: Type) -> Value:
    t = ir.VectorType(value.type)
    if t.element_type == stored:
        return value
    out = vec(t.shape[0], stored)
    return arith_d.index_cast(out, value) if isinstance(t.element_type, ir.IndexType) else arith_d.extui(out, value)


def from_memory(value: Value, element_type: Type) -> Value:
    t = ir.VectorType(value.type)
    if t.element_type == element_type:
        return value
    out = vec(t.shape[0], element_type)
    return arith_d.index_cast(out, value) if isinstance(element_type, ir.IndexType) else arith_d.trunci(out, value)
