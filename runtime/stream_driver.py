"""What the drivers of NVIDIA's and AMD's GPUs have in common: a stream, its copies, graphs and events.

The CUDA driver API and the HIP runtime API have the same functions with the same arguments, each under its own names.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["CapturedGraph", "Handle", "StreamDriver", "parameters", "sizes"]

Handle = ctypes.c_void_p
_CAPTURE_RELAXED = 2    # CU_STREAM_CAPTURE_MODE_RELAXED, hipStreamCaptureModeRelaxed


def parameters(pointers: Sequence[int], symbols: Sequence[int]) -> tuple[Any, Any]:
    """A kernel's parameters as the launch functions take them, and the values, which must live until then."""
    count = len(pointers) + len(symbols)
    values = (ctypes.c_int64 * count)(*pointers, *symbols)
    at = ctypes.addressof(values)
    return (ctypes.c_void_p * max(1, count))(*range(at, at + 8 * count, 8)), values


def sizes(grid: Sequence[int], block: Sequence[int], shared_bytes: int) -> list[int]:
    """Workgroups and threads in x, y and z, then bytes of shared memory."""
    return [*[*grid, 1, 1, 1][:3], *[*block, 1, 1, 1][:3], shared_bytes]


@dataclass(frozen=True)
class CapturedGraph:
    """A graph, whose nodes `StreamDriver` calls take, what runs it, and the stream that it runs on."""

    graph: Any
    ready: Any
    stream: Any


