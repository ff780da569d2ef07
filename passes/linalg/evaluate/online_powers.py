"""The exponentials of an online loop, relative to a maximum (passes/linalg/evaluate/online_loops.py).

Exponentials are powers of two: exp(c * y - m) with m = max of c * y is exp2(y * k - top * k) with top = max of y and
k = c * log2(e), one multiply-add and one instruction. top * k is rounded once and common to all terms of a row, so
that what the rounding loses is a factor of all its sums.
"""

from __future__ import annotations

import math

from xcc._mlir import Type, ir
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import V


class Powers:
    """Builds exponentials of values of type `element`."""

    def __init__(self, b: Builder, element: Type) -> None:
        self.b, self.element = b, element

    def power(self, x: V, top: V, factor: float) -> V:
        """exp(factor * (x - top))."""
        b, scale = self.b, factor * math.log2(math.e)
        if self.element != ir.F32Type.get():
            return b.elementwise("math.exp", self.element, [self._less(x, top)], {})
        if scale > 1.0:     # the product with the lowest number would be infinite
            return self._exp2(self.times(self._less(x, top), scale))
        less = b.elementwise("arith.negf", self.element, [self.times(top, scale)], {})
        constant = V(b.constant(ir.FloatAttr.get(self.element, scale), self.element))
        return self._exp2(b.elementwise("math.fma", self.element, [x, *b.align([constant, less], x.axes)], {}))

    def negated(self, top: V) -> V:
        """What `relative` adds for `top`, which a loop need not compute again."""
        return self.times(top, -math.log2(math.e)) if self.element == ir.F32Type.get() else top

    def relative(self, x: V, factor: float, top: V, negated: V) -> V:
        """exp(factor * x - top). top * log2(e) is finite, unless `factor` is 1."""
        if factor == 1.0:
            return self.power(x, top, 1.0)
        scale = V(self.b.constant(ir.FloatAttr.get(self.element, factor * math.log2(math.e)), self.element))
        return self._exp2(self.b.elementwise("math.fma", self.element, [x, *self.b.align([scale, negated], x.axes)],
                                             {}))

    def change(self, old: V, new: V, factor: float) -> V:
        """exp(factor * (old - new)), with the products rounded as `power` rounds them."""
        scale = factor * math.log2(math.e)
        if self.element != ir.F32Type.get() or scale > 1.0:
            return self.power(old, new, factor)
        return self._exp2(self._less(self.times(old, scale), self.times(new, scale)))

    def times(self, v: V, factor: float) -> V:
        constant = self.b.constant(ir.FloatAttr.get(self.element, factor), self.element)
        return self.b.elementwise("arith.mulf", self.element, [v, V(constant)], {})

    def _less(self, v: V, w: V) -> V:
        return self.b.elementwise("arith.subf", self.element, [v, w], {})

    def _exp2(self, v: V) -> V:
        return self.b.elementwise("math.exp2", self.element, [v],
                                  {"fastmath": ir.Attribute.parse("#arith.fastmath<afn>")})
