"""PTX statements, for instructions that no dialect has an op for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import Type, Value, ir


def inline_asm(text: str, constraints: str, results: Sequence[Type] = (), operands: Sequence[Value] = (), *,
               effects: bool = True) -> Any:
    """An llvm.inline_asm at the insertion point: its one result, None where `results` (types) is empty.

    An operand never lies in the register of a result, unless it is tied to it: `text` may write one before it has read
    the other (early clobber). LLVM else lets equal values share a register: zeros of an operand, and those that a
    result begins with.

    effects: it is neither moved nor dropped.
    """
    early = ",".join(c.replace("=", "=&", 1) for c in constraints.split(","))
    attributes = {"asm_string": ir.StringAttr.get(text), "constraints": ir.StringAttr.get(early),
                  "asm_dialect": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
    if effects:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    op = ir.Operation.create("llvm.inline_asm", results=list(results), operands=list(operands), attributes=attributes)
    return op.results[0] if results else None
