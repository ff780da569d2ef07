"""Graphs of launches and copies whose buffers may move: one graph serves a caller's inputs wherever they lie."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

from xcc.runtime.graph_replay import Use

__all__ = ["Base", "MovableGraph", "Recorder"]

Base = int | None
"""What a buffer moves with: a number among the places that callers choose; None for what stays where it is."""


class MovableGraph:
    """What a :class:`Recorder` has captured. It can follow what moves, where graphs can be edited, but not the bases
    `fixed`, which collectives use: their nodes belong to a library."""

    def __init__(self, driver: Any, graph: Any, bases: Mapping[int, int], uses: Mapping[int, Sequence[Use]],
                 fixed: Set[Base]) -> None:
        """`bases`: where each is now, all of them, in the order of :attr:`moves`; `uses`: the pointers into them."""
        self._driver, self._graph, self._fixed = driver, graph, fixed
        self._now, self._uses = list(bases.values()), [list(uses.get(base, ())) for base in bases]
        self._numbers = {base: n for n, base in enumerate(bases)}

    def follows(self, moved: Iterable[Base]) -> bool:
        """Whether it can be replayed when these have moved."""
        return bool(self._driver.edits_graphs) and self._fixed.isdisjoint(moved)

    @cached_property
    def moves(self) -> Any:
        """What replays it with the bases elsewhere (xcc.runtime.graph_replay.GraphReplay)."""
        return self._driver.movable(self._graph, self._now, self._uses)

    def replay(self) -> None:
        """Enqueues it."""
        if "moves" in vars(self):
            self.moves()
        else:
            self._driver.replay(self._graph)

    def move(self, base: int, address: int) -> None:
        """Has what is replayed from now on find `base` there."""
        self.moves.addresses[self._numbers[base]] = address

    def free(self) -> None:
        """It is not running."""
        self._driver.free_graph(self._graph)


class Recorder:
    """Takes launches and copies in the place of a driver, enqueues them while the stream is captured, and notes which
    pointers lie in what may move."""

    def __init__(self, driver: Any, bases: Mapping[int, int]) -> None:
        """`bases`: where each place that may move is now."""
        self._driver, self._bases = driver, dict(bases)
        self._uses: dict[int, list[Use]] = defaultdict(list)
        self._fixed: set[Base] = set()
        driver.begin_capture()

    def finish(self) -> MovableGraph:
        """The graph."""
        return MovableGraph(self._driver, self._driver.end_capture(), self._bases, self._uses, self._fixed)

    def abandon(self) -> None:
        """Ends the capture without a graph."""
        self._driver.free_graph(self._driver.end_capture())

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
               pointers: Sequence[int], symbols: Sequence[int], early: bool, of: Sequence[Base]) -> None:
        """As the driver's; `of`: what each pointer moves with."""
        self._driver.launch(function, grid, block, shared_bytes, pointers, symbols, early)
        if 0 not in grid and self._moves(of):
            self._note(pointers, of, self._driver.launch_edit(function, grid, block, shared_bytes, pointers, symbols))

    def copy(self, target: int, source: int, size: int, of: Sequence[Base]) -> None:
        """As the driver's."""
        self._driver.copy(target, source, size)
        if size and self._moves(of):
            self._note((target, source), of, self._driver.copy_edit(target, source, size))

    def upload(self, pointer: int, array: Any, of: Sequence[Base]) -> None:
        """As the driver's."""
        self._driver.upload(pointer, array)
        if array.nbytes and self._moves(of):
            self._note((pointer,), of, self._driver.copy_edit(pointer, array.ctypes.data, array.nbytes, from_host=True))

    def collective(self, enqueue: Callable[[], None], of: Sequence[Base]) -> None:
        """Has `enqueue` enqueue a collective, whose pointers move with `of`."""
        enqueue()
        self._fixed.update(base for base in of if base is not None)

    def _moves(self, of: Sequence[Base]) -> bool:
        return bool(self._driver.edits_graphs) and any(base is not None for base in of)

    def _note(self, pointers: Sequence[int], of: Sequence[Base], edit: Any) -> None:
        node = self._driver.captured_node()
        for place, (base, pointer) in enumerate(zip(of, pointers, strict=True)):
            if base is not None:
                self._uses[base].append((node, edit, place, pointer - self._bases[base]))
