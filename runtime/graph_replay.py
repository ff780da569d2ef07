"""Replays a graph after its nodes have been given what has moved: one call of machine code, however many those are.

A call from Python for each node would take longer than the driver takes for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from xcc.runtime.machine_code import MachineCode

__all__ = ["EDIT_FAILED", "GraphReplay", "NodeEdit", "Use"]

EDIT_FAILED = 1 << 32
"""In what :attr:`GraphReplay.start` returns: the status, in the lower bits, is of an edit."""

# Nodes whose edit has failed are edited in the next call.
_CODE = """
%table = type { i64, ptr, ptr, ptr, ptr, i64, ptr, ptr, ptr, ptr }
%use = type { ptr, i64, i64 }
%node = type { i64, ptr, ptr, ptr, ptr }
define i64 @replay(ptr %t) {
entry:
  %all = load %table, ptr %t
  %bases = extractvalue %table %all, 0
  %wanted = extractvalue %table %all, 1
  %known = extractvalue %table %all, 2
  %ends = extractvalue %table %all, 3
  %uses = extractvalue %table %all, 4
  %count = extractvalue %table %all, 5
  %nodes = extractvalue %table %all, 6
  %launch = extractvalue %table %all, 7
  %graph = extractvalue %table %all, 8
  %stream = extractvalue %table %all, 9
  br label %bases.next
bases.next:
  %b = phi i64 [0, %entry], [%b.next, %base.next]
  %u.begin = phi i64 [0, %entry], [%u.end, %base.next]
  %bases.done = icmp eq i64 %b, %bases
  br i1 %bases.done, label %nodes.next, label %base.compare
base.compare:
  %wanted.at = getelementptr i64, ptr %wanted, i64 %b
  %known.at = getelementptr i64, ptr %known, i64 %b
  %end.at = getelementptr i64, ptr %ends, i64 %b
  %now = load i64, ptr %wanted.at
  %before = load i64, ptr %known.at
  %u.end = load i64, ptr %end.at
  %b.next = add i64 %b, 1
  %same = icmp eq i64 %now, %before
  br i1 %same, label %base.next, label %moved
moved:
  store i64 %now, ptr %known.at
  br label %uses.next
uses.next:
  %u = phi i64 [%u.begin, %moved], [%u.next, %use.set]
  %uses.done = icmp eq i64 %u, %u.end
  br i1 %uses.done, label %base.next, label %use.set
use.set:
  %slot.at = getelementptr %use, ptr %uses, i64 %u, i32 0
  %offset.at = getelementptr %use, ptr %uses, i64 %u, i32 1
  %of.at = getelementptr %use, ptr %uses, i64 %u, i32 2
  %slot = load ptr, ptr %slot.at
  %offset = load i64, ptr %offset.at
  %of = load i64, ptr %of.at
  %address = add i64 %now, %offset
  store i64 %address, ptr %slot
  %stale.of = getelementptr %node, ptr %nodes, i64 %of
  store i64 1, ptr %stale.of
  %u.next = add i64 %u, 1
  br label %uses.next
base.next:
  br label %bases.next
nodes.next:
  %n = phi i64 [0, %bases.next], [%n.next, %node.next]
  %nodes.done = icmp eq i64 %n, %count
  br i1 %nodes.done, label %run, label %node.look
node.look:
  %node.at = getelementptr %node, ptr %nodes, i64 %n
  %state = load %node, ptr %node.at
  %stale = extractvalue %node %state, 0
  %fresh = icmp eq i64 %stale, 0
  br i1 %fresh, label %node.next, label %edit
edit:
  %set = extractvalue %node %state, 1
  %handle = extractvalue %node %state, 2
  %parameters = extractvalue %node %state, 3
  %context = extractvalue %node %state, 4
  %edited = call i32 %set(ptr %graph, ptr %handle, ptr %parameters, ptr %context)
  %edit.failed = icmp ne i32 %edited, 0
  br i1 %edit.failed, label %refused, label %edit.done
edit.done:
  store i64 0, ptr %node.at
  br label %node.next
node.next:
  %n.next = add i64 %n, 1
  br label %nodes.next
refused:
  %why = zext i32 %edited to i64
  %marked = or i64 %why, 4294967296
  ret i64 %marked
run:
  %status = call i32 %launch(ptr %graph, ptr %stream)
  %result = zext i32 %status to i64
  ret i64 %result
}
"""


@dataclass(eq=False)
class NodeEdit:
    """What gives a node of a graph its pointers: the C function `set` of (ready graph, node, parameters, context), the
    address of the parameters, and by pointer the address of the 64 bits among them that hold it. `alive` is what these
    addresses need."""

    set: int
    parameters: int
    slots: Sequence[int]
    context: int = 0
    alive: object = field(default=None, repr=False)


Use = tuple[int, NodeEdit, int, int]
"""A pointer into something that moves: the node, its edit, which of its pointers, how far behind the address."""


class GraphReplay:
    """Of a graph whose nodes have pointers into what moves.

    Attributes:
        addresses: by number of what moves, where the next replay is to find it.
        start: ``start(table)`` enqueues a replay; what it returns, other than 0, `refuse` raises.
    """

    def __init__(self, launch: int, graph: int, stream: int, now: Sequence[int], uses: Sequence[Sequence[Use]],
                 refuse: Callable[[int], None]) -> None:
        """`launch`: the C function of (`graph`, `stream`). `now`: where what moves is in the graph, and its `uses`."""
        edits = {id(edit): (node, edit) for of in uses for node, edit, _, _ in of}
        numbers = {key: n for n, key in enumerate(edits)}
        ends, told = [], []
        for of in uses:
            for _, edit, place, offset in of:
                told += [edit.slots[place], offset, numbers[id(edit)]]
            ends.append(len(told) // 3)
        nodes = [word for node, e in edits.values() for word in (0, e.set, node, e.parameters, e.context)]
        self.addresses = _words(now)
        known, end, use, node = tables = _words(now), _words(ends), _words(told), _words(nodes)
        self._alive = tables, [e for _, e in edits.values()]
        self._table = _words([len(now), *map(ctypes.addressof, (self.addresses, known, end, use)), len(edits),
                              ctypes.addressof(node), launch, graph, stream])
        self.table = ctypes.addressof(self._table)
        self.start, self.refuse = _replay(), refuse

    def __call__(self) -> None:
        """Enqueues a replay."""
        if status := self.start(self.table):
            self.refuse(status)


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


@cache
def _replay() -> Callable[[int], int]:
    """The function, whose calls let other threads run meanwhile."""
    return MachineCode(_CODE).function("replay", ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p))
