"""The state of a batch of workgroups that run in lockstep: ids, active threads, memory access with its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xcc.interpreter.async_reads import AsyncReads
from xcc.interpreter.banks import bank_cycles
from xcc.interpreter.clocks import PART, Clocks
from xcc.interpreter.faults import FaultKind, KernelFault, Report
from xcc.interpreter.memory import Buffer, MemRef, any_of, contiguous_strides, pieces
from xcc.interpreter.races import Actors, Tracker

__all__ = ["Machine", "Options", "expand"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Options:
    """How a kernel is run.

    Attributes:
        warp: threads that run in lockstep on the chip (32 or 64).
        races: look for data races in shared and global memory.
        banks: count bank conflicts of shared memory.
        bank_count: shared-memory banks, each 4 bytes wide.
        uninitialised: "report" counts reads of shared memory nobody wrote (they give NaN), "fault" stops there.
        warp_order: a warp's own shared-memory accesses are ordered without a barrier (AMD wavefronts).
        max_threads: threads simulated at once; whole workgroups, at least one.
        last_groups: how many workgroups at the end of a grid are run; 0: all.
        max_trips: trips of one loop after which it counts as endless.
        max_idle: likewise, of trips around an atomic update that change no value.
    """

    warp: int = 32
    races: bool = True
    banks: bool = True
    bank_count: int = 32
    uninitialised: str = "report"
    warp_order: bool = False
    max_threads: int = 1 << 14
    last_groups: int = 0
    max_trips: int = 1 << 24
    max_idle: int = 1 << 10


def expand(value: Array, rank: int) -> Array:
    """`value` of shape (threads,) with unit axes appended until it has `rank` axes."""
    return value.reshape(value.shape + (1,) * (rank - value.ndim))


@dataclass
class Machine:
    """A batch of workgroups. Values are arrays whose first axis is the threads, or has length 1 when all agree.

    Attributes:
        groups: workgroup number in the grid of each workgroup of the batch.
        granule: bytes of shared memory that the race tracker tells apart.
        dynamic_shared: bytes of shared memory given at launch.
        named: memory allocated so far, by symbol.
        pending: asynchronous copies issued and not waited for; `copy_groups` have been closed.
        reading: what matrix instructions may still be reading.
        mask: threads that are active now; `full` when all are.
        ended: threads that have come to their end; barriers do not wait for them.
        updates: atomic updates so far that changed what they updated.
    """

    options: Options
    report: Report
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    groups: Array
    env: list[MemRef | np.ndarray[Any, Any] | None]
    where: Callable[[], str] = lambda: "?"
    granule: int = 4
    dynamic_shared: int = 0
    named: dict[Any, MemRef] = field(default_factory=dict)
    pending: list[Any] = field(default_factory=list)
    copy_groups: int = 0
    updates: int = 0
    reading: AsyncReads = field(default_factory=AsyncReads)

    def __post_init__(self) -> None:
        self.threads_per_group = self.block[0] * self.block[1] * self.block[2]
        self.count = self.threads_per_group * len(self.groups)
        self.mask, self.full, self.actives = np.ones(self.count, np.bool_), True, self.count
        self.ended, self.shared_bytes = np.zeros(self.count, np.bool_), 0
        self.local_group = np.repeat(np.arange(len(self.groups)), self.threads_per_group)
        self.local_thread = np.tile(np.arange(self.threads_per_group), len(self.groups))
        self.group = self.groups[self.local_group]
        self.lane = self.local_thread % self.options.warp
        self.warps_per_group = -(-self.threads_per_group // self.options.warp)
        self.part, in_step = (self.local_thread // PART).astype(np.int32), self.local_thread // self.options.warp
        self.local_warp = self.local_group * self.warps_per_group + in_step
        self.actor = (self.group * self.threads_per_group + (
            in_step if self.options.warp_order else self.local_thread)).astype(np.int32)
        self.warp = (self.group * self.warps_per_group + in_step).astype(np.int32)
        self.clocks = Clocks(len(self.groups), self.threads_per_group)
        self.warp_epoch = np.zeros(len(self.groups) * self.warps_per_group, np.int32)

    # Control

    @contextmanager
    def masked(self, mask: Array) -> Iterator[None]:
        """Runs the body with only the threads of `mask` active."""
        saved = self.mask, self.full, self.actives
        actives = int(np.count_nonzero(mask))
        self.mask, self.full, self.actives = mask, actives == self.count, actives
        try:
            yield
        finally:
            self.mask, self.full, self.actives = saved

    def uniform(self, value: Array) -> np.ndarray[Any, Any] | None:
        """The one value that all active threads have, as a numpy scalar; None when they differ."""
        if value.shape[0] == 1:
            return value[0]
        active = value if self.full else value[self.mask]
        return active[0] if len(active) and (active == active[0]).all() else None

    def active(self, value: int | np.ndarray[Any, Any]) -> Array:
        """`value` (an int or array over threads) of the active threads only."""
        value = np.asarray(value)
        if value.ndim == 0 or value.shape[0] == 1:
            return np.broadcast_to(value.reshape(value.shape or (1,)), (self.actives, *value.shape[1:]))
        return value if self.full else value[self.mask]

    def spread(self, value: Array) -> Array:
        """`value` with an entry a thread."""
        return value if len(value) == self.count else np.broadcast_to(value, (self.count, *value.shape[1:]))

    def fault(self, kind: FaultKind, detail: str) -> KernelFault:
        return KernelFault(kind, self.where(), detail)

    def name_thread(self, flags: Array) -> str:
        """The first active thread whose flag (over active threads) is set, in words."""
        thread = int(np.flatnonzero(self.mask)[int(np.argmax(flags))])
        return f"workgroup {int(self.group[thread])} thread {int(self.local_thread[thread])}"

    def barrier(self) -> None:
        """A workgroup barrier: every thread of a workgroup that has not ended takes part, or none."""
        here, ended = (m.reshape(len(self.groups), self.threads_per_group) for m in (self.mask, self.ended))
        some, every = here.any(axis=1), (here | ended).all(axis=1) & here.any(axis=1)
        if (some != every).any():
            group = int(np.argmax(some != every))
            raise self.fault("divergent-barrier", f"workgroup {int(self.groups[group])}: {int(here[group].sum())} of "
                             f"{self.threads_per_group} threads reach the barrier")
        self.clocks.barrier(np.asarray(some))
        self.reading.barrier()

    def warp_barrier(self) -> None:
        self.warp_epoch[np.unique(self.local_warp[self.mask])] += 1

    # Instructions that read shared memory on their own time

    def reads_on(self, buffer: Buffer, byte: Array, size: int) -> None:
        """Notes that `size` bytes from each of `byte` are being read until a wait, and a barrier behind it."""
        if any_of(buffer.unfenced, byte, size):
            raise self.fault("unfenced-write", "an instruction reads by itself what threads wrote without a fence")
        self.reading.add(buffer, byte, size)

    def fence_writes(self) -> tuple[()]:
        """What threads stored to shared memory can be read by such instructions."""
        for ref in self.named.values():
            if ref.buffer.unfenced is not None:
                ref.buffer.unfenced[:] = False
        return ()

    def check_reads(self, buffer: Buffer, byte: Array, size: int) -> None:
        """A fault where bytes about to be written may still be read."""
        if self.reading.overlap(buffer, byte, size):
            raise self.fault("pending-read", "the write overlaps what an instruction may still be reading: it was not "
                             "waited for, or no barrier came since")

    # Memory

    def allocate(self, name: str, space: str, dtype: np.dtype[Any], sizes: list[int]) -> MemRef:
        """New memory of `space`, poisoned with NaN: a part for each workgroup or for each thread."""
        elements = 1
        for size in sizes:
            elements *= int(np.max(size))
        size = -(-max(1, elements) * dtype.itemsize // 16) * 16
        owner = self.local_group if space == "workgroup" else np.arange(self.count)
        length = size * (len(self.groups) if space == "workgroup" else self.count)
        buffer = Buffer(np.full(length, 0xFF, np.uint8), size, space, name)
        if space == "workgroup":
            self.shared_bytes += size
            buffer.written, buffer.unfenced = np.zeros(length, np.bool_), np.zeros(length, np.bool_)
            buffer.tracker = Tracker(length, self.granule) if self.options.races else None
        return MemRef(buffer, dtype, owner * (size // dtype.itemsize), 0, sizes, contiguous_strides(sizes))

    def address(self, ref: MemRef, indices: list[Array], width: int = 1) -> Array:
        """Element numbers of `indices` in the typed buffer; `width` elements from each are checked to be in bounds."""
        linear: Any = ref.offset
        last = len(indices) - 1
        for axis, (index, size, stride) in enumerate(zip(indices, ref.sizes, ref.strides, strict=True)):
            span = width - 1 if axis == last else 0
            outside = np.asarray((index < 0) | (index + span >= size))
            if outside.any() and not ref.buffer.empty and (bad := self.active(outside)).any():
                seen = self.active(index)[int(np.argmax(bad))]
                limit = self.active(size)[int(np.argmax(bad))]
                more = f" to {int(seen) + span}" if span else ""
                raise self.fault("out-of-bounds", f"{self.name_thread(bad)}: index {int(seen)}{more} of dimension "
                                 f"{axis} of size {int(limit)} in {ref.buffer.name or ref.buffer.space}")
            linear = linear + index * stride
        linear = np.atleast_1d(np.asarray(linear, np.int64))
        capacity = ref.buffer.size // ref.dtype.itemsize
        outside = (linear < 0) | (linear + width > capacity)
        if outside.any() and (bad := self.active(outside)).any():
            raise self.fault("out-of-bounds", f"{self.name_thread(bad)}: element "
                             f"{int(self.active(linear)[int(np.argmax(bad))])} of the {capacity} elements of "
                             f"{ref.buffer.name or ref.buffer.space}")
        return linear + ref.base

    def read(self, ref: MemRef, linear: Array, width: int, mask: Array | None = None) -> Array:
        """Elements (threads, width) from `linear` on. `mask` narrows the threads whose access counts."""
        self._observe(ref, linear, width, mask, write=None)
        memory = ref.buffer.typed(ref.dtype)
        at = np.minimum(np.maximum(linear, 0), max(len(memory) - width, 0))
        return memory[at] if width == 1 else memory[at[:, None] + np.arange(width)]

    def write(self, ref: MemRef, linear: Array, values: Array, mask: Array | None = None, copied: bool = False) -> None:
        """Stores `values` (threads, width); of threads that write one element at once any may win.

        copied: by an asynchronous copy, which needs no fence (see `fence_writes`), whatever was there before.
        """
        width = values.shape[1]
        values = np.ascontiguousarray(self.spread(values).astype(ref.dtype, copy=False))
        linear = self.spread(linear)
        self._observe(ref, linear, width, mask, write=values)
        active = self.mask if mask is None else self.mask & mask
        at = linear[active]
        if ref.buffer.empty and len(at):
            raise self.fault("out-of-bounds", f"writes to {ref.buffer.name}, which has no element")
        if ref.buffer.unfenced is not None and len(at):
            flags, where, every = pieces(ref.buffer.unfenced, at * ref.dtype.itemsize, width * ref.dtype.itemsize)
            flags[where] = 0 if copied else every
        ref.buffer.typed(ref.dtype)[at[:, None] + np.arange(width)] = values[active]

    def _observe(self, ref: MemRef, linear: Array, width: int, mask: Array | None, write: Array | None) -> None:
        """Records an access: races, unwritten shared memory, bank conflicts."""
        buffer = ref.buffer
        if buffer.tracker is None and buffer.space != "workgroup":
            return
        threads = np.flatnonzero(self.mask if mask is None else self.mask & mask)
        if not len(threads):
            return
        at = self.spread(linear)[threads]
        size = width * ref.dtype.itemsize
        byte = at * ref.dtype.itemsize
        if buffer.space == "workgroup":
            self._observe_shared(buffer, byte, size, threads, write is not None)
        if buffer.tracker is None:
            return
        who = self.actors(threads)
        if write is None:
            racing = buffer.tracker.read(byte, size, who)
        else:
            racing = buffer.tracker.write(byte, size, who, write[threads].view(np.uint8).reshape(len(threads), -1))
        if racing is not None:
            thread = int(threads[racing])
            verb = "reads" if write is None else "writes"
            raise self.fault("race", f"workgroup {int(self.group[thread])} thread {int(self.local_thread[thread])} "
                             f"{verb} byte {int(byte[racing])} of {buffer.name or buffer.space}, which another thread "
                             "accessed with no barrier between")

    def actors(self, threads: Array) -> Actors:
        local, part, group = self.local_group[threads], self.part[threads], self.group[threads].astype(np.int32)
        return Actors(self.actor[threads], self.warp[threads], group, self.clocks.own[local, part],
                      self.warp_epoch[self.local_warp[threads]], part, self.clocks.seen[local, part])

    def _observe_shared(self, buffer: Buffer, byte: Array, size: int, threads: Array, write: bool) -> None:
        if any_of(buffer.copying, byte, size):
            raise self.fault("pending-copy", "the access overlaps an asynchronous copy that was not waited for")
        if write:
            self.check_reads(buffer, byte, size)
        if buffer.written is not None:
            flags, where, every = pieces(buffer.written, byte, size)
            if write:
                flags[where] = every
            elif (unknown := flags[where] != every).any():
                missing = int(unknown.any(axis=1).sum())
                if self.options.uninitialised == "fault":
                    raise self.fault("uninitialised", f"{missing} threads read shared memory that nobody wrote")
                key = self.where()
                self.report.uninitialised[key] = self.report.uninitialised.get(key, 0) + missing
        if self.options.banks:
            local = byte - self.local_group[threads] * buffer.size
            accesses, cycles, ideal = bank_cycles(local, size, self.local_warp[threads], self.lane[threads],
                                                  self.options.bank_count, len(self.groups))
            site = self.report.site(self.where())
            site.accesses += accesses
            site.cycles += cycles
            site.ideal += ideal
