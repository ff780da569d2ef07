"""The order of an instance's accesses to memory: on a GPU other threads than those that wrote may read.

A barrier stands between a write and what reads or writes that buffer later, and between a read and a later write of
other elements. Buffers are told apart by the argument that they are. """

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xcc._mlir import Operation, Value, gpu_d, owner_op

_KINDS = {"tile.load": "read", "tile.gather": "read", "tile.store": "write", "tile.scatter": "write",
          "tile.atomic": "atomic", "tile.compare_swap": "atomic"}
_BUFFER = {"tile.load": 0, "tile.gather": 0, "tile.store": 1, "tile.scatter": 1, "tile.atomic": 1,
           "tile.compare_swap": 1}
Access = tuple[str, Any]


def kind_of(source: Operation) -> str:
    """read, write or atomic; nothing for an op that touches no memory."""
    return _KINDS.get(source.name, "")


def buffer_of(source: Operation) -> Value:
    """The argument of the program that an op on memory reads or writes."""
    value = source.operands[_BUFFER[source.name]]
    while hasattr(value.owner, "name") and value.owner.name == "tile.view":
        value = owner_op(value).operands[0]
    return value


class Order:
    """What has been accessed since the last barrier, by buffer."""

    def __init__(self) -> None:
        self.since: dict[Value, set[Access]] = {}

    def access(self, source: Operation, place: tuple[str, Value, tuple[Value, ...]]) -> None:
        """Ahead of the code of `source`, which touches the elements that `place` stands for: a barrier where one is
        needed."""
        mine = (kind_of(source), place)
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
