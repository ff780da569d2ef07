"""Collectives between GPUs: NCCL, or RCCL on AMD's, which has the same functions, through ctypes.

Reference: "NVIDIA Collective Communication Library (NCCL) Documentation", "API", and "Using NCCL with CUDA Graphs".
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.mesh import Mesh
from xcc.runtime.peer_collectives import PeerCollectives
from xcc.runtime.program import DTYPE_BYTES, Collective, Program
from xcc.runtime.ranks import Ranks
from xcc.runtime.stream_order import StreamOrder
from xcc.runtime.world import World

__all__ = ["Nccl", "NcclError", "communicator_of", "library"]

_TYPES = {"i8": 0, "ui8": 1, "i1": 1, "i32": 2, "i64": 4, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}     # ncclDataType_t
_BYTE = 1
_COMBINE = {"add": 0, "mul": 1, "max": 2, "min": 3}                                                    # ncclRedOp_t
_IN_PROGRESS = 7
_WATCH = 1.0            # seconds between looks for errors of the library
_LIBRARIES = {"cu": ("libnccl.so.2", "libnccl.so"), "hip": ("librccl.so.1", "librccl.so")}
_FOLDERS = {"cu": ("nvidia/nccl/lib", "torch/lib"), "hip": ("torch/lib",)}
_INSTALL = {"cu": "pip install nvidia-nccl-cu13 (or -cu12, as the driver has it), or torch",
            "hip": "install ROCm's RCCL, or torch for ROCm"}
_Handle = ctypes.c_void_p


class NcclError(RuntimeError):
    """A call failed: the function, and the library's text."""


class _UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


@cache
def library(prefix: str) -> Any:
    """The library for drivers of this prefix ("cu", "hip"); UserError that says what to install.

    That of a wheel goes first, which torch loads, too.
    """
    names = _LIBRARIES[prefix]
    spots = [Path(root, folder, name) for root in _site_folders() for folder in _FOLDERS[prefix] for name in names]
    for name in [*map(str, filter(Path.is_file, spots)), *names]:
        with contextlib.suppress(OSError):
            loaded = ctypes.CDLL(name)
            loaded.ncclGetErrorString.restype = ctypes.c_char_p
            return loaded
    raise UserError(f"collectives between GPUs need {names[0]}, which is not found: {_INSTALL[prefix]}")


def _site_folders() -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    inside = [str(Path(p).parent) for p in (spec.submodule_search_locations or ())] if spec is not None else []
    return [*inside, *sys.path]


