"""The memory of one block of @main: who makes and reads it, and whether its results can lie where they are said to."""

from __future__ import annotations

from collections.abc import Mapping

from xcc._mlir import Operation, Value, owner_op
from xcc.diagnostics import UserError
from xcc.dialects.xt.reading import block_results
from xcc.passes.host.placement.places import AT_LOAD, PLACES, Place, has_places, overwritable, places_of
from xcc.passes.xt.graph.load_time import view_root
from xcc.passes.xt.graph.memory_uses import MemoryUses
from xcc.passes.xt.graph.rewrite import name_of


class BlockMemory(MemoryUses):
    """The uses of memory in `block`. A *chain* of a result is what lies where it does, and becomes it."""

    def makes(self, value: Value) -> bool:
        """Whether an op of the block itself writes `value`, in each run, to a buffer of its own."""
        op = self.maker(value)
        return op is not None and name_of(op) not in ("weight", "constant") and AT_LOAD not in op.attributes

    def checked_places(self, replaced: Mapping[int, Value | None]) -> dict[Value, Place]:
        """The places of the block's values, as its ops say. `replaced` has for each result that has a place of its own
        the argument that lies there, or None.

        UserError, with the op's location, where memory would be written that is read later.
        """
        ops = [op.operation for op in self.block.operations if len(op.operation.results) and has_places(op.operation)]
        places = {v: p for op in ops for v, p in zip(op.results, places_of(op), strict=True)}
        yielded = block_results(self.block)
        chained = {v for n, argument in replaced.items() for v in self._chain(yielded[n], n, argument, places)}
        for op in ops:
            for number, v in enumerate(op.results):
                if places[v].kind == "result" and v not in chained:
                    raise UserError(f"{op.location}: {PLACES} cannot be obeyed: result {places[v].number} of the block "
                                    f"is not made of result {number} of {op.name}, or has no place")
                if places[v].kind == "operand":
                    self._check_operand(op, number, places[v].number)
        return places

    def _chain(self, value: Value, number: int, argument: Value | None, places: Mapping[Value, Place]) -> list[Value]:
        """The values that lie where result `number` of the block does, the last one, `value`, first."""
        found, here, value = [], Place("result", number), view_root(value)
        while places.get(value) == here:
            found.append(value)
            op = owner_op(value)
            roots = {k: view_root(op.operands[k]) for k in overwritable(op, list(op.results).index(value))}
            before = [k for k, v in roots.items() if places.get(v) == here or (argument is not None and v == argument)]
            if len(before) > 1 or any(not self.end_at(op.operands[k], op, k) for k in before) \
                    or not (before or argument is None or self.end_before(argument, op)):
                raise UserError(f"{op.location}: {PLACES} cannot be obeyed: what lies at '{here}' is still read")
            if not before:
                break
            value = roots[before[0]]
        return found

    def _check_operand(self, op: Operation, result: int, number: int) -> None:
        if number not in overwritable(op, result):
            raise UserError(f"{op.location}: {PLACES} cannot be obeyed: {op.name} may not write result {result} to the "
                            f"memory of its operand {number}")
        old = op.operands[number]
        if old.type != op.results[result].type or not self.makes(view_root(old)) or not self.end_at(old, op, number):
            raise UserError(f"{op.location}: {PLACES} cannot be obeyed: operand {number} is read later, is made "
                            "elsewhere, or has another type")
