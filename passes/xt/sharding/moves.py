"""Builds what brings a value from one placement to another, on the rank at one place of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import Array
from xcc.passes.xt.sharding.placement import WHOLE, Placement, exact, local_shape
from xcc.symbolic import Dim, floordiv


@dataclass(frozen=True)
class Mover:
    """The axis, how many ranks it has, and this rank's place among them."""

    axis: str
    ranks: int
    place: int

    def moved(self, kind: str, x: Value, source: Placement, target: Placement, whole: Sequence[Dim]) -> Value:
        """`x`, this rank's array of a value of shape `whole`, in placement `target`; see Costs.move for `kind`."""
        if kind == "slice":
            return self.part(x, target)
        if kind == "all_reduce":
            return xt.all_reduce(x, axes=(self.axis,), combine=source.combine)
        if kind == "reduce_scatter":
            return self._scattered(x, source.combine, target)
        if kind == "all_to_all":
            return self._exchanged(x, source, target, whole)
        gathered = self._gathered(x, source, whole)
        return gathered if target == WHOLE else self.part(gathered, target)

    def part(self, x: Value, target: Placement) -> Value:
        """This rank's part of a whole value."""
        shape = xt.shape_of(x)
        apart, d = _apart(shape, target, 1)
        x = _reshaped(x, apart)
        size = floordiv(apart[d], self.ranks)
        x = xt.slice_(x, starts=[size * self.place if i == d else 0 for i in range(len(apart))],
                      limits=[size * (self.place + 1) if i == d else n for i, n in enumerate(apart)])
        return _reshaped(x, local_shape(shape, target, self.ranks))

    def _gathered(self, x: Value, source: Placement, whole: Sequence[Dim]) -> Value:
        apart, d = _apart(whole, source, self.ranks)
        got = xt.all_gather(_reshaped(x, apart), axes=(self.axis,), dim=d, ranks=self.ranks)
        return _reshaped(got, whole)

    def _scattered(self, x: Value, combine: str, target: Placement) -> Value:
        shape = xt.shape_of(x)
        apart, d = _apart(shape, target, 1)
        got = xt.reduce_scatter(_reshaped(x, apart), axes=(self.axis,), dim=d, ranks=self.ranks, combine=combine)
        return _reshaped(got, local_shape(shape, target, self.ranks))

    def _exchanged(self, x: Value, source: Placement, target: Placement, whole: Sequence[Dim]) -> Value:
        """From a part along one dim to a part along another one."""
        shape, split, concat = list(xt.shape_of(x)), target.dim, source.dim
        for dim, p in sorted(((target.dim, target), (source.dim, source)), key=lambda e: -e[0]):
            if p.segments != 1:
                shape[dim:dim + 1] = [p.segments, floordiv(shape[dim], p.segments)]
                split, concat = (n + 1 if n >= dim else n for n in (split, concat))
        got = xt.all_to_all(_reshaped(x, shape), axes=(self.axis,), split=split, concat=concat, ranks=self.ranks)
        return _reshaped(got, local_shape(whole, target, self.ranks))


def _apart(shape: Sequence[Dim], p: Placement, ranks: int) -> tuple[tuple[Dim, ...], int]:
    """`shape`, of which each of `ranks` has its part, with the segments as a dim of their own; the dim behind it."""
    size = floordiv(shape[p.dim], ranks)
    if p.segments == 1:
        return (*shape[:p.dim], size, *shape[p.dim + 1:]), p.dim
    inner = exact(size, p.segments)
    return (*shape[:p.dim], p.segments, floordiv(size, p.segments) if inner is None else inner,
            *shape[p.dim + 1:]), p.dim + 1


def _reshaped(x: Value, shape: Sequence[Dim]) -> Value:
    return x if tuple(xt.shape_of(x)) == tuple(shape) else xt.reshape(x, shape=shape)


def part_of(array: Array, p: Placement, ranks: int, place: int) -> Array:
    """What the rank at `place` has of an array that is split so: a view where that is one block."""
    segments = int(p.segments)  # type: ignore[arg-type]
    size = array.shape[p.dim] // (segments * ranks)
    if segments == 1:
        return array[(slice(None),) * p.dim + (slice(place * size, (place + 1) * size),)]
    cut = array.reshape(*array.shape[:p.dim], segments, -1, *array.shape[p.dim + 1:])
    own = cut[(slice(None),) * (p.dim + 1) + (slice(place * size, (place + 1) * size),)]
    return np.reshape(own, (*array.shape[:p.dim], segments * size, *array.shape[p.dim + 1:]))
