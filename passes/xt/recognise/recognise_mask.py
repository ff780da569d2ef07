"""What a mask of attention says: nothing, that keys above a diagonal are hidden, or anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects.xt.types import is_float
from xcc.passes.xt.graph.match import array_of, dims_of, dtype_of, number
from xcc.passes.xt.graph.rewrite import name_of, producer
from xcc.passes.xt.recognise.places import AtMost, Element, Place, Places, aligned
from xcc.symbolic import Dim
from xcc.weights import WeightStore

HIDDEN = -6e4       # what is added to a score at least this negative leaves nothing of it after exp


@dataclass(frozen=True)
class Mask:
    """kind: "none", "causal" (keys up to row + offset are visible) or "some": `value` as it is.

    never_empty: every row is known to keep a finite score.
    """

    kind: str
    value: Value | None = None
    offset: Dim = 0
    never_empty: bool = True


def read_mask(value: Value, queries: Dim, weights: WeightStore | None) -> Mask:
    """The mask `value` of scores [..., queries, keys]: i1 keeps where true, a float is added."""
    places = Places(weights)
    place = places.anywhere(value)
    kept = _kept(places, value, place)
    if kept == 1:
        return Mask("none")
    offset = _diagonal(kept.by, place) if isinstance(kept, AtMost) and dims_of(value)[-2:-1] == (queries,) else None
    if offset is not None and (not isinstance(offset, int) or offset >= 0):
        return Mask("causal", offset=offset)
    array = array_of(value, weights)
    if array is not None:
        return _read_array(value, np.asarray(array))
    return Mask("some", value, never_empty=is_float(dtype_of(value)) and _finite(value))


def _read_array(value: Value, array: np.ndarray[Any, Any]) -> Mask:
    logical = array.dtype == bool
    rows = array.astype(np.float64) if not logical else np.where(array, 0.0, -np.inf)
    if not np.any(rows):
        return Mask("none")
    never_empty = bool(np.all(np.any(np.isfinite(rows), -1))) and not np.any(np.isnan(rows)) and not np.any(rows > 3e38)
    if rows.ndim >= 2 and rows.shape[-2] > 1:
        offset = int(np.count_nonzero(rows.reshape(-1, *rows.shape[-2:])[0, 0] == 0)) - 1
        seen = np.tril(np.ones(rows.shape[-2:], bool), offset)
        if offset >= 0 and np.all(np.where(seen, rows == 0, rows <= HIDDEN)):
            return Mask("causal", offset=offset)
    return Mask("some", value, never_empty=never_empty)


def _kept(places: Places, value: Value, place: Place) -> Element:
    """The condition under which the score at `place` stays as it is and else is hidden; None for any other mask."""
    while dtype_of(value) != "i1":
        op = producer(value)
        if op is None:
            return None
        if name_of(op) == "select":
            yes, no = number(op.operands[1]), number(op.operands[2])
            if yes != 0 or no is None or no > HIDDEN:
                return None
            value, place = op.operands[0], aligned(op.operands[0], place)
            continue
        moved = (op.operands[0], place) if name_of(op) == "convert" else places.before(op, place)
        if moved is None:
            return None
        value, place = moved
    return places.at(value, place)


def _diagonal(by: Dim, place: Place) -> Dim | None:
    """c where `by` <= 0 says key <= query + c, of the last two coordinates of `place`; else None."""
    offset = place[-1] - place[-2] - by
    inside = {n for p in place for n in symbolic.symbols_of(p)}
    return None if inside & set(symbolic.symbols_of(offset)) else offset


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
