"""Graphs of launches and copies whose buffers may move: one graph serves a caller's inputs wherever they lie."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

__all__ = ["Base", "MovableGraph", "Recorder"]

Base = int | None
"""What a buffer moves with: a number among the places that callers choose; None for what stays where it is."""


@dataclass(eq=False)
class _Node:
    """One launch or copy: `edit` is the driver's, with ``set(place, address)`` of its pointers and ``apply``."""

    handle: Any
    edit: Any


Uses = Mapping[int, Sequence[tuple[_Node, int, int]]]
"""By base, the nodes with a pointer into it: which of their pointers, how far behind the base."""


class MovableGraph:
    """What a :class:`Recorder` has captured. It can follow what moves, where graphs can be edited, but not the bases
    `fixed`, which collectives use: their nodes belong to a library."""

    def __init__(self, driver: Any, graph: Any, uses: Uses, fixed: Set[Base]) -> None:
        self._driver, self._graph, self._uses, self._fixed = driver, graph, uses, fixed
        self._edited: dict[_Node, None] = {}        # since it was replayed

    def follows(self, moved: Iterable[Base]) -> bool:
        """Whether it can be replayed when these have moved."""
        return bool(self._driver.edits_graphs) and self._fixed.isdisjoint(moved)

    def replay(self) -> None:
        """Enqueues it."""
        if self._edited:
            for node in self._edited:
                node.edit.apply(self._graph, node.handle)
            self._edited.clear()
        self._driver.replay(self._graph)

    def move(self, base: int, address: int) -> None:
        """Has what is replayed from now on find `base` there."""
        for node, place, offset in self._uses.get(base, ()):
            node.edit.set(place, address + offset)
            self._edited[node] = None

    def free(self) -> None:
        """It is not running."""
        self._driver.free_graph(self._graph)


class Recorder:
    """Takes launches and copies in the place of a driver, enqueues them while the stream is captured, and notes which
    pointers lie in what may move."""

    def __init__(self, driver: Any, bases: Mapping[int, int]) -> None:
        """`bases`: where each place that may move is now."""
        self._driver, self._bases = driver, bases
        self._uses: dict[int, list[tuple[_Node, int, int]]] = defaultdict(list)
        self._fixed: set[Base] = set()
        driver.begin_capture()

    def finish(self) -> MovableGraph:
        """The graph."""
        return MovableGraph(self._driver, self._driver.end_capture(), self._uses, self._fixed)

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
        node = _Node(self._driver.captured_node(), edit)
        for place, (base, pointer) in enumerate(zip(of, pointers, strict=True)):
            if base is not None:
                self._uses[base].append((node, place, pointer - self._bases[base]))
