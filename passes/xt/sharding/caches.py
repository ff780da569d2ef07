"""Inputs that a model gives back changed: those that outputs update, and those that outputs continue, as caches of keys
and values that grow.

    %present = xt.concatenate(%past, %row) {axis = 2}      %past, an input that nothing else reads; %present is returned

Both lie alike, so that a rank's output is what its next run is given.
"""

from __future__ import annotations

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import producer


def caches(main: Operation) -> dict[int, int]:
    """The input, by number, of each output that takes its place in the next run."""
    block = main.regions[0].blocks[0]
    out = {n: i for n, i in enumerate(xt.updated_arguments(main)) if i is not None}
    arguments = {v: n for n, v in enumerate(block.arguments)}
    for n, v in enumerate(list(block.operations)[-1].operation.operands):
        grown = producer(v, "concatenate")
        first = None if grown is None else arguments.get(grown.operands[0])
        if n not in out and first is not None and first not in out.values() and _is_read_once(block.arguments[first]):
            out[n] = first
    return out


def _is_read_once(value: Value) -> bool:
    return len(list(value.uses)) == 1
