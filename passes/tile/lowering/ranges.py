"""What is known of a program's offsets: that they are not negative, are multiples, lie inside a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, ir, owner_op, parent_op
from xcc.passes.tile.lowering.views import BufferView

if TYPE_CHECKING:
    from xcc.passes.tile.lowering.body import Body

_KEEP = ("arith.addi", "arith.muli", "arith.floordivsi", "arith.divsi", "arith.divui", "arith.remui", "arith.minsi",
         "arith.minui", "arith.ceildivsi", "arith.remsi", "tile.broadcast", "tile.reshape", "arith.extui")
"""Not negative where no operand is."""


def nonnegative(value: Value, assumed: frozenset[Value] = frozenset()) -> bool:
    """Whether an index of the program is known to be 0 or more, where those of `assumed` are."""
    passed = _held(value)
    if value in assumed or passed is not None:
        return value in assumed or all(nonnegative(v, assumed | {value}) for v in passed or ())
    if isinstance(value.owner, ir.Block):
        return _counts(value) and nonnegative(parent_op(value).operands[0], assumed)
    op = value.owner.operation
    if op.name in ("tile.program_id", "tile.num_programs", "memref.dim", "tile.iota"):
        return True
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.IntegerAttr) and attribute.value >= 0
    if op.name in ("arith.maxsi", "arith.andi"):
        return any(nonnegative(v, assumed) for v in op.operands)
    if op.name == "arith.select":
        return all(nonnegative(v, assumed) for v in list(op.operands)[1:])
    by = modulus(op)
    if by is not None:
        return nonnegative(by, assumed)
    return op.name in _KEEP and all(nonnegative(v, assumed) for v in op.operands)


def _counts(argument: Value) -> bool:
    """Whether it is the counter of a scf.for."""
    return parent_op(argument).name == "scf.for" and ir.BlockArgument(argument).arg_number == 0


def _held(value: Value) -> list[Value] | None:
    """Of what a loop carries on, or a branch gives, the values that it may have; None of others."""
    inside = isinstance(value.owner, ir.Block)
    op = parent_op(value) if inside else owner_op(value)
    n = ir.BlockArgument(value).arg_number if inside else ir.OpResult(value).result_number
    if op.name == "scf.for" and not (inside and n == 0):
        n -= inside
        return [op.operands[3 + n], _ends(op, 0)[n]]
    if op.name == "scf.if":
        return [_ends(op, r)[n] for r in range(len(op.regions))]
    if op.name != "scf.while":
        return None
    before = inside and value.owner == op.regions[0].blocks[0]
    return [op.operands[n], _ends(op, 1)[n]] if before else [_ends(op, 0)[1 + n]]


def _ends(op: Operation, region: int) -> list[Value]:
    """The operands of the last operation of a region."""
    return list(list(op.regions[region].blocks[0].operations)[-1].operands)


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


def is_multiple(value: Value, n: int, assumed: frozenset[Value] = frozenset()) -> bool:
    """Whether an index of the program is known to be a multiple of `n`, where those of `assumed` are."""
    passed = _held(value)
    if value in assumed or passed is not None:
        return value in assumed or all(is_multiple(v, n, assumed | {value}) for v in passed or ())
    if isinstance(value.owner, ir.Block):
        loop = parent_op(value)
        return _counts(value) and all(is_multiple(loop.operands[i], n, assumed) for i in (0, 2))
    op = value.owner.operation
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.IntegerAttr) and attribute.value % n == 0
    if op.name == "arith.muli":
        return any(is_multiple(v, n, assumed) for v in op.operands)
    return op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi") \
        and all(is_multiple(v, n, assumed) for v in op.operands)


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
