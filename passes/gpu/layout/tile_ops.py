"""What passes ask of the operations and values of a tile program, and the attributes that they agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Block, Operation, Type, Value, ir, maker
from xcc.diagnostics import UserError
from xcc.passes.gpu.layout.linear import Layout

LAYOUT = "xcc.layout"       # of the vectors that an op gives, or that it stores
CONVERT = "builtin.unrealized_conversion_cast"      # of a vector to its own type: to another layout


def step_of(value: Value, block: Block, fits: Callable[[Any], bool]) -> list[Operation] | None:
    """The operations of a loop's `block` that `value` needs, in order; None where one does not fit, or needs a value
    that the loop carries."""
    needed: set[Operation] = set()
    todo = [value]
    while todo:
        v = todo.pop()
        op = maker(v)
        if op is None:
            if v.owner == block and ir.BlockArgument(v).arg_number:
                return None
            continue
        if op.block != block or op in needed:
            continue
        if not fits(op):
            return None
        needed.add(op)
        todo += list(op.operands)
    return [op.operation for op in block.operations if op.operation in needed]


def splat(value: Value) -> int | None:
    """The number that a constant is, or that all elements of a constant vector are."""
    op = maker(value, "arith.constant")
    if op is None:
        return None
    attr = op.attributes["value"]
    if isinstance(attr, ir.IntegerAttr):
        return int(attr.value)
    if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
        return None
    fixed = ir.DenseElementsAttr(attr).get_splat_value()
    return int(fixed.value) if isinstance(fixed, ir.IntegerAttr) else None


def config_int(func: Operation, key: str, default: int) -> int:
    """An integer of the GPU's part of the kernel's ``xcc.config``."""
    attributes = func.operation.attributes
    config = attributes["xcc.config"] if "xcc.config" in attributes else {}
    if key in config:
        raise UserError(f"xcc.config: {key} is one of gpu = {{...}}")
    return int(config["gpu"][key].value) if "gpu" in config and key in config["gpu"] else default


def int_attribute(op: Operation, name: str) -> int:
    """An integer attribute of `op`; 0 where it has none."""
    return int(ir.IntegerAttr(op.attributes[name]).value) if name in op.attributes else 0


def set_int(op: Operation, name: str, value: int) -> None:
    """Gives `op` an integer attribute."""
    op.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def shape_of(value: Value) -> tuple[int, ...]:
    return tuple(ir.VectorType(value.type).shape)


def element_bytes(element_type: Type) -> int:
    """Bytes of one element in memory; index counts as 8, i1 as 1."""
    if isinstance(element_type, ir.IndexType):
        return 8
    width: int = element_type.width
    return max(1, width // 8)


def words(layout: Layout, value: Value) -> int:
    """Registers of 4 bytes that `value`, distributed by `layout`, takes in a thread."""
    return -(-layout.registers * element_bytes(ir.VectorType(value.type).element_type) // 4)


def yielded(op: Operation, i: int) -> Value:
    """What the first region of `op` yields as its result number `i`."""
    block = op.regions[0].blocks[0]
    return block.operations[len(block.operations) - 1].operands[i]
