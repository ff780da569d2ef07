"""Reading ops of the IR: their definition, attributes as Python values, operands as declared, types as plain data."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Value, ir, parent_op
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.dialects.xt.op import OpDefinition

CLASSES: dict[str, type[OpDefinition]] = {}  # by the name in the IR


class InferError(Exception):
    """The operands or attributes of an op do not fit; the message names what is wrong."""


class Attrs(types.SimpleNamespace):
    """An op's attributes as Python values, by name."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no attribute '{name}'")


def op_class(op: Operation) -> type[OpDefinition] | None:
    """The definition of an op of the IR; None when it is not one of ours."""
    return CLASSES.get(op.operation.name)


def attrs_of(op: Operation) -> Attrs:
    """The attributes of an op (OpView or Operation) as Python values; InferError where one is missing."""
    stored, fields = op.operation.attributes, CLASSES[op.operation.name].attribute_fields
    missing = [k for k, f in fields.items() if k not in stored and not f.optional]
    if missing:
        raise InferError(f"needs the attribute{'s' * (len(missing) > 1)} {', '.join(missing)}")
    return Attrs(**{k: f.decode(stored[k]) if k in stored else f.default for k, f in fields.items()})


def grouped_operands(op: Operation) -> tuple[Any, ...]:
    """The operands as the class declares them: a value, None, or a tuple of values for each field."""
    kinds = [f.kind for f in CLASSES[op.operation.name].operand_fields.values()]
    values = list(op.operation.operands)
    out: list[Any] = []
    for kind, size in zip(kinds, _segments(op.operation, kinds, len(values)), strict=True):
        group, values = values[:size], values[size:]
        out.append(tuple(group) if kind == "many" else group[0] if group else None)
    return tuple(out)


def _segments(op: Operation, kinds: list[str], count: int) -> list[int]:
    """How many operands each field has; stored in the op only when two fields can vary."""
    varying = len(kinds) - kinds.count("one")
    if varying > 1:
        return list(op.attributes["operandSegmentSizes"])
    return [1 if k == "one" else count - (len(kinds) - 1) for k in kinds]


def operand_types(op: Operation) -> tuple[Any, ...]:
    return tuple(typed(v) for v in grouped_operands(op))


def typed(value: Value | Sequence[Value] | None) -> Any:
    """The TensorType of a value; a tuple of them for a tuple; None for None."""
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple(TensorType.of(v) for v in value)
    return TensorType.of(value)


def agree(a: TensorType, b: TensorType) -> bool:
    """Equal element types, and no dim that is provably different."""
    return a.dtype == b.dtype and a.rank == b.rank and all(map(same_dims, a.shape, b.shape))


def same_dims(a: Dim, b: Dim) -> bool:
    """False when `a` and `b` differ for every value of their symbols."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    for pairs in _WATCHERS:
        pairs.append((a, b))
    return True


_WATCHERS: list[list[tuple[Dim, Dim]]] = []


@contextmanager
def assumed_equal() -> Iterator[list[tuple[Dim, Dim]]]:
    """Gives a list that gets each pair of different expressions which :func:`same_dims` takes to be equal."""
    pairs: list[tuple[Dim, Dim]] = []
    _WATCHERS.append(pairs)
    try:
        yield pairs
    finally:
        _WATCHERS.remove(pairs)


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` made non-negative; InferError when out of range."""
    if not -rank <= axis < rank:
        raise InferError(f"{what} {axis} is out of range for rank {rank}")
    return axis % rank if rank else 0


def check_rank(what: str, values: Sequence[Any], rank: int) -> None:
    if len(values) != rank:
        raise InferError(f"{what} has {len(values)} entries for rank {rank}")


def value_symbols(argument: Value) -> list[str]:
    """The symbols that the elements of a function's argument are, in order: its attribute ``xt.values``."""
    attributes = parent_op(argument).attributes
    if "arg_attrs" not in attributes:
        return []
    own = ir.DictAttr(ir.ArrayAttr(attributes["arg_attrs"])[ir.BlockArgument(argument).arg_number])
    return [ir.StringAttr(s).value for s in ir.ArrayAttr(own["xt.values"])] if "xt.values" in own else []


def block_results(block: Block) -> list[Value]:
    """What `block` returns or yields."""
    return list(block.operations[len(block.operations) - 1].operation.operands)
