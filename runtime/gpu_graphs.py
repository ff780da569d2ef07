"""Graphs of launches and copies whose buffers may move: one graph serves a caller's inputs wherever they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Base", "Recorder", "MovableGraph"]

Base = int | None
"""What a buffer moves with: a number among the places that callers choose; None for what stays where it is."""


@dataclass(frozen=True)
class _Node:
    """One launch or copy. `places` has base and offset of each pointer, or (None, pointer)."""

    handle: Any
    places: tuple[tuple[Base, int], ...]
    edit: Callable[[Any, Any, Sequence[int]], None]
    bases: frozenset[int]


class MovableGraph:
    """What a :class:`Recorder` has captured."""

    def __init__(self, driver: Any, graph: Any, nodes: Sequence[_Node]) -> None:
        self._driver, self._graph = driver, graph
        self._nodes = [n for n in nodes if n.bases]

    def replay(self) -> None:
        """Enqueues it."""
        self._driver.replay(self._graph)

    def move(self, bases: Mapping[int, int], moved: frozenset[int]) -> None:
        """Has what is replayed from now on find the `moved` ones of the `bases` where these are now."""
        for node in self._nodes:
            if not moved.isdisjoint(node.bases):
                node.edit(self._graph, node.handle,
                          [at if base is None else bases[base] + at for base, at in node.places])

    def free(self) -> None:
        """It is not running."""
        self._driver.free_graph(self._graph)


class Recorder:
    """Takes launches and copies in the place of a driver, enqueues them while the stream is captured, and notes which
    pointers lie in what may move."""

    def __init__(self, driver: Any, bases: Mapping[int, int]) -> None:
        """`bases`: where each place that may move is now."""
        self._driver, self._bases = driver, bases
        self._nodes: list[_Node] = []
        driver.begin_capture()

    def finish(self) -> MovableGraph:
        """The graph."""
        return MovableGraph(self._driver, self._driver.end_capture(), self._nodes)

    def abandon(self) -> None:
        """Ends the capture without a graph."""
        self._driver.free_graph(self._driver.end_capture())

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
               pointers: Sequence[int], symbols: Sequence[int], early: bool, of: Sequence[Base]) -> None:
        """As the driver's; `of`: what each pointer moves with."""
        self._driver.launch(function, grid, block, shared_bytes, pointers, symbols, early)

        def edit(graph: Any, node: Any, now: Sequence[int]) -> None:
            self._driver.edit_launch(graph, node, function, grid, block, shared_bytes, now, symbols)

        if 0 not in grid:
            self._note(pointers, of, edit)

    def copy(self, target: int, source: int, size: int, of: Sequence[Base]) -> None:
        """As the driver's."""
        self._driver.copy(target, source, size)

        def edit(graph: Any, node: Any, now: Sequence[int]) -> None:
            self._driver.edit_copy(graph, node, now[0], now[1], size)

        if size:
            self._note((target, source), of, edit)

    def upload(self, pointer: int, array: Any, of: Sequence[Base]) -> None:
        """As the driver's."""
        self._driver.upload(pointer, array)

        def edit(graph: Any, node: Any, now: Sequence[int]) -> None:
            self._driver.edit_copy(graph, node, now[0], array.ctypes.data, array.nbytes, from_host=True)

        if array.nbytes:
            self._note((pointer,), of, edit)

    def _note(self, pointers: Sequence[int], of: Sequence[Base], edit: Callable[[Any, Any, Sequence[int]], None]
              ) -> None:
        used = frozenset(base for base in of if base is not None)
        if used and self._driver.edits_graphs:
            places = tuple((base, p if base is None else p - self._bases[base])
                           for base, p in zip(of, pointers, strict=True))
            self._nodes.append(_Node(self._driver.captured_node(), places, edit, used))
