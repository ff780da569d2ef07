"""What a model has on a GPU for its runs, and how all of it is given back."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xcc.runtime.arena import ArenaPlan
from xcc.runtime.gpu_graphs import Base, MovableGraph

__all__ = ["PlacedShape", "PlacedShapes", "Rooms", "give_back"]

CACHED_SHAPES = 64
AWAITED_SHAPES = 16        # that came once when all places were taken; a longer round of them takes no place


@dataclass(eq=False)
class PlacedShape:
    """What one set of symbol values fixes for runs on one stream: offsets, graphs, and host memory that these read;
    and where the buffers were in the last run.

    Attributes:
        sizes: what is known of those in statements (xcc.runtime.known_sizes).
        keeps_graphs: whether its launches are captured; else they are enqueued one by one.
        in_capture: whether all of the run is captured by the caller, so that nothing can be read back.
        place: the last run's addresses of inputs, outputs and arena, empty where only its graph knows them; `bases` has
            them by buffer, in that order, the arena's as -1.
        aliases: by what they move with (see GpuPlaces), None for what stays, buffers in others and where in them each
            begins; one of another comes behind it.
        elsewhere: addresses of temporaries that do not lie in the arena.
        whole: the graph of all of the program, where one holds it.
    """

    env: dict[str, int]
    addresses: dict[int, int]
    sizes: list[int]
    plan: ArenaPlan
    aliases: dict[Base, list[tuple[int, int]]]
    elsewhere: Mapping[int, int] = field(default_factory=dict)
    keeps_graphs: bool = True
    in_capture: bool = False
    place: list[int] = field(default_factory=list)
    bases: dict[int, int] = field(default_factory=dict)
    graphs: dict[int, MovableGraph] = field(default_factory=dict)
    whole: MovableGraph | None = None
    kept: list[Any] = field(default_factory=list)

    def free(self) -> None:
        """Nothing that uses it is running."""
        for graph in self.graphs.values():
            graph.free()
        self.graphs.clear()
        self.whole = None


class PlacedShapes:
    """Those used last, by symbol values and stream. Among many, a new one gets no place, and keeps no graphs, until it
    comes again."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        """`synchronize` waits for all that runs."""
        self._synchronize = synchronize
        self._held: dict[Any, PlacedShape] = {}
        self._last: tuple[Any, Any] = None, None
        self._awaited: deque[Any] = deque(maxlen=AWAITED_SHAPES)

    def get(self, key: Any, make: Callable[[], PlacedShape]) -> PlacedShape:
        """The one of `key`, which `make` makes where there is none."""
        if key == self._last[0]:
            return self._last[1]
        if key in self._held:       # the one used longest ago is forgotten first
            self._held[key] = shape = self._held.pop(key)
            self._last = key, shape
            return shape
        shape = make()
        if len(self._held) >= CACHED_SHAPES and key not in self._awaited:
            self._awaited.append(key)
            shape.keeps_graphs = False      # it may not come again
            return shape
        if len(self._held) >= CACHED_SHAPES:
            self._synchronize()
            self._held.pop(next(iter(self._held))).free()
        self._held[key] = shape
        self._last = key, shape
        return shape

    def __iter__(self) -> Iterator[PlacedShape]:
        return iter(self._held.values())

    def free(self) -> None:
        """Nothing that uses them is running."""
        for shape in self:
            shape.free()
        self._held.clear()
        self._last = None, None


class Rooms:
    """Device memory by number: the arena, and a place for each input and output. Runs of all sizes take turns in it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._held: dict[int, tuple[int, int]] = {}     # pointer, bytes

    def __bool__(self) -> bool:
        return bool(self._held)

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


def give_back(driver: Any, modules: Sequence[Any], shapes: PlacedShapes,
              rooms: Mapping[Any, Rooms], weights: Mapping[int, int], communicator: Any = None) -> None:
    """Waits for what runs, then frees all of a model's device memory, graphs and code, in any thread.

    A device that has failed gives nothing back: no error.
    """
    with contextlib.suppress(RuntimeError), driver.current():
        driver.synchronize_all()
        if communicator is None or not communicator.aborted:    # graphs would tell communicators that are gone
            shapes.free()
        if communicator is not None:
            communicator.close()
        for held in rooms.values():
            held.free()
        for pointer in weights.values():
            driver.free(pointer)
        for module in modules:
            driver.unload(module)
