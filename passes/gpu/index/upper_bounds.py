"""Upper bounds of index values: of threads, workgroups, and arithmetic on them."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Operation, Value, ir
from xcc.passes.gpu.layout.tile_ops import constant, owner

__all__ = ["largest"]


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
    fixed = constant(value)
    if fixed is not None:
        return fixed if fixed >= 0 else None
    op = owner(value)
    if op is None:
        return None
    if op.name == "gpu.thread_id":
        return 1023
    if op.name == "gpu.block_id":
        return _last_block(op)
    if not op.name.startswith("arith.") or not len(op.operands):
        return None
    sides = [largest(v, known) for v in op.operands]
    if op.name == "arith.andi":
        return min((s for s in sides if s is not None), default=None)
    if op.name == "arith.select":
        return None if None in sides[1:] else max(s for s in sides[1:] if s is not None)
    if any(s is None for s in sides):
        return None
    a, b = (s or 0 for s in sides[:2]) if len(sides) > 1 else (sides[0] or 0, 0)
    by = constant(op.operands[1]) if len(sides) > 1 else None
    if op.name in ("arith.ori", "arith.xori"):
        return (1 << max(a, b).bit_length()) - 1
    if op.name == "arith.addi":
        return a + b
    if op.name == "arith.muli":
        return a * b
    if op.name in ("arith.minsi", "arith.minui"):
        return min(a, b)
    if op.name in ("arith.maxsi", "arith.maxui"):
        return max(a, b)
    if op.name in ("arith.remui", "arith.remsi") and by:
        return min(a, by - 1)
    if by is not None and op.name == "arith.shli":
        return a << by
    if by is not None and op.name == "arith.shrui":
        return a >> by
    if by and op.name in ("arith.divui", "arith.divsi"):
        return a // by
    return a if op.name in ("arith.index_cast", "arith.index_castui", "arith.extui") else None
