"""What is decided about @main, as attributes of its ops.

    %1 = "xtv.dispatch"(%w) {host.at_load, kernel = @pack_0, ...}
    %2 = "xtv.dispatch"(%x, %1) {host.places = ["own"], kernel = @dot_0, ...}
    %3 = "xtv.dispatch"(%c, %2) {host.places = ["result 0"], host.shares = array<i64: 0, 0>, kernel = @add_0, ...}

``host.places`` says of each result where it lies: in memory of its own, where the result of this number of the block
lies (an output, an argument that it updates, the result of an if, what a loop carries or stacks), or where the op's
operand of this number does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from xcc._mlir import Attribute, Module, Operation, ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.passes.walk import ops_where
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt.graph.rewrite import name_of

AT_LOAD = "host.at_load"
"""Of a dispatch that runs once, when the model is loaded."""
PLACES = "host.places"
SHARES = "host.shares"
"""Of a dispatch: pairs of an operand and a result that its kernel, as it was compiled, lets be one memory."""

WITHOUT = ("bitcast", "constant", "require", "reshape", "weight")
"""Ops whose results need no memory: they are views, or lie in the artifact."""


class Place(NamedTuple):
    """Where a result lies: "own", or "result" or "operand" and a number."""

    kind: str
    number: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "own" else f"{self.kind} {self.number}"


OWN = Place("own")


def main_of(module: Module) -> Operation:
    """The function of `module` that is no kernel."""
    found = [op.operation for op in module.body
             if op.operation.name == "func.func" and "xt.kernel" not in op.attributes]
    if len(found) != 1:
        raise UserError(f"one function that is no kernel is wanted, @main, and there are {len(found)}")
    return found[0]


def has_places(op: Operation) -> bool:
    """Whether `op` writes its results in each run."""
    return name_of(op) not in WITHOUT and AT_LOAD not in op.attributes


def places_of(op: Operation) -> list[Place]:
    """A place for each result of `op`, its own memory where nothing is said; UserError where the attribute is wrong."""
    if PLACES not in op.attributes:
        return [OWN] * len(op.results)
    texts = [a.value if isinstance(a, ir.StringAttr) else str(a) for a in _list(op.attributes[PLACES])]
    matches = [re.fullmatch(r"(own|result (\d+)|operand (\d+))", t) for t in texts]
    if len(texts) != len(op.results) or None in matches:
        raise UserError(f"{op.location}: {PLACES} of {op.name} is a text a result, 'own', 'result N' or 'operand N', "
                        f"not {op.attributes[PLACES]}")
    return [Place(t.split()[0], int(t.split()[1])) if " " in t else OWN for t in texts]


def _list(attribute: Attribute) -> Iterable[Any]:
    return attribute if isinstance(attribute, ir.ArrayAttr) else ()


def set_places(op: Operation, places: Sequence[Place]) -> None:
    op.attributes[PLACES] = ir.ArrayAttr.get([ir.StringAttr.get(str(p)) for p in places])


def overwritable(op: Operation, result: int) -> list[int]:
    """The operands of `op` whose memory this result may have: each element is read before it is written."""
    if name_of(op) != "dispatch":
        carried = len(xt.grouped_operands(op)[0]) if name_of(op) in ("scan", "while") else 0
        return [result] if result < carried else []
    if IN_PLACE in op.attributes:
        return [0]
    numbers = list(ir.DenseI64ArrayAttr(op.attributes[SHARES])) if SHARES in op.attributes else []
    return [a for a, r in zip(numbers[::2], numbers[1::2], strict=True) if r == result]


def note_shares(module: Module, shares: Mapping[str, Sequence[tuple[int, int]]]) -> None:
    """Sets ``host.shares`` of the dispatches of `module` to the pairs of their kernels."""
    with module.context:
        for op in ops_where(module, lambda op: op.name == "xtv.dispatch"):
            pairs = shares.get(xt.attrs_of(op).kernel, ())
            if pairs:
                op.attributes[SHARES] = ir.DenseI64ArrayAttr.get([n for pair in pairs for n in pair])
            elif SHARES in op.attributes:
                del op.attributes[SHARES]
