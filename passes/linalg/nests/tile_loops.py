"""Loops over the tiles along one dim, and what is left behind the last whole tile."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from xcc._mlir import Value
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import Axis, Ix
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.shared.regions import for_loop


class TileLoops:
    """Builds the loops over tiles of `schedule`.

    Attributes:
        last: the dim that is contiguous.
        masked: whether what is left of another dim is a tile with lanes off, too: it costs a product's innermost loop
            masks, but a tile that is turned not more than a whole one.
        left: of dims that the chunks cut: what is left behind the last whole tile.
    """

    def __init__(self, b: Builder, schedule: Schedule, last: int, masked: bool) -> None:
        self.b, self.schedule, self.last, self.masked = b, schedule, last, masked
        self.left: dict[int, int] = {}

    def index(self, d: int, base: Value, limit: Value | None) -> Ix:
        """A tile's index along dim d from `base` on; `limit`: how many of its lanes are on."""
        lanes = self.schedule.vector[d]
        start = self.b.ix_of(base)
        if lanes == 1:
            return start
        return Ix(start.base, start.const, ((Axis(lanes, d, limit), 1),))

    def loop(self, low: Value, high: Value, step: int, body: Callable[[Any], None]) -> None:
        """`body` at `low`, `low + step`, ... below `high`; without a loop where that is known to be once or never."""
        a, z = self.b.as_int(low), self.b.as_int(high)
        if a is not None and z is not None and z - a <= step:
            if z > a:
                body(low)
            return
        start = a if a is not None else self.b.multiples.get(low, 1)
        with for_loop(low, high, self.b.int(step)) as i, self.b.scope():
            self.b.multiples[i] = gcd(start, step)
            body(i)

    def whole(self, d: int, low: Value, high: Value, inner: Callable[[Ix], None]) -> None:
        """A loop over whole tiles of dim d."""
        self.loop(low, high, self.schedule.vector[d], lambda iv: inner(self.index(d, iv, None)))

    def peeled(self, d: int, low: Value, high: Value, inner: Callable[[Ix], None]) -> None:
        """A loop from `low` to a dynamic `high`: full tiles, then the rest."""
        lanes = self.schedule.vector[d]
        if lanes == 1:
            self.loop(low, high, 1, lambda iv: inner(self.index(d, iv, None)))
        elif self.schedule.tail == "mask":
            self.loop(low, high, lanes, lambda iv: inner(
                self.index(d, iv, self.b.binary("arith.minsi", self.b.int(lanes), self.b.sub(high, iv)))))
        else:
            count = self.b.binary("arith.divui", self.b.sub(high, low), self.b.int(lanes))
            middle = self.b.add(low, self.b.mul(count, self.b.int(lanes)))
            if self.b.as_int(middle) is None:
                start = self.b.as_int(low)
                self.b.multiples[middle] = gcd(lanes, self.b.multiples.get(low, 1) if start is None else start)
            self.whole(d, low, middle, inner)
            self.rest(d, middle, high, None, inner)

    def rest(self, d: int, low: Value, high: Value, count: int | None, inner: Callable[[Ix], None]) -> None:
        """What is left of dim d: masked lanes when it is contiguous or `masked`, else exact or single steps."""
        lanes = self.schedule.vector[d]
        contiguous = d == self.last
        if contiguous and count is not None:
            inner(self.index(d, low, high if self.b.as_int(low) == 0 else self.b.int(count)))
        elif contiguous:
            self.loop(low, high, lanes, lambda iv: inner(self.index(d, iv, self.b.sub(high, iv))))
        elif count is not None:
            inner(Ix(const=self.b.as_int(low) or 0, coefs=((Axis(count, d),  1),)) if count > 1 else self.b.ix_of(low))
        elif (left := self.left.get(d)) is not None:        # at most once
            if left:
                axes = ((Axis(left, d), 1),) if left > 1 else ()
                self.loop(low, high, left, lambda iv: inner(Ix(base=iv, coefs=axes)))
        elif self.masked:
            self.loop(low, high, lanes, lambda iv: inner(self.index(d, iv, self.b.sub(high, iv))))
        else:
            self._parts(d, low, high, inner)

    def _parts(self, d: int, low: Value, high: Value, inner: Callable[[Ix], None]) -> None:
        """Thirds of a tile, then a half of that and so on: a row alone waits for each of its sums, and reads as much of
        the other operand as a tile does."""
        part = self.schedule.vector[d] // 3
        while part > 1:
            steps = self.b.binary("arith.divui", self.b.sub(high, low), self.b.int(part))
            middle = self.b.add(low, self.b.mul(steps, self.b.int(part)))
            axis = Axis(part, d)
            self.loop(low, middle, part, lambda iv, axis=axis: inner(Ix(base=iv, coefs=((axis, 1),))))  # type: ignore[misc]
            low, part = middle, part // 2
        self.loop(low, high, 1, lambda iv: inner(self.b.ix_of(iv)))
