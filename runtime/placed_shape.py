"""What a model has on a GPU for its runs, and how all of it is given back."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PlacedShape", "Rooms", "give_back"]


@dataclass(eq=False)
class PlacedShape:
    """What one set of symbol values fixes: addresses, graphs, and host memory that the graphs read.

    Attributes:
        sizes: what is known of those in statements (xcc.runtime.known_sizes).
        keeps_graphs: whether its launches are captured; else they are enqueued one by one.
    """

    env: dict[str, int]
    addresses: dict[int, int]
    sizes: list[int]
    keeps_graphs: bool = True
    graphs: dict[int, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def free(self, driver: Any) -> None:
        """Nothing that uses it is running."""
        for graph in self.graphs.values():
            driver.free_graph(graph)
        self.graphs.clear()


class Rooms:
    """Device memory by number: the arena, and a place for each input and output. Runs of all sizes take turns in it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._held: dict[int, tuple[int, int]] = {}     # pointer, bytes

    def suffice(self, sizes: Mapping[int, int]) -> bool:
        return all(i in self._held and self._held[i][1] >= n for i, n in sizes.items())

    def pointers(self) -> dict[int, int]:
        return {i: pointer for i, (pointer, _) in self._held.items()}

    def grow(self, sizes: Mapping[int, int]) -> None:
        """Makes them suffice for `sizes`; nothing that uses them is running, nor will.

        One that grows gets a quarter more than is asked for, so that sizes which go up by one do not move it each time.
        """
        try:
            for i, n in sizes.items():
                before = self._held.get(i, (0, -1))[1]
                if before < n:
                    self._free(i)
                    self._make(i, n + n // 4 if before >= 0 else n)
        except RuntimeError:    # what other sizes needed makes room, and nothing is spared
            self.free()
            for i, n in sizes.items():
                self._make(i, n)

    def poison(self) -> None:
        """Enqueues that all of it is poison; the driver is a PoisonedDriver."""
        self.driver.poison(self._held)

    def free(self) -> None:
        for i in list(self._held):
            self._free(i)

    def _make(self, i: int, size: int) -> None:
        self._held[i] = self.driver.alloc(size), size

    def _free(self, i: int) -> None:
        if i in self._held:
            self.driver.free(self._held.pop(i)[0])


def give_back(driver: Any, modules: Sequence[Any], shapes: Mapping[Any, PlacedShape], rooms: Rooms,
              weights: Mapping[int, int]) -> None:
    """Waits for what runs, then frees all of a model's device memory, graphs and code, in any thread.

    A device that has failed gives nothing back: no error.
    """
    with contextlib.suppress(RuntimeError), driver.current():
        driver.synchronize()
        for shape in shapes.values():
            shape.free(driver)
        rooms.free()
        for pointer in weights.values():
            driver.free(pointer)
        for module in modules:
            driver.unload(module)
