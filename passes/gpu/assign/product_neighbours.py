"""What the products of a tile program hold to suit the ops beside them: their warps, and a thread's columns."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir, maker
from xcc.passes.gpu.assign.natural_layouts import NaturalLayouts
from xcc.passes.gpu.layout.contraction import HELD, RUN, SWAPPED, WARPS, Contraction
from xcc.passes.gpu.layout.tile_ops import yielded
from xcc.passes.gpu.memory.access import Access
from xcc.passes.gpu.vendor import warpgroup
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.targets.base import Chip


def share_rows(op: Operation, chip: Chip, warps: int) -> None:
    """Gives the warps of `op` and of the contraction that its left operand is computed from the same rows, so
    that what lies between them stays in a warp; where results do not lie in lanes as operands do, in a lane, which
    holds a row's neighbours where the instruction's operands change places."""
    first = _product_behind(op.operands[0])
    if first is None:
        return
    plans = [Contraction(o, chip, warps) for o in (first, op)]
    splits = [plan.rows(warps) for plan in plans]
    if splits[0] is None or splits[1] is None \
            or plans[0].maps[2].index(plans[0].m[0]) != plans[1].maps[0].index(plans[1].m[0]):
        return
    for o, split in zip((first, op), splits, strict=True):
        o.attributes[WARPS] = ir.DenseI64ArrayAttr.get(split)
        if not chip.chained_families:       # else lanes hold neighbours along both products' sums as it is
            o.attributes[SWAPPED] = ir.UnitAttr.get()
    op.attributes[HELD] = ir.UnitAttr.get()


def join_columns(op: Operation, chip: Chip, warps: int, natural: NaturalLayouts) -> None:
    """Lets threads hold as many neighbouring columns of the product `op` as its stores take at once, where its
    instruction may be given its columns in any order: the right operand's lie in rows along k."""
    plan = Contraction(op, chip, warps)
    right = natural.of(op.operands[1])
    if not plan.from_shared or right is None or not warpgroup.near_k(plan, 1, right[0]):
        return
    i = plan.instruction
    run = min(_stored_columns(plan, chip.vector_bytes), i.n // 4 if i is not None else 1)
    if run > 2:
        op.attributes[RUN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), run)


def _product_behind(value: Value) -> Operation | None:
    """The contraction that `value` is computed from element by element; None when there is none."""
    seen: set[Operation] = set()
    todo = [value]
    while todo:
        op = maker(todo.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if op.name == "vector.contract":
            return op
        if op.name == "scf.if":
            todo += [yielded(op, 0)] if len(op.results) == 1 else []
        elif is_elementwise(op):
            todo += [v for v in op.operands if is_vector(v)]
    return None


def _stored_columns(plan: Contraction, limit: int) -> int:
    """How many neighbouring columns of a product one access of `limit` bytes stores; 1 where it is not stored along
    them."""
    column = plan.maps[2].index(plan.n[0])
    todo, found = [plan.op.results[0]], 1
    while todo:
        for use in todo.pop().uses:
            user, number = use.owner.operation, use.operand_number
            if user.name == "scf.yield":
                todo.append(user.parent.operation.results[number])
            elif user.name == "vector.transfer_write" and number == 0:
                access = Access(user, limit)
                if access.dims[column] != len(access.sizes) - 1:
                    return 1
                found = max(found, min(access.widest, max(1, limit // access.bytes)))
            elif is_elementwise(user) or user.name == "vector.contract" and number == 2:
                todo += list(user.results)
            elif user.name != "vector.multi_reduction":
                return 1
    return found
