"""join-stores: on CPUs, stores of tiles that are made of the same values are made by the same loops.

    vector.transfer_write %m, %x[%i]
    vector.transfer_write %v, %y[%i]
    ->
    vector.transfer_write %m, %x[%i] {xcc.together = 0 : i64}
    vector.transfer_write %v, %y[%i] {xcc.together = 0 : i64}

They have one shape and place, each a buffer of its own; nothing between them reads what they write, or needs loops of
its own. `retile` makes one nest where the last of them stands, of what is read once, in registers. Left out, each has
its own loops, and what several of them need is copied to the stack first: the step of an optimizer.
"""

from __future__ import annotations

from xcc._mlir import Block, Module, Operation, Value, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import is_vector
from xcc.passes.tile.lowering.function import BLOCKS
from xcc.passes.tile.nests.choice import LEAVES, LOADS, ahead_of, dims_of, is_lazy, is_view, scans_of, writes
from xcc.passes.tile.nests.together import TOGETHER
from xcc.passes.walk import ops_where

MOST = 8        # stores of a nest: each is a stream of memory


@register_pass
class JoinStores(Pass):
    """Has stores that share values made by one nest of loops."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in module.body.operations:
            if func.operation.name == "func.func" and BLOCKS in func.attributes:
                blocks = {o.block for o in ops_where(func, lambda op: op.name == "vector.transfer_write")}
                for block in blocks:
                    _join(block)


def _join(block: Block) -> None:
    number, group = 0, list[Operation]()
    for o in [*(o.operation for o in block.operations), None]:
        if o is not None and o.name == "vector.transfer_write":
            if group and _fits(o, group):
                group.append(o)
                continue
        elif o is not None and (not group or _stays(o, group)):
            continue
        if len(group) > 1:
            for store in group:
                store.attributes[TOGETHER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
            number += 1
        group = [o] if o is not None and o.name == "vector.transfer_write" and not scans_of(o.operands[0]) else []


def _fits(store: Operation, group: list[Operation]) -> bool:
    """Whether `store` has the shape and place of those in `group`, and shares a value with one."""
    first = group[0]
    if len(group) == MOST or scans_of(store.operands[0]) or store.operands[1] in [s.operands[1] for s in group] \
            or _place(store) != _place(first) or dims_of(store) != dims_of(first) \
            or ir.VectorType(store.operands[0].type).shape != ir.VectorType(first.operands[0].type).shape:
        return False
    made = _made_of(store)
    return any(made & _made_of(s) for s in group)


def _place(store: Operation) -> list[Value]:
    return list(store.operands)[2:2 + ir.MemRefType(store.operands[1].type).rank]


def _made_of(store: Operation) -> set[Operation]:
    """What is read or computed for a store."""
    return {o for o in ahead_of(store.operands[0])
            if o.name not in LEAVES and o.name != "arith.constant" and not is_view(o)}


def _stays(op: Operation, group: list[Operation]) -> bool:
    """Whether `op`, behind the stores in `group`, may be computed ahead of them or in their loops."""
    if len(op.regions) or writes(op):
        return False
    if not any(map(is_vector, op.results)):
        return op.name.startswith(("arith.", "memref.dim", "gpu.barrier"))      # a thread computes an instance
    if op.name in LOADS:
        return op.operands[0] not in [s.operands[1] for s in group]
    return is_lazy(op) and not (is_view(op) and any(o.name in LOADS for o in ahead_of(op.results[0])))
