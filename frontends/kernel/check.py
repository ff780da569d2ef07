"""``XCC_KERNEL=check``: runs a tile program in numpy and finds what would be wrong on a device, with the line.

Reads outside an array that has no `other` for them, reads of what nobody wrote (of arrays of :func:`xcc.empty`), and
instances that meet: one reads or writes what another one writes, other than by atomics alone, unless they hold one
lock, or one waits for a signal of the other (see :mod:`xcc.frontends.kernel.locks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcc import tile
from xcc.dialects.tile.memory import inside as inside_of
from xcc.frontends.kernel.artifact import written
from xcc.frontends.kernel.launching import writable
from xcc.frontends.kernel.locks import Locks
from xcc.frontends.kernel.place import error, place_at
from xcc.frontends.kernel.unwritten import unwritten

__all__ = ["check"]

_MANY = -1      # instances
Flags = NDArray[np.bool_]
Units = NDArray[np.int64]


def check(program: tile.Program, arrays: Mapping[str, Any], grid: Sequence[int]) -> None:
    """Runs `program`, which writes to the arrays; UserError for the first thing that is wrong."""
    for name in written(program):
        writable(name, arrays[name])
    watch = _Watch({name: a for name, a in arrays.items() if isinstance(a, np.ndarray)})
    tile.evaluate(program, list(arrays.values()), grid, watch)
    watch.settle()


class _Use:
    """Who did something to each of `count` units last: the number of an instance plus 1, when, and which locks all who
    did it held."""

    def __init__(self, count: int) -> None:
        self.who, self.when, self.locks = (np.zeros(count, np.int32) for _ in range(3))


@dataclass
class _Memory:
    """Who used the bytes of some arrays that overlap, each `unit` bytes; `line` is the number of the place that wrote
    with the fewest locks."""

    begin: int
    end: int
    unit: int
    line: Any = None
    atomic: Any = None
    last: NDArray[np.int32] = field(init=False)     # which element of a tile was the last to be written there
    writes: _Use = field(init=False)
    reads: _Use = field(init=False)

    def prepare(self) -> None:
        count = (self.end - self.begin) // self.unit + 1
        self.writes, self.reads = _Use(count), _Use(count)
        self.line, self.atomic = np.zeros(count, np.int32), np.zeros(count, np.bool_)
        self.last = np.zeros(count, np.int32)

    def twice(self, units: Units) -> Flags:
        """Of the elements whose first units these are, those that others of them overwrite."""
        order = np.arange(len(units), dtype=np.int32)
        self.last[units] = order
        return np.asarray(self.last[units] != order)


class _Watch(tile.Watch):
    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._names = {name: np.lib.array_utils.byte_bounds(a) for name, a in arrays.items()}
        self._memories = _memories([(*self._names[name], a.itemsize) for name, a in arrays.items()])
        self._instances: list[tuple[int, ...]] = []
        self._places: list[str] = [""]
        self._numbers: dict[str, int] = {}
        self._pending: tuple[str, _Memory, Any] | None = None       # a read, unless an atomic's write follows
        self._locks = Locks()

    def begin(self, program: tuple[int, ...]) -> None:
        self.settle()
        self._instances.append(program)
        self._locks.begin()

    def read(self, where: str, program: tuple[int, ...], buffer: Any, indices: Sequence[Any], active: Any,
             inside: bool) -> None:
        self.settle()
        valid = inside_of(buffer, indices)
        outside = active & ~valid
        if inside and np.any(outside):
            raise error(f"{self._instance()} reads outside '{self._name(buffer)}' of shape {list(buffer.shape)}, at "
                        f"{_first(indices, outside)}: give `other` for what is outside", place_at(where))
        there = np.broadcast_to(active & valid, np.shape(indices[0]))
        at = [np.asarray(i)[there] for i in indices]
        fresh = unwritten(buffer[tuple(at)])
        if fresh.any():
            raise error(f"{self._instance()} reads what nobody has written in '{self._name(buffer)}', at "
                        f"{_first(at, fresh)}", place_at(where))
        self._pending = (where, *self._units(buffer, at))

    def write(self, where: str, program: tuple[int, ...], buffer: Any, indices: Sequence[Any], active: Any,
              atomic: str) -> None:
        if atomic:
            self._pending = None
        self.settle()
        there = np.broadcast_to(active & inside_of(buffer, indices), np.shape(indices[0]))
        at = [np.asarray(i)[there] for i in indices]
        memory, units = self._units(buffer, at)
        twice = np.zeros(0) if atomic else memory.twice(units[::max(1, buffer.itemsize // memory.unit)])
        if twice.any():
            raise error(f"{self._instance()} writes {_first(at, twice)} of '{self._name(buffer)}' twice in this line: "
                        "which is last is any; give each its own place, or use an atomic", place_at(where))
        met = self._met(memory.writes, units) & ~(bool(atomic) & memory.atomic[units])
        if met.any():
            self._meet("writes", where, buffer, memory, units[met][0])
        read = self._met(memory.reads, units)
        if read.any():
            unit = units[read][0]
            raise error(f"{self._instance()} writes what {self._other(memory.reads.who[unit])} reads, in "
                        f"'{self._name(buffer)}': {self._order(memory.reads, unit)}", place_at(where))
        self._note(memory.writes, units, len(self._instances))
        fewest = units[memory.writes.locks[units] == self._locks.held]
        memory.line[fewest], memory.atomic[units] = self._number(where), bool(atomic)
        if atomic and there.sum() == 1:
            self._locks.update(buffer, tuple(int(i[0]) for i in at))

    def settle(self) -> None:
        """Notes the last read."""
        if self._pending is None:
            return
        (where, memory, units), self._pending = self._pending, None
        met = self._met(memory.writes, units)
        if met.any():
            self._meet("reads", where, None, memory, units[met][0])
        me, reader = len(self._instances), memory.reads.who[units]
        self._note(memory.reads, units, np.where((reader == 0) | (reader == me), me, _MANY))

    def _met(self, use: _Use, units: Units) -> Flags:
        """Where another instance uses units at any time beside this one; what signals put ahead is forgotten."""
        use.who[units[self._locks.signalled(use.who[units], use.when[units])]] = 0
        who = use.who[units]
        return np.asarray((who != 0) & (who != len(self._instances)) & (self._locks.common(use.locks[units]) == 0))

    def _note(self, use: _Use, units: Units, who: Units | int) -> None:
        use.locks[units] = np.where(use.who[units] == 0, self._locks.held, self._locks.common(use.locks[units]))
        use.who[units], use.when[units] = who, self._locks.now

    def _order(self, use: _Use, unit: int) -> str:
        locked = self._locks.held or use.locks[unit]
        return "the order of instances is any" + ", and they hold no lock in common" * bool(locked)

    def endless(self, where: str, program: tuple[int, ...]) -> None:
        raise error(f"{self._instance()} goes round this loop forever, since what it reads and carries on comes back "
                    "to what it was: it may wait for instances before it only, and for a lock that each gives back",
                    place_at(where))

    def failed(self, where: str, program: tuple[int, ...], message: str) -> None:
        raise error(f"the assertion does not hold in {self._instance()}{message and ': '}{message}", place_at(where))

    def _meet(self, verb: str, where: str, buffer: Any, memory: _Memory, unit: Any) -> None:
        first = self._places[memory.line[unit]]
        file, number, _ = first.rsplit(":", 2)
        line = "this line" if first == where else f"line {number}" if where.startswith(f"{file}:") else first
        names = [n for n, (low, high) in self._names.items() if low <= memory.begin + int(unit) * memory.unit < high]
        name = self._name(buffer) if buffer is not None else names[0]
        also = [n for n in names if n != name]
        raise error(f"{self._instance()} {verb} what {self._other(memory.writes.who[unit])} writes in {line}, in "
                    f"'{name}'" + (f", which shares memory with '{also[0]}'" if also else "")
                    + f": {self._order(memory.writes, unit)}; give each its own part, or use an atomic",
                    place_at(where))

    def _units(self, buffer: Any, at: Sequence[Any]) -> tuple[_Memory, Any]:
        """The memory of `buffer`, and the numbers of the units of its elements at `at`."""
        address = buffer.__array_interface__["data"][0]
        memory = next((m for m in self._memories if m.begin <= address < m.end), self._memories[0])
        offsets = np.full(np.shape(at[0]) if len(at) else (1,), address - memory.begin, np.int64)
        for i, step in zip(at, buffer.strides, strict=True):
            offsets = offsets + np.asarray(i, np.int64) * step
        parts = np.arange(max(1, buffer.itemsize // memory.unit))
        return memory, ((offsets // memory.unit).reshape(-1, 1) + parts).reshape(-1)

    def _number(self, where: str) -> int:
        if where not in self._numbers:
            self._numbers[where] = len(self._places)
            self._places.append(where)
        return self._numbers[where]

    def _instance(self) -> str:
        return self._other(len(self._instances))

    def _other(self, number: int) -> str:
        """An instance, as far as its grid has more than one along an axis."""
        if number == _MANY:
            return "another instance"
        place = self._instances[number - 1]
        while len(place) > 1 and place[-1] == 0:
            place = place[:-1]
        return f"instance {list(place) if len(place) > 1 else place[0]}"

    def _name(self, buffer: Any) -> str:
        address = buffer.__array_interface__["data"][0]
        return next((n for n, (low, high) in self._names.items() if low <= address < high), next(iter(self._names)))


def _first(indices: Sequence[Any], chosen: Any) -> str:
    """The first of some places."""
    place = np.argwhere(np.broadcast_to(chosen, np.shape(indices[0])))[0]
    return str([int(np.asarray(i)[tuple(place)]) for i in indices])


def _memories(spans: Sequence[tuple[int, int, int]]) -> list[_Memory]:
    """One of each group of spans (begin, end, bytes of an element) that overlap."""
    found: list[_Memory] = []
    for begin, end, size in sorted(spans):
        if found and begin < found[-1].end:
            last = found[-1]
            last.end, last.unit = max(last.end, end), min(last.unit, size)
        else:
            found.append(_Memory(begin, end, size))
    for m in found:
        m.prepare()
    return found


