"""What the body of an op of a kernel says of its reduction: how values are combined, and what is multiplied."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Attribute, Value, ir, owner_op
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.shared.lossy import LOSSY

KINDS = {"arith.addf": "add", "arith.addi": "add", "arith.mulf": "mul", "arith.muli": "mul",
         "arith.maximumf": "maximumf", "arith.minimumf": "minimumf", "arith.maxnumf": "maxnumf",
         "arith.minnumf": "minnumf", "arith.maxsi": "maxsi", "arith.minsi": "minsi", "arith.maxui": "maxui",
         "arith.minui": "minui", "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
"""The combining op of a reduction -> the kind of vector.multi_reduction."""
EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")


def combiner(op: Op, n: int) -> str | None:
    """The op that combines result n's accumulator with the new value, when a lane reduction can do the same.

    Results that come from one loop have each their own where none is made of another's accumulator.
    """
    accumulators = list(op.block.arguments)[len(op.inputs):]
    yielded = op.yielded[n]
    owner = yielded.owner
    if isinstance(owner, ir.Block) or owner.name not in KINDS or accumulators[n] not in list(owner.operands):
        return None
    new = [v for v in owner.operands if v != accumulators[n]]
    return owner.name if len(new) == 1 and not _is_made_of(new[0], accumulators) else None


def _is_made_of(value: Value, arguments: list[Value]) -> bool:
    """Whether a body value depends on one of its block's `arguments`."""
    owner = value.owner
    return value in arguments if isinstance(owner, ir.Block) else any(_is_made_of(v, arguments) for v in owner.operands)


def product_operands(op: Op) -> tuple[Value, Value] | None:
    """The factors (body values) of a sum of products over different tensors' loops, else None."""
    if len(op.results) != 1 or combiner(op, 0) not in ("arith.addf", "arith.addi") or len(op.inputs) < 2:
        return None
    total = owner_op(op.yielded[0])
    accumulator = op.block.arguments[len(op.inputs)]
    factors = [v for v in total.operands if v != accumulator]
    if len(factors) != 1 or isinstance(factors[0].owner, ir.Block):
        return None
    product = factors[0].owner
    if product.name not in ("arith.mulf", "arith.muli"):
        return None
    used = [loops_of(op, v) for v in product.operands]
    shared = {n for n, r in enumerate(op.reduction) if r}
    if not all(used):       # one number, repeated, is no operand
        return None
    if used[0] - shared == used[1] - shared and not (used[0] ^ used[1]):
        return None
    return product.operands[0], product.operands[1]


def is_lossy(op: Op) -> bool:
    """Whether a sum of products may round its f32 factors to tf32."""
    return any(o.operation.name == "arith.mulf" and LOSSY in o.operation.attributes for o in op.block.operations)


def loops_of(op: Op, value: Value) -> set[int]:
    """The loops that a body value depends on through the inputs it reads."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        number = ir.BlockArgument(value).arg_number
        if owner != op.block or number >= len(op.inputs):
            return set()
        return {int(s[1:]) for e in op.inputs[number][1] for s in symbolic.symbols_of(e)}
    if owner.name == "linalg.index":
        return {int(owner.attributes["dim"].value)}
    return set().union(*(loops_of(op, v) for v in owner.operands), set())


def narrow(value: Value) -> Value:
    """What a widening conversion reads, or the value itself."""
    owner = value.owner
    return value if isinstance(owner, ir.Block) or owner.name not in EXTENSIONS else owner.operands[0]


def is_zero(attr: Attribute) -> bool:
    """Whether a constant's attribute is a number that is 0."""
    return isinstance(attr, ir.IntegerAttr | ir.FloatAttr) and not attr.value
