"""Marks updates of a few elements that write where the value that they update lies.

    %c: argument "past"
    %n = xt.dynamic_update_slice(%c, %row, %i, ...)         the result has xt.updates = "past", or reads nothing but %n
becomes
    %n = xt.dynamic_update_slice(%c, %row, %i, ...) {xt.in_place}

The op means what it did; the mark says how. Its kernel, a loop kernel, writes what changes and nothing else, as its
output is taken to hold the operand already; the pass ``place-results`` gives both the same memory where nobody reads
the old value later, else it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from xcc._mlir import Block, Module, Operation, Value, ir
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.load_time import VIEWS
from xcc.passes.xt.graph.memory_uses import UPDATES, MemoryUses
from xcc.passes.xt.graph.op_graph import IN_PLACE, nominal_count
from xcc.passes.xt.graph.rewrite import blocks_of, dim_bounds, name_of

SHARE = 4       # what is changed is at most this part of a temporary: a kernel that writes all of it may do more
WALKED = 32     # updates that the threads of a GPU walk in the time of other ways to order them


@register_pass
class UpdateInPlace(Pass):
    """Marks updates (dynamic_update_slice, scatters) whose operand nobody reads later with ``xt.in_place``.

    Of an argument of @main that a result updates (``xt.updates``) or that a loop carries, all those on the way from it
    to the result; of other values, those that change few elements.
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds, threads = dim_bounds(module), ctx.chip is not None and ctx.chip.has_threads
        for function in module.body:
            if function.operation.name == "func.func" and "xt.kernel" not in function.attributes:
                for block in blocks_of(function):
                    _mark_block(block, bounds, threads)


def _mark_block(block: Block, bounds: Mapping[str, tuple[int, int]], threads: bool) -> None:
    uses = MemoryUses(block)
    found = {op: None for op in ops_of_updates(block) if name_of(op) in UPDATES}
    for op in block.operations:
        operation = op.operation
        if name_of(operation) in UPDATES and uses.owns(operation.operands[0]) \
                and uses.end_at(operation.operands[0], operation) and _is_small(operation, bounds, threads):
            found[operation] = None
    for op in list(found):      # behind all look-ups: an operation's hash changes with its attributes
        op.attributes[IN_PLACE] = ir.UnitAttr.get(op.context)


def ops_of_updates(block: Block) -> list[Operation]:
    """The updates, and views between them, on the way from arguments of `block` to what takes their place."""
    uses = MemoryUses(block)
    return [op for value, argument in xt.carried_values(block) for op in _chain(value, argument, uses)]


def _chain(value: Value, argument: Value, uses: MemoryUses) -> list[Operation]:
    """The updates and views from `argument` to `value`, but for loops that carry it; none where another op makes a part
    of it, or reads the old value later."""
    found = []
    while value != argument:
        op = uses.maker(value)
        operand = _overwritten(op, value) if op is not None else None
        if op is None or operand is None:
            return []
        if name_of(op) not in VIEWS and not uses.end_at(op.operands[operand], op, operand):
            return []
        if name_of(op) not in ("while", "scan"):
            found.append(op)
        value = op.operands[operand]
    return found


def _overwritten(op: Operation, result: Value) -> int | None:
    """Which operand of `op` may have the memory of `result`."""
    if name_of(op) in (*UPDATES, *VIEWS):
        return 0
    number = list(op.results).index(result)
    carried = {"while": len(op.results), "scan": xt.carried_count(op) if name_of(op) == "scan" else 0}
    return number if number < carried.get(name_of(op), 0) else None


def _is_small(op: Operation, bounds: Mapping[str, tuple[int, int]], threads: bool) -> bool:
    updates = op.operands[UPDATES[name_of(op)]]
    if threads and name_of(op) != "dynamic_update_slice":
        a, indices = xt.attrs_of(op), xt.shape_of(op.operands[1])
        walked = (indices[a.axis],) if name_of(op) == "scatter_elements" else indices[:-1]
        if nominal_count(walked, dict(bounds)) > WALKED:
            return False
    count = nominal_count(xt.shape_of(updates), dict(bounds))
    return SHARE * count <= nominal_count(xt.shape_of(op.operands[0]), dict(bounds))
