"""Windows that are reduced one axis after the other, or whose padding is stored, where that is estimated to be faster.

A maximum over kh x kw elements is one over kw of the maxima over kh: kh + kw steps a result in place of kh * kw, for
one more image that is written and read. The same holds for sums, up to rounding. Where vectors lie along a padded dim,
each step tests its lanes and reads what is outside by itself; an image that is stored with a border of neutral elements
(``xcc.stored``: the kernel that makes it writes them) needs no tests, and the image between two axes is made anyhow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value, ir, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.reduce import neutral
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.match import dtype_of
from xcc.passes.xt.graph.rewrite import rewrite

# Costs for a result, in loads of a vector that lies in a cache
STRIDED = 5     # a load whose lanes do not lie side by side
EXTREME = 3     # a maximum of floats, as NaN stays NaN
OUTSIDE = 1     # a test by a padded dim that all lanes share
AT_LANES = 4    # a test by the dim of the lanes, and what it reads beside the image
MOVED = 6       # an element written and read again, from a cache
FAR = 100       # the same from memory


@register_pass
class SeparateWindows(Pass):
    """Splits a window of several axes into windows of one, and stores the padding.

    Before: ``xt.reduce_window(x) {window = [1, 1, 5, 5], low = [0, 0, 2, 2], high = [0, 0, 2, 2]}``
    After:  ``y = xt.reduce_window(x) {window = [1, 1, 5, 1], low = [0, 0, 2, 0], high = [0, 0, 2, 0]}``,
            ``xt.reduce_window(xt.pad(y) {xcc.stored, low = [0, 0, 0, 2], high = ...}) {window = [1, 1, 1, 5]}``
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"reduce_window": lambda op: _Windows.of(op, ctx.chip.l3_bytes // 2).cheapest(op.operands[0])
                         if _fits(op) else None})


def _fits(op: Operation) -> bool:
    a, dtype = xt.attrs_of(op), dtype_of(op.results[0])
    if a.kind in ("sum", "prod") and dtype in NARROW:       # what is between two axes would be rounded
        return False
    fill = neutral(a.kind, dtype)
    if float(fill) != fill or not all(isinstance(n, int) and n >= 0 for n in (*a.window, *a.low, *a.high)):
        return False
    alone = zip(a.window, a.strides, a.low, a.high, strict=True)
    return all(window > 1 or (window, stride, low, high) == (1, 1, 0, 0) for window, stride, low, high in alone)


@dataclass(frozen=True)
class _Windows:
    """A reduce_window's attributes, the axes that it walks, and the dim that vectors lie along."""

    a: Attrs
    axes: tuple[int, ...]
    lanes: int
    step: int       # what it costs to combine two elements
    tests: bool     # whether an element outside costs anything: a load by a mask gives 0
    moved: int

    @staticmethod
    def of(op: Operation, cache: int) -> _Windows:
        a, dtype, shape = xt.attrs_of(op), dtype_of(op.results[0]), xt.shape_of(op.results[0])
        axes = tuple(d for d, n in enumerate(a.window) if n != 1)
        lanes = max((d for d, n in enumerate(shape) if n != 1), default=len(shape) - 1)
        step = EXTREME if a.kind in ("max", "min") and xt.is_float(dtype) else 1
        size = math.prod(n for n in xt.shape_of(op.operands[0]) if isinstance(n, int)) * xt.numpy_dtype(dtype).itemsize
        return _Windows(a, axes, lanes, step, neutral(a.kind, dtype) != 0, FAR if size > cache else MOVED)

    def cheapest(self, x: Value) -> Value | None:
        """The windows of `x` in another form; None where they are best as they are."""
        direct = self._cost(self.axes, self._padded(self.axes))
        stored = self._cost(self.axes, ()) + self.moved * self._more(self.axes)
        separate = sum(self._cost((d,), self._tested(n)) * self._more(self.axes[n + 1:])
                       for n, d in enumerate(self.axes)) \
            + sum(self.moved * self._more(self.axes[n:]) for n in range(1, len(self.axes)))
        if len(self.axes) > 1 and separate < min(direct, stored):
            for n, d in enumerate(self.axes):
                x = self._reduced(x, (d,), stored=self._tested(n) == ())
            return x
        return self._reduced(x, self.axes, stored=True) if stored < direct else None

    def _padded(self, axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(d for d in axes if self.a.low[d] or self.a.high[d])

    def _tested(self, n: int) -> tuple[int, ...]:
        """The axes that the n-th of separate windows tests: the border of an image in between is stored."""
        return self._padded(self.axes[n:n + 1]) if n == 0 or self.axes[n] != self.lanes else ()

    def _more(self, axes: Sequence[int]) -> int:
        """Elements for a result before `axes` are walked."""
        return math.prod(self.a.strides[d] for d in axes)

    def _cost(self, axes: Sequence[int], tested: Sequence[int]) -> int:
        read = STRIDED if self.lanes in axes and self.a.strides[self.lanes] != 1 else 1
        tests = sum(AT_LANES if d == self.lanes else OUTSIDE for d in tested) if self.tests else 0
        return math.prod(self.a.window[d] for d in axes) * (read + self.step + tests)

    def _reduced(self, x: Value, axes: Sequence[int], stored: bool) -> Value:
        a, rank = self.a, len(self.a.window)

        def along(values: Sequence[int], rest: int) -> tuple[int, ...]:
            return tuple(v if d in axes else rest for d, v in enumerate(values))

        low, high = along(a.low, 0), along(a.high, 0)
        if stored and any((*low, *high)):
            x = xt.pad(x, low=low, high=high, value=float(neutral(a.kind, dtype_of(x))))
            owner_op(x).attributes["xcc.stored"] = ir.UnitAttr.get()
            low = high = (0,) * rank
        return xt.reduce_window(x, kind=a.kind, window=along(a.window, 1), strides=along(a.strides, 1), low=low,
                                high=high, dilations=along(a.dilations, 1))
