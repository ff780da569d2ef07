"""Sums, gathers and exchanges over GPUs of one machine by kernels of the artifact, which write into the others' memory:
sums and gathers for sizes at which that is quicker than the library.

What two ranks send each other lies in the windows from the beginning (xcc.runtime.peer_places): the kernel that
computes it writes it into the other's window, where its readers find it, and the exchange is a meeting; what others
made a kernel of its own sends.
Windows stay as long as the process, as others have mapped them; models that come later take them again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.peer_places import SWAP, Areas, areas_for, exchanges, merged, places
from xcc.runtime.program import Collective, Program
from xcc.runtime.world import World

__all__ = ["BLOCKS", "FLAGS", "THREADS", "PeerCollectives", "does_collectives", "kernel_name"]

# Kernels in artifacts are made for these: changing one changes the artifact's format.
BLOCKS, THREADS = 64, 512
FLAGS = 1 << 16                 # bytes of flags at the beginning of a window
MOST_RANKS = FLAGS // (4 * BLOCKS)
LEAST = 1 << 20                # bytes of a source: for less the library is quicker
PUSHED = 16 << 20               # bytes that a rank sends: for more the library is as fast
EXCHANGED = 1 << 30             # bytes of what two ranks send each other in a run
OF_ANY_SIZE = Areas(16 << 20, 48 << 20)     # for sizes that a run tells
EARLY = "_early"                # behind the name of a kernel that waits for the launch before it by itself
_HANDLE_BYTES = 64              # CUipcMemHandle
_LAZY_ACCESS = 1                # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
_MAPPED = 3                     # CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP


def kernel_name(kind: str, combine: str, dtype: str) -> str:
    """Of the kernel that does a collective of these; a gather is the same for all types."""
    return "_".join(["xcc", kind, *([combine, dtype] if combine else [])])


def does_collectives(kernel: str) -> bool:
    """Whether the kernel of this name is one of those."""
    return kernel.startswith(("xcc_all_reduce_", "xcc_all_gather", "xcc_permute", "xcc_meeting"))


class _IpcHandle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


class _Window:
    """This rank's memory that the others of a group write to, and theirs, of the same `number`. `slot`: bytes of what a
    rank sends; `room`: of what is exchanged, which begins at `begin`; `mapped`: the windows' addresses by place."""

    def __init__(self, driver: Any, ranks: int, number: int, room: int) -> None:
        self.driver, self.number, self.slot = driver, number, PUSHED // max(1, ranks - 1) // 256 * 256
        self.begin, self.room = FLAGS + 2 * ranks * self.slot, room
        self.mapped: list[int] = []
        size = self.begin + room
        self.own, self.table, self.epochs = driver.alloc(size), driver.alloc(8 * ranks), driver.alloc(4 * BLOCKS)
        driver.fill(self.own, 0, FLAGS)
        driver.fill(self.epochs, 0, 4 * BLOCKS)
        driver.synchronize()

    def handle(self) -> bytes:
        """What others map it by."""
        made = _IpcHandle()
        self.driver.call("cuIpcGetMemHandle", ctypes.byref(made), ctypes.c_uint64(self.own))
        return bytes(made)

    def map(self, handles: Sequence[bytes], place: int) -> None:
        """Maps those of the others."""
        addresses = np.zeros(len(handles), np.uint64)
        for n, handle in enumerate(handles):
            pointer = ctypes.c_uint64(self.own)
            if n != place:
                self.driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), _IpcHandle.from_buffer_copy(handle),
                                 ctypes.c_uint(_LAZY_ACCESS))
            addresses[n] = pointer.value
        self.mapped = addresses.tolist()
        self.driver.upload(self.table, addresses)
        self.driver.synchronize()

    def holds(self, address: int) -> bool:
        """Whether it is of what this rank gets in exchanges."""
        return self.begin <= address - self.own < self.begin + self.room


_FREE: dict[tuple[int, tuple[int, ...]], list[_Window]] = {}      # by GPU and group: those that no model has


