"""Which dims a model takes to be equal without its types saying so, to be checked when it is run.

Ops accept different expressions for dims that must be the same (``[n] + [m]``), since a model that works gives them the
same value. Kernels rely on it: the size of one operand is used for both.
"""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.symbolic import Dim

__all__ = ["EQUAL", "equal_dims", "note_equal_dims"]

EQUAL = "xt.equal"
"""Module attribute: pairs of dims."""


def note_equal_dims(module: Any) -> None:
    """Sets ``xt.equal`` from the ops of ``@main``; those in regions count only where they run, and are left out.

    Before: ``%2 = "xt.add"(%a, %b)`` with a: [n] and b: [m]
    After:  the same, and ``xt.equal = [["n", "m"]]`` on the module
    """
    with module.context, xt.assumed_equal() as pairs:
        for function in module.body:
            for region in function.operation.regions:
                for op in (o for block in region.blocks for o in block.operations):
                    definition = xt.op_class(op)
                    if definition is not None and not len(op.operation.regions):
                        definition.problem(op)
    distinct: dict[Dim, tuple[Dim, Dim]] = {}
    for a, b in pairs:
        difference = a - b
        if difference not in distinct and 0 - difference not in distinct:
            distinct[difference] = a, b
    if distinct:
        with module.context:
            module.operation.attributes[EQUAL] = ir.ArrayAttr.get([xt.dims_attr(p) for p in distinct.values()])


def equal_dims(module: Any, known: tuple[str, ...]) -> tuple[tuple[Dim, ...], ...]:
    """The pairs of ``xt.equal`` over the symbols in `known`."""
    if EQUAL not in module.operation.attributes:
        return ()
    pairs = [xt.dims_from_attr(p) for p in module.operation.attributes[EQUAL]]
    return tuple(tuple(p) for p in pairs if all(s in known for d in p for s in symbolic.symbols_of(d)))
