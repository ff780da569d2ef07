"""Runs on a GPU that differ from the one before in addresses alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc.runtime.gpu_places import GpuPlaces
from xcc.runtime.placed_shape import PlacedShape

__all__ = ["GpuRepeat"]


class GpuRepeat:
    """Replays what `shape` has for the whole program."""

    def __init__(self, driver: Any, places: GpuPlaces, shape: PlacedShape, numbers: Sequence[int]) -> None:
        """`numbers`: which of inputs, outputs and arena, in the order of a shape's `place`, may have moved."""
        self._driver, self._places, self._shape = driver, places, shape
        self._numbers = list(numbers)

    def run(self, addresses: Sequence[int]) -> bool:
        """Enqueues a run that finds these at `addresses`; False, and nothing is enqueued, where
        the shape has no graph any more."""
        shape, driver = self._shape, self._driver
        if shape.whole is None:
            return False
        place = shape.place
        driver.enter()
        try:
            for n, address in zip(self._numbers, addresses, strict=True):
                if place[n] != address:
                    place[n] = address
                    self._places.move(shape, n, address)
            shape.whole.replay()
        finally:
            driver.leave()
        return True
