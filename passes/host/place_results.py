"""Which results of @main's ops share memory: what a block gives is made where it is wanted, updates work in place.

    %1 = "xtv.dispatch"(%x) {kernel = @k}                     ->  host.places = ["own"]
    %2 = "xtv.dispatch"(%1, %r) {kernel = @u, xt.in_place}    ->  host.places = ["operand 0"]
    %3 = "xtv.dispatch"(%2) {kernel = @m}                     ->  host.places = ["result 0"]
    func.return %3

Dropped, every result has memory of its own, and what a block gives is copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from xcc._mlir import Block, Module, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.reading import block_results
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.block_memory import BlockMemory
from xcc.passes.host.placement.places import OWN, Place, has_places, main_of, overwritable, set_places
from xcc.passes.xt.graph.load_time import view_root
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt.graph.rewrite import name_of


@register_pass
class PlaceResults(Pass):
    """Says of each result in @main where it lies, with ``host.places``: in memory of its own, where a result of its
    block lies, or where an operand does."""

    def run(self, module: Module, ctx: PassContext) -> None:
        main = main_of(module)
        block = main.regions[0].blocks[0]
        updated = xt.updated_arguments(main)
        decided: list[tuple[Operation, list[Place]]] = []
        _Block(block, decided).run({i: None if n is None else block.arguments[n] for i, n in enumerate(updated)})
        for op, places in decided:      # at the end: an op with another attribute is another key of a dict
            set_places(op, places)


class _Block:
    """Decides for one block of @main, and for those inside it: `decided` gets their ops' places."""

    def __init__(self, block: Block, decided: list[tuple[Operation, list[Place]]]) -> None:
        self.block = block
        self.decided = decided
        self.memory = BlockMemory(block)
        self.places: dict[Value, Place] = {}

    def run(self, results: Mapping[int, Value | None], carried: int = 0) -> None:
        """`results`: the block's results that have a place, by number, with the argument that they replace, or None;
        its first `carried` ones are what a loop carries."""
        values = block_results(self.block)
        # where a value is wanted twice, it is made in the memory of the argument that it replaces
        for n, argument in sorted(results.items(), key=lambda each: each[1] is None):
            versions, first = self._versions(values[n])
            if versions and (argument is None or _same(first, argument)
                             or self.memory.end_before(argument, owner_op(versions[-1]))):
                self.places.update(dict.fromkeys(versions, Place("result", n)))
        for n in range(carried):
            versions, first = self._versions(values[n])
            old = self.block.arguments[n]
            unread = first is None and bool(versions) and self.memory.end_before(old, owner_op(versions[-1]))
            if versions and (unread or _same(first, old)):
                self.places.update(dict.fromkeys(versions, Place("result", n)))
        for op in list(self.block.operations)[:-1]:
            self._op(op.operation)

    def _versions(self, value: Value) -> tuple[list[Value], Value | None]:
        """`value`, and what it was before each update in place, the latest first, as far as all of them may have one
        memory; and the value before these, None where that keeps its own."""
        found: list[Value] = []
        root = view_root(value)
        while self.memory.makes(root) and root not in self.places:
            found.append(root)
            op = owner_op(root)
            operand = next(iter(overwritable(op, list(op.results).index(root))), None)
            if operand is None or not self.memory.end_at(op.operands[operand], op, operand):
                return found, None
            root = view_root(op.operands[operand])
        return found, root

    def _op(self, op: Operation) -> None:
        kind, blocks = name_of(op), [r.blocks[0] for r in op.regions]
        carried = len(xt.grouped_operands(op)[0]) if kind in ("scan", "while") else 0
        if len(op.results) and has_places(op):
            held = 1 if kind == "dispatch" and IN_PLACE in op.attributes else carried
            self.decided.append((op, [self._place(op, n, n < held) for n in range(len(op.results))]))
        for block in blocks:
            if kind == "while" and block == blocks[0]:      # gives the condition, which has no place
                _Block(block, self.decided).run({})
            else:
                given = range(carried, len(block_results(block)))
                _Block(block, self.decided).run(dict.fromkeys(given), carried)

    def _place(self, op: Operation, number: int, held: bool) -> Place:
        """`held`: the result's memory holds the operand of this number when `op` begins."""
        if (found := self.places.get(op.results[number])) is not None:
            return found
        if held:
            old = op.operands[number]
            if old.type == op.results[number].type and self.memory.makes(view_root(old)) \
                    and self.memory.end_at(old, op, number):
                return Place("operand", number)
        return OWN


def _same(a: Value | None, b: Value) -> bool:
    return a is not None and bool(a == b)
