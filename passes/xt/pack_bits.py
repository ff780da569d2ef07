"""The pass ``pack-bits``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.narrow import per_byte
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import name_of, rewrite
from xcc.passes.xt.products.panels import static_shape
from xcc.weights import WeightStore

LANES = 16
"""Numbers that lanes walk at once: the last dim's, or those of the last dims where that has fewer."""
LEFT_OVER = 0.25
"""Of a dim, what may be left over in its last byte before lanes are interleaved instead."""


@register_pass
class PackBits(Pass):
    """Stores weights and tables of 4 and 2 bits as bytes of two and four.

    Before: ``weight() {name = "w"}``: i4[K, N]
    After:  ``unpack(weight() {name = "w.bytes"}) {axis = 0, size = [K], dtype = i4}``, of ui8[K / 2, N]

    Numbers that share a byte are neighbours along `packed_axis`, not along the last dim, which lanes walk: a vector of
    bytes is shifted by one number then, and nothing is interleaved.
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        store = ctx.weights if ctx.weights is not None else WeightStore()      # a text alone has names, no data
        rewrite(module, dict.fromkeys(("weight", "constant"), lambda op: _unpacked(op, store)))


def _unpacked(op: Operation, store: WeightStore) -> Value | None:
    shape, kind = static_shape(op.results[0]), xt.TensorType.of(op.results[0]).dtype
    if per_byte(kind) == 1 or not shape or 0 in shape or name_of(op) == "constant" and op.attributes["value"].is_splat:
        return None
    axis, bits = packed_axis(shape, per_byte(kind)), xt.width(kind)
    less = tuple(-(-n * bits // 8) if d == axis else n for d, n in enumerate(shape))
    if name_of(op) == "constant":
        stored = xt.constant(packed(xt.attrs_of(op).value, axis, bits))
    else:
        name = xt.attrs_of(op).name
        stored = xt.weight(store.add(f"{name}.bytes", lambda: packed(store[name], axis, bits)), less, "ui8")
    return xt.unpack(stored, axis=axis, size=(shape[axis],), dtype=kind)


def packed_axis(shape: Sequence[int], count: int) -> int:
    """The dim along which `count` numbers share a byte: that with the least left over in its last byte, the last before
    those that lanes walk where several are alike; one of these, which would be interleaved, where the others leave over
    more than LEFT_OVER."""
    def cost(d: int) -> tuple[bool, int, float, int]:
        left = -shape[d] % count / shape[d]
        return left > LEFT_OVER, -min(prod(shape[d + 1:]), LANES), left, -d

    return min(range(len(shape)), key=cost)


def packed(w: np.ndarray[Any, Any], axis: int, bits: int) -> np.ndarray[Any, Any]:
    """The bytes of `w`, an array of numbers of 2 or 4 bits; what is left of the last ones is 0."""
    count = 8 // bits
    codes = np.moveaxis(np.asarray(w, order="C").view(np.uint8) & np.uint8((1 << bits) - 1), axis, 0)
    codes = np.pad(codes, [(0, -len(codes) % count)] + [(0, 0)] * (codes.ndim - 1))
    out = codes[0::count].copy()
    for n in range(1, count):
        out |= codes[n::count] << np.uint8(n * bits)
    return np.ascontiguousarray(np.moveaxis(out, 0, axis))