class PeerCollectives:
    """Collectives among `ranks`, of which this one is at `place`, by `functions`, kernels by name.

    All ranks of the world make it together, for the same groups; `ready` is whether they all can.
    """

    def __init__(self, driver: Any, world: World, ranks: tuple[int, ...], axes: tuple[str, ...], program: Program,
                 functions: Mapping[str, Any]) -> None:
        self._driver, self._functions = driver, functions
        self._place, self._ranks = ranks.index(world.place.rank), len(ranks)
        self._key = driver.number, ranks
        self._window: _Window | None = None
        self._given_up: Any = None
        self._program = program
        pair = len(ranks) == 2 and kernel_name("permute", "", "") in functions
        self.exchanges = exchanges(program, axes) if pair else []
        self._facts, self._areas = self._agreed(world, ranks)
        self.ready = False
        could = driver.prefix == "cu" and 1 < len(ranks) <= MOST_RANKS and bool(functions) and _wanted()
        if self._find_window(world, ranks, could):
            pointer = ctypes.c_void_p()
            driver.call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(4096), ctypes.c_uint(_MAPPED))
            self._given_up = ctypes.c_uint32.from_address(pointer.value or 0)
            self._given_up.value = 0
            self.ready = True

    def _agreed(self, world: World, ranks: tuple[int, ...]) -> tuple[list[tuple[int, int, bool]], Areas]:
        """What the exchanges of both ranks are like, and the room for them."""
        said = world.exchange("exchanges to be known", [e.facts for e in self.exchanges])
        facts = merged([said[r] for r in ranks])
        if not facts:
            return [], Areas()
        if self._program.symbols:
            return facts, OF_ANY_SIZE
        return facts, areas_for(facts, self._sizes({}), EXCHANGED)

    def _sizes(self, symbols: Mapping[str, int]) -> list[int]:
        return [symbolic.evaluate(self._program.nbytes(e.source), symbols) for e in self.exchanges]

    def places(self, symbols: Mapping[str, int]) -> dict[int, int]:
        """Addresses of buffers that lie in windows in runs of these sizes."""
        window, out = self._window, dict[int, int]()
        if not self.ready or window is None or not self._facts:
            return out
        for n, offset in places(self._facts, self._sizes(symbols), self._areas).items():
            own = self.exchanges[n]
            out[own.target] = window.own + window.begin + offset
            if own.pushed:
                out[self._program.root(own.source)] = window.mapped[1 - self._place] + window.begin + offset
        return out

    def _find_window(self, world: World, ranks: tuple[int, ...], could: bool) -> bool:
        """One that all of the group have left, or a new one; whether all of the group have it."""
        room = self._areas.first + self._areas.rest
        held = {w.number: w for w in _FREE.setdefault(self._key, []) if w.room >= room}
        said = world.exchange("windows to be looked for", [_machine() if could else "", sorted(held)])
        number, handle = world.meetings, b""
        common = set.intersection(*(set(said[r][1]) for r in ranks))
        if could and all(said[r][0] == said[ranks[0]][0] for r in ranks):
            with contextlib.suppress(RuntimeError):
                self._window = held[min(common)] if common else _Window(self._driver, len(ranks), number, room)
                handle = self._window.handle()
        handles = world.exchange("windows to be made", handle.hex())
        fine = self._window is not None and all(handles[r] for r in ranks)
        if fine and not common and self._window is not None:
            try:
                self._window.map([bytes.fromhex(handles[r]) for r in ranks], self._place)
            except RuntimeError:        # no peer access, or no IPC in this container
                fine = False
        if common and self._window is not None:
            _FREE[self._key].remove(self._window)
        mapped = world.exchange("windows to be mapped", fine)
        return all(mapped[r] for r in ranks)

    def takes(self, s: Collective, dtype: str, source: int, target: int, size: int) -> bool:
        """Whether it can do `s` of these bytes."""
        if s.kind == "permute":
            return self.ready and self._window is not None and s.pairs == SWAP and self._window.holds(target)
        return self.ready and kernel_name(s.kind, s.combine, dtype) in self._functions \
            and self._window is not None and LEAST <= size <= self._window.slot and not (size | source | target) % 16

    def enqueue(self, s: Collective, dtype: str, source: int, target: int, size: int, behind: bool) -> None:
        """Does it, on the stream that the driver uses; `behind`: what was enqueued there last is a kernel."""
        window = self._window
        assert window is not None
        if s.kind == "permute":
            self._exchange(window, source, target - window.own, size, behind)
            return
        self._driver.launch(self._functions[kernel_name(s.kind, s.combine, dtype)], (BLOCKS, 1, 1), (THREADS, 1, 1), 0,
                            [source, target, window.table, window.epochs, ctypes.addressof(self._given_up)],
                            [size // 16, self._place, self._ranks, window.slot])

    def _exchange(self, window: _Window, source: int, offset: int, size: int, behind: bool) -> None:
        """Sends `source` to the other's window, unless it was written there, and meets the other."""
        given_up, other = ctypes.addressof(self._given_up), 1 - self._place
        if source != window.mapped[other] + offset:
            self._driver.launch(self._functions[kernel_name("permute", "", "")], (BLOCKS, 1, 1), (THREADS, 1, 1), 0,
                                [source, 0, window.table, window.epochs, given_up],
                                [size // 16, self._place, self._ranks, offset])
            return
        name = kernel_name("meeting", "", "")
        early = name not in self._functions
        flags = [window.mapped[other] + 4 * BLOCKS * self._place, window.own + 4 * BLOCKS * other]
        self._driver.launch(self._functions[name + EARLY * early], (1, 1, 1), (1, 1, 1), 0,
                            [*flags, window.epochs, given_up], [], early and behind)

    def abort(self) -> None:
        """Nobody waits any more; what others write afterwards is not read."""
        if self._given_up is not None:
            self._given_up.value = 1
            self._window = None         # its turns are not those of the others any more

    def close(self) -> None:
        """Nothing that uses it is running."""
        if self._window is not None and self.ready:
            _FREE[self._key].append(self._window)
        if self._given_up is not None:
            with contextlib.suppress(RuntimeError):
                self._driver.call("cuMemFreeHost", ctypes.c_void_p(ctypes.addressof(self._given_up)))
        self.ready, self._window, self._given_up = False, None, None


def _wanted() -> bool:
    """Whether ``XCC_PEER_COLLECTIVES`` leaves it to us; 0: the library does all."""
    text = os.environ.get("XCC_PEER_COLLECTIVES", "1")
    if text not in ("0", "1"):
        raise UserError(f"XCC_PEER_COLLECTIVES is '{text}': 0 leaves all collectives to the library, 1 does not")
    return text == "1"


def _machine() -> str:
    """Tells machines apart, and containers that see the same one's memory not."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"
