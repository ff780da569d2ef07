"""What a mask of attention says: nothing, that keys above a diagonal are hidden, or anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects.xt.op import attrs_of
from xcc.dialects.xt.types import is_float
from xcc.passes.xt.graph.match import array_of, count_of, dims_of, dtype_of, number
from xcc.passes.xt.graph.rewrite import name_of, producer
from xcc.symbolic import Dim
from xcc.weights import WeightStore

HIDDEN = -6e4       # what is added to a score at least this negative leaves nothing of it after exp
VIEWS = ("broadcast", "reshape", "convert")


@dataclass(frozen=True)
class Mask:
    """kind: "none", "causal" (keys up to row + offset are visible) or "some": `value` as it is.

    never_empty: every row is known to keep a finite score.
    """

    kind: str
    value: Value | None = None
    offset: Dim = 0
    never_empty: bool = True


def read_mask(value: Value, weights: WeightStore | None) -> Mask:
    """The mask `value` of scores [..., queries, keys]: i1 keeps where true, a float is added."""
    array = array_of(value, weights)
    if array is not None:
        return _read_array(value, np.asarray(array))
    kept = _kept(value)
    offset = _diagonal(kept) if kept is not None else None
    if offset is not None and (not isinstance(offset, int) or offset >= 0):
        return Mask("causal", offset=offset)
    return Mask("some", value, never_empty=is_float(dtype_of(value)) and _finite(value))


def _read_array(value: Value, array: np.ndarray[Any, Any]) -> Mask:
    logical = array.dtype == bool
    rows = array.astype(np.float64) if not logical else np.where(array, 0.0, -np.inf)
    if not np.any(rows):
        return Mask("none")
    never_empty = bool(np.all(np.any(np.isfinite(rows), -1))) and not np.any(np.isnan(rows)) and not np.any(rows > 3e38)
    if rows.ndim >= 2 and rows.size == rows.shape[-1] * rows.shape[-2] and rows.shape[-2] > 1:
        table = rows.reshape(rows.shape[-2:])
        offset = int(np.count_nonzero(table[0] == 0)) - 1
        seen = np.tril(np.ones(table.shape, bool), offset)
        if offset >= 0 and np.all(np.where(seen, table == 0, table <= HIDDEN)):
            return Mask("causal", offset=offset)
    return Mask("some", value, never_empty=never_empty)


def _kept(value: Value) -> Value | None:
    """The condition under which a score stays as it is and else is hidden; None when the mask is no such choice."""
    if dtype_of(value) == "i1":
        return value
    op = producer(value)
    while op is not None and name_of(op) in VIEWS:
        op = producer(op.operands[0])
    if op is None or name_of(op) != "select":
        return None
    yes, no = number(op.operands[1]), number(op.operands[2])
    return op.operands[0] if yes == 0 and no is not None and no <= HIDDEN else None


def _diagonal(kept: Value) -> Dim | None:
    """c where `kept` is key <= query + c, from comparisons of index ramps; else None."""
    op = producer(kept)
    if op is None:
        return None
    if name_of(op) == "and":
        for a, b in (tuple(op.operands), tuple(op.operands)[::-1]):
            if number(a) == 1:
                return _diagonal(b)
        return None
    if name_of(op) in ("broadcast", "reshape"):
        same = len(dims_of(op.operands[0])) >= 2 and dims_of(op.operands[0])[-2:] == dims_of(kept)[-2:]
        return _diagonal(op.operands[0]) if same else None
    if name_of(op) != "compare":
        return None
    direction = attrs_of(op).direction
    left, right = (_ramp(v) for v in op.operands)
    if left is None or right is None:
        return None
    if left[0] == -2:
        left, right = right, left
        direction = {"le": "ge", "ge": "le", "lt": "gt", "gt": "lt"}.get(direction, direction)
    if (left[0], right[0]) != (-1, -2) or direction not in ("le", "lt"):
        return None
    return right[1] - left[1] - (1 if direction == "lt" else 0)


def _ramp(value: Value) -> tuple[int, Dim] | None:
    """(dim counted from the end, start) of an integer value that is start + position along that one dim."""
    op = producer(value)
    if op is None:
        return None
    rank = len(dims_of(value))
    name = name_of(op)
    if name == "iota":
        return attrs_of(op).axis - rank, 0
    if name in ("add", "sub"):
        a, b = op.operands
        for x, c in ((a, b), (b, a))[:2 if name == "add" else 1]:
            start, ramp = count_of(c), _ramp(x)
            if start is not None and ramp is not None:
                return ramp[0], ramp[1] + start if name == "add" else ramp[1] - start
        return None
    if name not in VIEWS:
        return None
    x = op.operands[0]
    inner = _ramp(x)
    if inner is None or name != "reshape":
        return inner
    size = dims_of(x)[inner[0]]
    places = [d - rank for d, n in enumerate(dims_of(value)) if n != 1]
    others = [n for n in dims_of(x) if n != 1]
    return (places[0], inner[1]) if others == [size] and len(places) == 1 else None


def _finite(value: Value) -> bool:
    """Whether a float value can be seen to hold finite numbers only."""
    op = producer(value)
    if op is None:
        return False
    n = number(value)
    if n is not None:
        return bool(np.isfinite(n))
    name = name_of(op)
    if name == "select":
        return _finite(op.operands[1]) and _finite(op.operands[2])
    if name == "convert":
        source = dtype_of(op.operands[0])
        return not is_float(source) and dtype_of(value) != "f16"
    if name in ("broadcast", "reshape", "transpose", "slice", "gather", "gather_nd"):
        return _finite(op.operands[0])
    return False
