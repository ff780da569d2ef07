"""What a model has on a GPU for one set of sizes, and how all that it has there is given back."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PlacedShape", "give_back"]


@dataclass(eq=False)
class PlacedShape:
    """What one set of symbol values fixes: addresses, graphs, and host memory that the graphs read.

    Attributes:
        owned: device memory that goes with it.
    """

    env: dict[str, int]
    addresses: dict[int, int]
    owned: list[int]
    graphs: dict[int, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def free(self, driver: Any) -> None:
        """Nothing that uses it is running."""
        for graph in self.graphs.values():
            driver.free_graph(graph)
        for pointer in self.owned:
            driver.free(pointer)


def give_back(driver: Any, modules: Sequence[Any], shapes: Mapping[Any, PlacedShape],
              weights: Mapping[int, int]) -> None:
    """Waits for what runs, then frees all of a model's device memory, graphs and code, in any thread.

    A device that has failed gives nothing back: no error.
    """
    with contextlib.suppress(RuntimeError), driver.current():
        driver.synchronize()
        for shape in shapes.values():
            shape.free(driver)
        for pointer in weights.values():
            driver.free(pointer)
        for module in modules:
            driver.unload(module)
