"""What is known of a program's offsets: that they are not negative, are multiples, lie inside a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, ir, parent_op
from xcc.passes.tile.lowering.views import BufferView

if TYPE_CHECKING:
    from xcc.passes.tile.lowering.body import Body

_KEEP = ("arith.addi", "arith.muli", "arith.floordivsi", "arith.divsi", "arith.divui", "arith.remui", "arith.minsi",
         "arith.minui", "arith.ceildivsi", "arith.remsi", "tile.broadcast", "tile.reshape", "arith.extui")
"""Not negative where no operand is."""


def nonnegative(value: Value) -> bool:
    """Whether an index of the program is known to be 0 or more."""
    if isinstance(value.owner, ir.Block):
        parent = parent_op(value)
        return parent.name == "scf.for" and ir.BlockArgument(value).arg_number == 0 and nonnegative(parent.operands[0])
    op = value.owner.operation
    if op.name in ("tile.program_id", "tile.num_programs", "memref.dim", "tile.iota"):
        return True
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.IntegerAttr) and attribute.value >= 0
    if op.name in ("arith.maxsi", "arith.andi"):
        return any(nonnegative(v) for v in op.operands)
    if op.name == "arith.select":
        return all(nonnegative(v) for v in list(op.operands)[1:])
    by = modulus(op)
    if by is not None:
        return nonnegative(by)
    return op.name in _KEEP and all(nonnegative(v) for v in op.operands)


def modulus(op: Operation) -> Value | None:
    """The b of a - a // b * b, which is what Python's a % b is; None for other operations."""
    if op.name != "arith.subi" or isinstance(op.operands[1].owner, ir.Block):
        return None
    product = op.operands[1].owner.operation
    if product.name != "arith.muli" or isinstance(product.operands[0].owner, ir.Block):
        return None
    quotient = product.operands[0].owner.operation
    same = quotient.name == "arith.floordivsi" and list(quotient.operands) == [op.operands[0], product.operands[1]]
    return product.operands[1] if same else None


def is_multiple(value: Value, n: int) -> bool:
    """Whether an index of the program is known to be a multiple of `n`."""
    if isinstance(value.owner, ir.Block):
        loop = parent_op(value)
        return loop.name == "scf.for" and ir.BlockArgument(value).arg_number == 0 \
            and is_multiple(loop.operands[0], n) and is_multiple(loop.operands[2], n)
    op = value.owner.operation
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.IntegerAttr) and attribute.value % n == 0
    if op.name == "arith.muli":
        return any(is_multiple(v, n) for v in op.operands)
    return op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi") \
        and all(is_multiple(v, n) for v in op.operands)


def is_within(body: Body, offset: Value, view: BufferView, dim: int) -> bool:
    """Whether a scalar offset is known to lie inside dim `dim` of a view."""
    if isinstance(offset.owner, ir.Block):
        return False
    op = offset.owner.operation
    size = view.sizes[dim]
    if op.name == "arith.constant":
        return isinstance(size, int) and 0 <= ir.IntegerAttr(op.attributes["value"]).value < size
    if op.name != "tile.program_id" or not view.names:
        return False
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    return axis < len(body.grid) and body.grid[axis] == view.names[view.order[dim]]