class StreamDriver:
    """One GPU and a stream: `_own_stream`, which the driver itself makes, or what :meth:`use` was given.

    Attributes:
        edits_graphs: whether it has `captured_node`, `launch_edit`, `copy_edit` and `movable`.
        prefix: of the functions' names.
        renamed: functions whose name is not the prefix and the common name.
        event_flags: what creates an event takes besides.
        wait_for_all: the function, without prefix, that waits for all streams.
    """

    edits_graphs: ClassVar[bool] = False
    prefix: ClassVar[str]
    renamed: ClassVar[Mapping[str, str]] = {}
    event_flags: ClassVar[tuple[int, ...]] = ()
    wait_for_all: ClassVar[str]

    def __init__(self, number: int) -> None:
        self.number = number
        self._own_stream = Handle()
        self._stream = self._replaced = self._own_stream
        self._callers: dict[int, Any] = {}      # streams by number

    @property
    def stream(self) -> Any:
        """The one that is used now."""
        return self._stream

    def call(self, name: str, *args: Any) -> None:
        """Calls the API's function `name`; an error of the driver's own where it fails."""
        raise NotImplementedError(name)

    def _do(self, name: str, *args: Any) -> None:
        self.call(self.renamed.get(name) or self.prefix + name, *args)

    def current(self) -> contextlib.AbstractContextManager[None]:
        """The GPU is current on the calling thread meanwhile, and then what was before."""
        raise NotImplementedError

    def enter(self) -> None:
        """Makes the GPU current on the calling thread until :meth:`leave`, in as few calls as it takes: with one GPU
        nothing need be as before. Not for calls from several threads at once."""
        raise NotImplementedError

    def leave(self) -> None:
        """What was current before :meth:`enter` is so again."""
        raise NotImplementedError

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """The stream goes with the driver, but not when the process ends: then the API may be gone, and names here."""
        if self._own_stream and not ending():
            with contextlib.suppress(Exception), self.current():    # nobody could be told
                self._do("StreamDestroy", self._own_stream)

    def use(self, stream: int | None) -> None:
        """What is enqueued from now on goes to `stream`, the caller's; None: to the driver's own."""
        if stream is None:
            self._stream = self._own_stream
            return
        if stream not in self._callers:
            self._callers[stream] = Handle(stream)
        self._stream = self._callers[stream]

    def unload(self, module: Any) -> None:
        """Unloads a module whose kernels are not running and in no graph."""
        self._do("ModuleUnload", module)

    # -- memory -------------------------------------------------------------------------------------------------

    def free(self, pointer: int) -> None:
        self._do("MemFree", Handle(pointer))

    def upload(self, pointer: int, array: Any) -> None:
        """Enqueues a copy of a contiguous numpy array to the device; the array must live until `synchronize`."""
        if array.nbytes:
            self._do("MemcpyHtoDAsync", Handle(pointer), Handle(array.ctypes.data), ctypes.c_size_t(array.nbytes),
                     self._stream)

    def download(self, array: Any, pointer: int) -> None:
        """Fills a contiguous numpy array from the device, after everything enqueued before."""
        if array.nbytes:
            self._do("MemcpyDtoHAsync", Handle(array.ctypes.data), Handle(pointer), ctypes.c_size_t(array.nbytes),
                     self._stream)
        self.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        """Enqueues a copy within the device."""
        if size:
            self._do("MemcpyDtoDAsync", Handle(target), Handle(source), ctypes.c_size_t(size), self._stream)

    def fill(self, pointer: int, byte: int, size: int) -> None:
        """Enqueues that `size` bytes are `byte`."""
        if size:
            self._do("MemsetD8Async", Handle(pointer), ctypes.c_ubyte(byte), ctypes.c_size_t(size), self._stream)

    def synchronize(self) -> None:
        self._do("StreamSynchronize", self._stream)

    def wait_for(self, stream: int) -> None:
        """Waits for a caller's stream."""
        self._do("StreamSynchronize", Handle(stream))

    def synchronize_all(self) -> None:
        """Waits for all streams of the GPU."""
        self._do(self.wait_for_all)

    # -- graphs and time ----------------------------------------------------------------------------------------

    def begin_capture(self) -> None:
        """What is enqueued from now on is captured: on the driver's own stream, as not all of a caller's can be."""
        self._replaced, self._stream = self._stream, self._own_stream
        self._do("StreamBeginCapture", self._stream, ctypes.c_int(_CAPTURE_RELAXED))

    def end_capture(self) -> CapturedGraph:
        """Everything enqueued since `begin_capture`, as a graph for the stream that was used before."""
        graph, ready = Handle(), Handle()
        self._stream = self._replaced
        self._do("StreamEndCapture", self._own_stream, ctypes.byref(graph))
        try:
            self._do("GraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_uint64(0))
        except BaseException:
            self._do("GraphDestroy", graph)
            raise
        return CapturedGraph(graph, ready, self._stream)

    def replay(self, graph: CapturedGraph) -> None:
        self._do("GraphLaunch", graph.ready, graph.stream)

    def free_graph(self, graph: CapturedGraph) -> None:
        self._do("GraphExecDestroy", graph.ready)
        self._do("GraphDestroy", graph.graph)

    def event(self) -> Any:
        """An event recorded now."""
        event = Handle()
        self._do("EventCreate", ctypes.byref(event), *self.event_flags)
        self._do("EventRecord", event, self._stream)
        return event

    def mark(self, event: Any = None) -> Any:
        """An event recorded now: `event`, or a new one."""
        if event is None:
            return self.event()
        self._do("EventRecord", event, self._stream)
        return event

    def wait_event(self, event: Any) -> None:
        """What is enqueued from now on waits for it."""
        self._do("StreamWaitEvent", self._stream, event, ctypes.c_uint(0))

    def forget_event(self, event: Any) -> None:
        """It is not recorded any more."""
        self._do("EventDestroy", event)

    def elapsed_ms(self, start: Any, stop: Any) -> float:
        """Milliseconds between two events; waits for the second and frees both."""
        value = ctypes.c_float()
        self._do("EventSynchronize", stop)
        self._do("EventElapsedTime", ctypes.byref(value), start, stop)
        for event in (start, stop):
            self._do("EventDestroy", event)
        return value.value
