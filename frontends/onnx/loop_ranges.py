"""What loops count, and the sizes of slices that follow: ``x[i:i + 2]`` has two rows wherever i + 2 is at most x's.

A counter runs from a first to a last value, which are sizes. A slice between two sums of one counter, times a number,
and a constant has a size that is known where its dim ends behind all that the loop reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Value, maker
from xcc.bounds import interval
from xcc.dialects import xt
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.frontends.onnx.importer import ModelImporter

__all__ = ["known_length"]

Line = tuple[Value, int, int]


def known_length(model: ModelImporter, size: Dim, start: Value, end: Value) -> int | None:
    """How many elements of a dim of `size` are between the integers `start` and `end`, each of one element."""
    low, high = _line(start), _line(end)
    if low is None or high is None or low[:2] != high[:2] or low[0] not in model.ranges or high[2] < low[2]:
        return None
    counter, factor, offset = low
    first, last = model.ranges[counter] if factor > 0 else reversed(model.ranges[counter])
    inside = (first * factor + offset, size - last * factor - high[2])
    return high[2] - offset if all(interval(model.known, d)[0] >= 0 for d in inside) else None


def _line(value: Value) -> Line | None:
    """(x, a, b) for a value that is a * x + b, all integers and a not 0; None where it is a constant."""
    op = maker(value, "xt.add", "xt.sub", "xt.mul", "xt.convert", "xt.reshape")
    if op is None:
        return None if _number(value) is not None else (value, 1, 0)
    line, name = _line(op.operands[0]), op.name.removeprefix("xt.")
    if name in ("convert", "reshape"):
        return line
    number = _number(op.operands[1])
    if number is None and name != "sub":
        line, number = _line(op.operands[1]), _number(op.operands[0])
    if line is None or number is None or name == "mul" and number == 0:
        return value, 1, 0
    x, a, b = line
    return (x, a * number, b * number) if name == "mul" else (x, a, b + (number if name == "add" else -number))


def _number(value: Value) -> int | None:
    """The integer that `value` always is, in any shape of one element."""
    op = maker(value, "xt.constant", "xt.convert", "xt.reshape")
    if op is None:
        return None
    if op.name != "xt.constant":
        return _number(op.operands[0])
    array = xt.attrs_of(op).value
    return int(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "iu" else None
