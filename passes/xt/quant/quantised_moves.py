"""Bytes between the layers of a quantised model: they move as bytes, and change their sign where they are made."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of, grouped_operands
from xcc.passes.xt.graph.match import NoMatch, dims_of, dtype_of, no_match
from xcc.passes.xt.graph.rewrite import at, name_of, rebuilt
from xcc.passes.xt.quant.quantised import (
    MOVES,
    Quantised,
    is_per_tensor,
    number_of,
    quantised,
    same_numbers,
    shift,
    with_sign,
)
from xcc.weights import WeightStore


class QuantisedMoves:
    """Rules for ops between contractions; `weights` holds the numbers of constants."""

    def __init__(self, weights: WeightStore | None) -> None:
        self.weights = weights

    def move(self, op: Operation) -> Value | None | NoMatch:
        """move(dequantize(x)) as dequantize(move(x)), the maximum of windows too; a transpose turns scales by channel,
        as of a linear layer's weight."""
        if name_of(op) == "reduce_window" and attrs_of(op).kind != "max":
            return None
        made = [quantised(v) for v in op.operands]
        first = made[0] if made else None
        if first is None or first.scale is None:
            return None
        if not is_per_tensor(first):
            return self._turned(op, first) if name_of(op) == "transpose" else None
        if name_of(op) == "reduce_window" and xt.is_float(dtype_of(first.values)):
            return no_match(op, "windows of 8-bit floats")
        for q in made[1:]:
            if q is None or q.scale is None or dtype_of(q.values) != dtype_of(first.values) \
                    or not same_numbers(q.scale, first.scale, self.weights) \
                    or not same_numbers(q.zero, first.zero, self.weights):
                return no_match(op, "its operands are quantised differently")
        moved = rebuilt(op, [q.values for q in made if q is not None])
        scale, zero = (v if v is None or not dims_of(v) else xt.reshape(v, shape=()) for v in (first.scale, first.zero))
        return xt.dequantize(moved, scale, zero, axis=0)

    @staticmethod
    def _turned(op: Operation, q: Quantised) -> Value:
        axis = list(attrs_of(op).perm).index(q.axis)
        return xt.dequantize(rebuilt(op, [q.values]), q.scale, q.zero, axis=axis)

    def repeated(self, op: Operation) -> Value | None | NoMatch:
        """quantize(dequantize(x)) with equal scales and zero points as x."""
        x, scale, zero = grouped_operands(op)
        q = quantised(x)
        if q is None or q.scale is None or dtype_of(q.values) != attrs_of(op).dtype or attrs_of(op).block:
            return None
        same = same_numbers(q.scale, scale, self.weights) and same_numbers(q.zero, zero, self.weights)
        return q.values if same and is_per_tensor(q) else no_match(op, "scale or zero point changes")

    def with_sign(self, op: Operation, wanted: str) -> Value | None:
        """A quantize that makes bytes of the other sign: the sign changes there, and for all who read it."""
        x, scale, zero = grouped_operands(op)
        a = attrs_of(op)
        point = number_of(zero, self.weights)
        if a.dtype not in ("i8", "ui8") or a.dtype == wanted or point is None or dims_of(scale) != ():
            return None
        new = xt.quantize(x, scale, xt.constant(np.asarray(point + shift(wanted)), wanted), dtype=wanted,
                          reciprocal=a.reciprocal)
        self._change_readers(op.results[0], new, wanted)
        return with_sign(new, a.dtype)

    def _change_readers(self, old: Value, new: Value, wanted: str) -> None:
        """`new` is `old` with the other sign: readers that can take it do."""
        for reader in [use.owner.operation for use in old.uses]:
            name = name_of(reader)
            with at(reader):
                if name == "dequantize" and not attrs_of(reader).block and reader.operands[0] == old:
                    _, scale, zero = grouped_operands(reader)
                    if zero is None:
                        zero = xt.sub(*[xt.convert(scale, dtype="i8" if wanted == "ui8" else "ui8")] * 2)
                    moved = with_sign(zero, wanted)
                    wide = xt.dequantize(new, scale, moved, axis=attrs_of(reader).axis, dtype=attrs_of(reader).dtype)
                    reader.results[0].replace_all_uses_with(wide)       # the walk is still to come to the reader
                elif (name in MOVES or name == "reduce_window" and attrs_of(reader).kind == "max") \
                        and len(reader.operands) == 1:
                    self._change_readers(reader.results[0], rebuilt(reader, [new]), wanted)
