"""Upper bounds of index values: of threads, workgroups, and arithmetic on them."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Operation, Value, ir, maker
from xcc.passes.gpu.index.ranges import range_of
from xcc.passes.shared.patterns import int_constant

CASTS = ("arith.index_cast", "arith.index_castui", "arith.extui")


def largest(value: Value, known: dict[Any, Any]) -> int | None:
    """An upper bound of an index value that is known not to be negative; None when there is none."""
    key = "largest", value
    if key not in known:
        known[key] = _largest(value, known)
    return known[key]


def _last_block(op: Operation | None) -> int | None:
    """The largest number of a workgroup, where the grid of the kernel around `op` is known."""
    while op is not None and op.name != "gpu.func":
        op = op.parent.operation if op.parent is not None else None
    grid = ir.StringAttr(op.attributes["xcc.grid"]).value if op is not None and "xcc.grid" in op.attributes else ""
    return int(grid) - 1 if grid.isdigit() else None


def _largest(value: Value, known: dict[Any, int]) -> int | None:
    fixed = int_constant(value)
    if fixed is not None:
        return fixed if fixed >= 0 else None
    op = maker(value)
    if op is None:
        return None
    if op.name == "gpu.thread_id":
        return 1023
    if op.name == "gpu.block_id":
        return _last_block(op)
    if op.name in CASTS:
        return largest(op.operands[0], known)
    if not op.name.startswith("arith.") or not len(op.operands):
        return None
    values = list(op.operands)[1 if op.name == "arith.select" else 0:]
    sides = [largest(v, known) for v in values]
    if op.name in ("arith.andi", "arith.minsi"):
        return min((s for s in sides if s is not None), default=None)
    spans = [(s if int_constant(v) is not None else 0, s) for v, s in zip(values, sides, strict=True) if s is not None]
    found = range_of(op, spans) if len(spans) == len(sides) else None
    return found[1] if found is not None and found[0] >= 0 else None
