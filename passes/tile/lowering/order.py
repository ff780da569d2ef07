"""The order of an instance's accesses to memory: on a GPU other threads than those that wrote may read.

A barrier stands between a write and what reads or writes that buffer later, and between a read and a later write. None
is between a read and the write back of what became of it element by element: each thread then writes what it has read.
Where a tile is reduced, or has fewer elements than a workgroup threads, other threads read them, too. Buffers are told
apart by the argument that they are."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xcc._mlir import Operation, Value, gpu_d, ir, maker, owner_op
from xcc.passes.shared.values import is_elementwise

_KINDS = {"tile.load": "read", "tile.gather": "read", "tile.store": "write", "tile.scatter": "write",
          "tile.atomic": "atomic", "tile.compare_swap": "atomic"}
_BUFFER = {"tile.load": 0, "tile.gather": 0, "tile.store": 1, "tile.scatter": 1, "tile.atomic": 1,
           "tile.compare_swap": 1}
THREADS = 1024      # of a workgroup, at most
Place = tuple[object, ...]
Access = tuple[str, Place]


def kind_of(source: Operation) -> str:
    """read, write or atomic; nothing for an op that touches no memory."""
    return _KINDS.get(source.name, "")


def buffer_of(source: Operation) -> Value:
    """The argument of the program that an op on memory reads or writes."""
    value = source.operands[_BUFFER[source.name]]
    while hasattr(value.owner, "name") and value.owner.name == "tile.view":
        value = owner_op(value).operands[0]
    return value


def place_of(source: Operation) -> Place:
    """The elements that an op on memory touches: ops of one place touch the same, and a write of a read's place comes
    behind it in each thread. A read of which others take something has a place that no write has."""
    place = _elements(source)
    shared = kind_of(source) == "read" and (prod(ir.VectorType(source.results[0].type).shape) < THREADS
                                            or not _is_written_back(source, place))
    return (source,) if shared else place


def _elements(source: Operation) -> Place:
    """The shape, and the buffer, offsets or positions, which constants may say."""
    kind = kind_of(source)
    tile = source.operands[0] if kind == "write" else source.results[0]
    first = 2 if source.name in ("tile.load", "tile.store") else 3      # of the offsets or positions
    buffer = source.operands[1 if kind != "read" else 0]
    return str(ir.VectorType(tile.type).shape), buffer, *map(_offset, list(source.operands)[first:])


def _offset(value: Value) -> Value | str:
    constant = maker(value, "arith.constant")
    return value if constant is None else str(constant.attributes["value"])


def _is_written_back(read: Operation, place: Place) -> bool:
    """Whether what becomes of the elements, each by itself, is written to such places and goes nowhere else."""
    seen: set[Operation] = set()
    waiting = [read]
    while waiting:
        for user in (u.owner.operation for u in waiting.pop().results[0].uses):
            if user in seen:
                continue
            seen.add(user)
            if is_elementwise(user):
                waiting.append(user)
            elif kind_of(user) != "write" or not _are_alike(_elements(user), place):
                return False
    return True


def _are_alike(a: Place, b: Place) -> bool:
    """Whether they are the same but for the buffer."""
    return (a[0], *a[2:]) == (b[0], *b[2:])


class Order:
    """What has been accessed since the last barrier, by buffer."""

    def __init__(self) -> None:
        self.since: dict[Value, set[Access]] = {}

    def access(self, source: Operation) -> None:
        """Ahead of the code of `source`: a barrier where one is needed."""
        mine = (kind_of(source), place_of(source))
        buffer = buffer_of(source)
        if any(_conflict(other, mine) for other in self.since.get(buffer, ())):
            self.barrier()
        self.since.setdefault(buffer, set()).add(mine)

    def barrier(self) -> None:
        gpu_d.barrier()
        self.since = {}

    def turn(self, inside: Iterable[Operation]) -> None:
        """At the start of a loop's turn, `inside` being the ops of its body: what the turn before did is over."""
        kinds: dict[Value, set[str]] = {}
        for source in inside:
            if kind_of(source):
                kinds.setdefault(buffer_of(source), set()).add(kind_of(source))
        if any("write" in k or len(k) > 1 for k in kinds.values()):
            self.barrier()

    def copy(self) -> dict[Value, set[Access]]:
        return {b: set(a) for b, a in self.since.items()}

    def join(self, other: dict[Value, set[Access]]) -> None:
        """Behind branches: what either has accessed."""
        for b, accesses in other.items():
            self.since.setdefault(b, set()).update(accesses)


def _conflict(before: Access, behind: Access) -> bool:
    kinds = (before[0], behind[0])
    if kinds in (("read", "read"), ("atomic", "atomic")):
        return False
    return kinds != ("read", "write") or before[1] != behind[1]
