"""NCCL between threads of this process, whose GPUs are HostDrivers: what is enqueued runs in its turn."""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from typing import Any

import numpy as np

from xcc.runtime.collectives import COMBINE

TYPES = {0: np.int8, 1: np.uint8, 2: np.int32, 4: np.int64, 6: np.float16, 7: np.float32, 8: np.float64}
OPS = {0: "add", 1: "mul", 2: "max", 3: "min"}
BROKEN = 2


class Group:
    """The ranks of a communicator, which meet in order; who waits when it is aborted has a BrokenBarrierError."""

    def __init__(self, size: int) -> None:
        self.size, self.aborted, self.ready = size, False, threading.Condition()
        self.meetings: list[dict[int, Any]] = []        # what each rank brings, by place
        self.been = [0] * size
        self.sent: dict[tuple[int, int], list[Any]] = defaultdict(list)        # on its way, by (from, to)

    def meet(self, place: int, value: Any) -> dict[int, Any]:
        with self.ready:
            n, self.been[place] = self.been[place], self.been[place] + 1
            if n == len(self.meetings):
                self.meetings.append({})
            self.meetings[n][place] = value
            self.ready.notify_all()
            self.ready.wait_for(lambda: len(self.meetings[n]) == self.size or self.aborted, 120)
            if len(self.meetings[n]) < self.size:
                raise threading.BrokenBarrierError
            return self.meetings[n]

    def send(self, place: int, other: int, value: Any) -> None:
        with self.ready:
            self.sent[place, other].append(value)
            self.ready.notify_all()

    def receive(self, place: int, other: int) -> Any:
        with self.ready:
            self.ready.wait_for(lambda: self.sent[other, place] or self.aborted, 120)
            if not self.sent[other, place]:
                raise threading.BrokenBarrierError
            return self.sent[other, place].pop(0)

    def abort(self) -> None:
        with self.ready:
            self.aborted = True
            self.ready.notify_all()


class FakeNccl:
    """The functions of the library, with ctypes arguments; each thread has set ``local.driver``."""

    def __init__(self) -> None:
        self.local, self.lock = threading.local(), threading.Lock()
        self.groups: dict[bytes, Group] = {}
        self.members: dict[int, tuple[Group, int]] = {}
        self.aborted: list[int] = []
        self.ids = 0
        self.trouble = 0        # what is noticed beside the calls

    def ncclGetErrorString(self, status: Any) -> bytes:
        return {BROKEN: b"unhandled system error"}.get(status.value, b"something else")

    def ncclGetUniqueId(self, out: Any) -> int:
        with self.lock:
            self.ids += 1
            ctypes.memmove(ctypes.addressof(out._obj), b"id%d" % self.ids + b"\0\xff" * 20, 43)
        return 0

    def ncclCommInitRank(self, out: Any, ranks: Any, identity: Any, place: Any) -> int:
        with self.lock:
            group = self.groups.setdefault(bytes(identity), Group(ranks.value))
            out._obj.value = len(self.members) + 1
            self.members[out._obj.value] = group, place.value
        group.meet(place.value, None)
        return 0

    def ncclCommAbort(self, communicator: Any) -> int:
        self.aborted.append(communicator.value)
        self.members[communicator.value][0].abort()
        return 0

    def ncclCommGetAsyncError(self, communicator: Any, out: Any) -> int:
        out._obj.value = self.trouble
        return 0

    def _enqueue(self, communicator: Any, act: Any) -> int:
        group, place = self.members[communicator.value]
        self.local.driver._do("collective", lambda: act(group, place))
        return 0

    def _combined(self, send: Any, recv: Any, count: int, dtype: Any, op: Any, communicator: Any, part: bool) -> int:
        def act(group: Group, place: int) -> None:
            whole = count * group.size if part else count
            parts = group.meet(place, array(send, whole, TYPES[dtype.value]).copy())
            total = parts[0]
            for p in range(1, group.size):
                total = COMBINE[OPS[op.value]](total, parts[p])
            array(recv, count, TYPES[dtype.value])[:] = total[place * count:][:count] if part else total

        return self._enqueue(communicator, act)

    def ncclAllReduce(self, send: Any, recv: Any, count: Any, dtype: Any, op: Any, communicator: Any, _s: Any) -> int:
        return self._combined(send, recv, count.value, dtype, op, communicator, False)

    def ncclReduceScatter(self, send: Any, recv: Any, count: Any, dtype: Any, op: Any, communicator: Any, _s: Any
                          ) -> int:
        return self._combined(send, recv, count.value, dtype, op, communicator, True)

    def ncclAllGather(self, send: Any, recv: Any, count: Any, dtype: Any, communicator: Any, _s: Any) -> int:
        assert dtype.value == 1

        def act(group: Group, place: int) -> None:
            parts = group.meet(place, array(send, count.value).copy())
            array(recv, count.value * group.size)[:] = np.concatenate([parts[p] for p in range(group.size)])

        return self._enqueue(communicator, act)

    def ncclBroadcast(self, send: Any, recv: Any, count: Any, dtype: Any, root: Any, communicator: Any, _s: Any) -> int:
        def act(group: Group, place: int) -> None:
            array(recv, count.value)[:] = group.meet(place, array(send, count.value).copy())[root.value]

        return self._enqueue(communicator, act)

    def ncclGroupStart(self) -> int:
        self.local.moves = []
        return 0

    def ncclSend(self, address: Any, count: Any, dtype: Any, other: Any, communicator: Any, _s: Any) -> int:
        self.local.moves.append(("send", address, count.value, other.value))
        self.local.communicator = communicator
        return 0

    def ncclRecv(self, address: Any, count: Any, dtype: Any, other: Any, communicator: Any, _s: Any) -> int:
        self.local.moves.append(("receive", address, count.value, other.value))
        self.local.communicator = communicator
        return 0

    def ncclGroupEnd(self) -> int:
        moves = self.local.moves
        if not moves:
            return 0

        def act(group: Group, place: int) -> None:
            for what, at, n, other in moves:
                if what == "send":
                    group.send(place, other, array(at, n).copy())
            for what, at, n, other in moves:
                if what == "receive":
                    array(at, n)[:] = group.receive(place, other)

        return self._enqueue(self.local.communicator, act)


def array(address: Any, count: int, dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address.value), dtype)