class Nccl:
    """Enqueues collectives over the axes sets `groups` of `mesh` on the stream that `driver` uses. All ranks make it
    together; UserError where one of them is gone, or the library is not there."""

    def __init__(self, driver: Any, world: World, mesh: Mesh, groups: Sequence[tuple[str, ...]]) -> None:
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")          # NVLink multicast is not relied on
        os.environ.setdefault("NCCL_RUNTIME_CONNECT", "0")      # ranks connect now, and not while a graph is captured
        self.order = StreamOrder(driver)        # windows are for one sum at a time
        self.driver, self._world, self._library = driver, world, library(driver.prefix)
        self._communicators: dict[tuple[str, ...], tuple[Any, int, int]] = {}
        rank = world.place.rank
        places = {axes: mesh.group(rank, axes) for axes in sorted(groups) if mesh.group_size(axes) > 1}
        ids = world.exchange("NCCL to begin", {",".join(axes): self._unique_id().hex()
                                               for axes, ranks in places.items() if ranks[0] == rank})
        self._all_axes = sorted({axes for of_rank in ids for axes in of_rank})
        self._peers: dict[tuple[str, ...], PeerCollectives] = {}
        self._mesh = mesh
        for axes, ranks in places.items():
            found = ids[ranks[0]].get(",".join(axes))
            if found is None:
                raise UserError(f"rank {ranks[0]} has no collective over {', '.join(axes)}, which rank {rank} has")
            place = ranks.index(rank)
            made = self._joined(bytes.fromhex(found), len(ranks), place)
            self._communicators[axes] = made, place, len(ranks)
        self._closed = threading.Event()
        world.on_failure(self.abort)
        threading.Thread(target=_watch, args=(self._library, self._communicators, world, self._closed), daemon=True,
                         name="xcc nccl").start()

    def use(self, functions: Mapping[str, Any], program: Program) -> None:
        """Has these kernels of the artifact do what they can of `program`. All ranks call it together."""
        for text in self._all_axes:
            axes = tuple(text.split(","))
            ranks = self._mesh.group(self._world.place.rank, axes)
            own = functions if axes in self._communicators else {}
            self._peers[axes] = PeerCollectives(self.driver, self._world, ranks, axes, program, own)

    def places(self, symbols: Mapping[str, int]) -> dict[int, int]:
        """Addresses of buffers that lie in memory of ranks in runs of these sizes."""
        return {b: address for peers in self._peers.values() for b, address in peers.places(symbols).items()}

    def enqueue(self, s: Collective, dtype: str, source: int, target: int, size: int, behind: bool = False) -> None:
        """`s` of a source of `size` bytes and elements of `dtype`; `behind`: what was enqueued last is a kernel."""
        if not size:
            return
        if self._closed.is_set():
            self._world.check()
            raise NcclError("its communicators were given back")
        communicator, place, ranks = self._communicators.get(s.axes, (None, 0, 1))
        if s.kind == "permute" and all(to != place for _, to in s.pairs):
            self.driver.fill(target, 0, size)
        if communicator is None:
            if source != target and not (s.kind == "permute" and not s.pairs):
                self.driver.copy(target, source, size)
            return
        peers = self._peers.get(s.axes)
        if peers is not None and peers.takes(s, dtype, source, target, size):
            peers.enqueue(s, dtype, source, target, size, behind)
            return
        _CALLS[s.kind](self, s, communicator, dtype, source, target, size, place, ranks)

    def is_kernel(self, s: Collective, dtype: str, source: int, target: int, size: int) -> bool:
        """Whether a kernel of the artifact is what does it."""
        peers = self._peers.get(s.axes)
        return bool(size) and peers is not None and peers.takes(s, dtype, source, target, size)

    @property
    def aborted(self) -> bool:
        """Whether the communicators are gone."""
        return self._closed.is_set()

    def abort(self, _reason: str = "") -> None:
        """Ends what waits for others on the GPU; nothing can be enqueued any more."""
        if self._closed.is_set():
            return
        self._closed.set()
        for peers in self._peers.values():
            peers.abort()
        with contextlib.suppress(Exception), self.driver.current():     # a device that has failed gives nothing back
            for communicator, _, _ in self._communicators.values():
                self._library.ncclCommAbort(communicator)

    def close(self) -> None:
        """Gives everything back; nothing that uses it is running, and no graph has it."""
        self._world.forget(self.abort)
        self.order.close()
        for peers in self._peers.values():
            peers.close()
        self.abort()

    def _unique_id(self) -> bytes:
        made = _UniqueId()
        self._call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made)

    def _joined(self, identity: bytes, ranks: int, place: int) -> Any:
        """A communicator, in a thread of its own: it waits for others, who may be gone."""
        made, done, errors = _Handle(), threading.Event(), list[BaseException]()
        self._world.on_failure(failed := lambda _reason: done.set())

        def join() -> None:
            try:
                with self.driver.current():
                    self._call("ncclCommInitRank", ctypes.byref(made), ctypes.c_int(ranks),
                               _UniqueId.from_buffer_copy(identity), ctypes.c_int(place))
            except BaseException as e:      # raised in the caller's thread
                errors.append(e)
            done.set()

        threading.Thread(target=join, daemon=True, name="xcc nccl joins").start()
        done.wait()
        self._world.forget(failed)
        self._world.check()
        if errors:
            raise errors[0]
        return made

    def _call(self, name: str, *args: Any) -> None:
        status = int(getattr(self._library, name)(*args))
        if status not in (0, _IN_PROGRESS):
            text = self._library.ncclGetErrorString(ctypes.c_int(status))
            raise NcclError(f"{name} failed: {(text or b'no text').decode()} ({status})")

    def _move(self, name: str, communicator: Any, source: int, target: int, count: int, *how: int) -> None:
        self._call(name, _Handle(source), _Handle(target), ctypes.c_size_t(count), *map(ctypes.c_int, how),
                   communicator, self.driver.stream)

    def _all_reduce(self, s: Collective, communicator: Any, dtype: str, source: int, target: int, size: int,
                    place: int, ranks: int) -> None:
        self._move("ncclAllReduce", communicator, source, target, size // DTYPE_BYTES[dtype], _TYPES[dtype],
                   _COMBINE[s.combine])

    def _reduce_scatter(self, s: Collective, communicator: Any, dtype: str, source: int, target: int, size: int,
                        place: int, ranks: int) -> None:
        self._move("ncclReduceScatter", communicator, source, target, size // ranks // DTYPE_BYTES[dtype],
                   _TYPES[dtype], _COMBINE[s.combine])

    def _all_gather(self, s: Collective, communicator: Any, dtype: str, source: int, target: int, size: int,
                    place: int, ranks: int) -> None:
        self._move("ncclAllGather", communicator, source, target, size, _BYTE)

    def _broadcast(self, s: Collective, communicator: Any, dtype: str, source: int, target: int, size: int,
                   place: int, ranks: int) -> None:
        self._move("ncclBroadcast", communicator, source, target, size, _BYTE, s.root)

    def _all_to_all(self, s: Collective, communicator: Any, dtype: str, source: int, target: int, size: int,
                    place: int, ranks: int) -> None:
        part = size // ranks
        parts = [(source + part * other, other) for other in range(ranks)]
        self._exchange(communicator, part, parts, [(target + part * other, other) for other in range(ranks)])

    def _permute(self, s: Collective, communicator: Any, dtype: str, source: int, target: int, size: int,
                 place: int, ranks: int) -> None:
        self._exchange(communicator, size, [(source, to) for of, to in s.pairs if of == place],
                       [(target, of) for of, to in s.pairs if to == place])

    def _exchange(self, communicator: Any, size: int, sent: Sequence[tuple[int, int]],
                  received: Sequence[tuple[int, int]]) -> None:
        """Sends and receives `size` bytes each, (address, place), as one operation."""
        self._call("ncclGroupStart")
        for name, moves in (("ncclSend", sent), ("ncclRecv", received)):
            for address, other in moves:
                self._call(name, _Handle(address), ctypes.c_size_t(size), ctypes.c_int(_BYTE), ctypes.c_int(other),
                           communicator, self.driver.stream)
        self._call("ncclGroupEnd")


def communicator_of(ranks: Ranks | None, driver: Any) -> Nccl | None:
    """What executes the collectives of a model that has some."""
    return Nccl(driver, ranks.world, ranks.mesh, ranks.groups) if ranks is not None and ranks.collectives else None


_CALLS: dict[str, Callable[..., None]] = {
    "all_reduce": Nccl._all_reduce, "all_gather": Nccl._all_gather, "reduce_scatter": Nccl._reduce_scatter,
    "all_to_all": Nccl._all_to_all, "permute": Nccl._permute, "broadcast": Nccl._broadcast}


def _watch(loaded: Any, communicators: Any, world: World, closed: threading.Event) -> None:
    """Until it is closed: an error that the library has noticed beside the calls is one of all ranks."""
    while not closed.wait(_WATCH):
        for communicator, _, _ in communicators.values():
            state = ctypes.c_int()
            loaded.ncclCommGetAsyncError(communicator, ctypes.byref(state))
            if state.value not in (0, _IN_PROGRESS):
                text = loaded.ncclGetErrorString(ctypes.c_int(state.value)) or b"no text"
                world.fail(f"NCCL: {text.decode()} ({state.value})")
                return
