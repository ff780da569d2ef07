"""The CUDA driver API through ctypes: what runs kernels on an NVIDIA GPU. Needs libcuda.so.1 and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

from xcc.runtime import cuda_api
from xcc.runtime.cuda_api import CudaError, attribute, call, context_of, device_of, error, gpu_count, on_gpu
from xcc.runtime.graph_replay import EDIT_FAILED, GraphReplay, NodeEdit, Use
from xcc.runtime.machine_code import address_of_function
from xcc.runtime.stream_driver import CapturedGraph, Handle, StreamDriver, parameters, sizes

__all__ = ["CudaDriver"]

_MAX_SHARED = 8            # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_STATIC_SHARED_LIMIT = 48 * 1024
_JIT_ERROR_LOG, _JIT_ERROR_SIZE = 5, 6

_PROGRAMMATIC_SERIALIZATION = 6     # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_EARLY_IN_GRAPHS = 12030            # the first version whose graphs keep it, and which tells of edges that do

_HOST, _DEVICE = 1, 2               # CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE


class _LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id and a value of 64 bytes, of which the first is an int here."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_char * 60))


class _LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (*((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared_bytes")),
                ("stream", Handle), ("attributes", ctypes.POINTER(_LaunchAttribute)), ("count", ctypes.c_uint))


class _KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (("function", Handle), *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz",
                "shared_bytes")), ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p), ("kernel", Handle),
                ("context", Handle))


def _side(name: str) -> tuple[tuple[str, Any], ...]:
    parts = ("host", "device", "array", "reserved", "pitch", "height")
    return (*((f"{name}_{part}", ctypes.c_size_t) for part in ("x", "y", "z", "lod")), (f"{name}_type", ctypes.c_int),
            *((f"{name}_{part}", ctypes.c_uint64) for part in parts))


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY3D: here of one row."""

    _fields_ = (*_side("source"), *_side("target"), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
                ("depth", ctypes.c_size_t))


def _refuse_replay(status: int) -> None:
    name = "an edit of a graph's node" if status & EDIT_FAILED else "cuGraphLaunch"
    raise error(name, status % EDIT_FAILED)


class CudaDriver(StreamDriver):
    """One GPU and a stream, in the GPU's primary context."""

    device_type = 2        # DLPack's kDLCUDA
    edits_graphs = True
    wait_for_all = "CtxSynchronize"
    prefix = "cu"
    renamed = MappingProxyType({name: f"cu{name}_v2" for name in (
        "MemFree", "MemcpyHtoDAsync", "MemcpyDtoHAsync", "MemcpyDtoDAsync", "StreamBeginCapture", "EventDestroy",
        "StreamDestroy")})
    event_flags = (0,)

    def __init__(self, number: int = 0) -> None:
        """GPU `number`, which is current on the calling thread from now on; UserError where there is none."""
        super().__init__(number)
        self._device, self._context = device_of(number), context_of(number)
        self._alone = gpu_count() == 1
        lib = cuda_api.library()         # each run calls these
        self._make_current = lib.cuCtxSetCurrent
        self._launch_graph = lib.cuGraphLaunch
        self._enter = lib.cuCtxSetCurrent if self._alone else lib.cuCtxPushCurrent_v2
        self.activate()
        call("cuStreamCreate", ctypes.byref(self._own_stream), 0)
        version = ctypes.c_int()
        call("cuDriverGetVersion", ctypes.byref(version))
        self._early_launches = version.value >= _EARLY_IN_GRAPHS

    def call(self, name: str, *args: Any) -> None:
        call(name, *args)

    def activate(self) -> None:
        """Makes the context current on the calling thread."""
        if status := self._make_current(self._context):
            raise error("cuCtxSetCurrent", status)

    def enter(self) -> None:
        if status := self._enter(self._context):
            raise error("cuCtxSetCurrent" if self._alone else "cuCtxPushCurrent_v2", status)

    def leave(self) -> None:
        if not self._alone:
            call("cuCtxPopCurrent_v2", ctypes.byref(Handle()))

    def current(self) -> AbstractContextManager[None]:
        return on_gpu(self.number)

    @property
    def capability(self) -> tuple[int, int]:
        return attribute(self._device, "major"), attribute(self._device, "minor")

    # -- code ---------------------------------------------------------------------------------------------------

    def load(self, blob: bytes) -> Any:
        """A module from PTX text or a cubin; CudaError with the driver's log when it is refused."""
        module = Handle()
        image = blob if blob[:4] == b"\x7fELF" else blob.rstrip(b"\0") + b"\0"
        log = ctypes.create_string_buffer(16384)
        keys = (ctypes.c_int * 2)(_JIT_ERROR_LOG, _JIT_ERROR_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        try:
            call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, keys, values)
        except CudaError as e:
            raise CudaError(f"{e}\n{log.value.decode(errors='replace')}".rstrip()) from None
        return module

    def function(self, module: Any, name: str, shared_bytes: int = 0) -> Any:
        """The kernel `name`, allowed `shared_bytes` of dynamic shared memory."""
        function = Handle()
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared_bytes > _STATIC_SHARED_LIMIT:
            call("cuFuncSetAttribute", function, _MAX_SHARED, shared_bytes)
        return function

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
               pointers: Sequence[int], symbols: Sequence[int], early: bool = False) -> None:
        """Enqueues a kernel whose parameters are `pointers`, then `symbols` as i64. An empty grid is no launch.

        early: the launch before it is a kernel too, for whose end this one waits by itself.
        """
        if 0 in grid:
            return
        params, _alive = parameters(pointers, symbols)
        if not early or not self._early_launches:
            call("cuLaunchKernel", function, *sizes(grid, block, shared_bytes), self._stream, params, None)
            return
        attribute = _LaunchAttribute(_PROGRAMMATIC_SERIALIZATION, 0, 1)
        config = _LaunchConfig(*sizes(grid, block, shared_bytes), self._stream, ctypes.pointer(attribute), 1)
        call("cuLaunchKernelEx", ctypes.byref(config), function, params, None)

    # -- graphs -------------------------------------------------------------------------------------------------

    def replay(self, graph: CapturedGraph) -> None:
        if status := self._launch_graph(graph.ready, graph.stream):
            raise error("cuGraphLaunch", status)

    def captured_node(self) -> int:
        """The node of what was enqueued last, while the stream is captured."""
        status, number, nodes, count = ctypes.c_int(), ctypes.c_uint64(), ctypes.POINTER(Handle)(), ctypes.c_size_t()
        asked = [ctypes.byref(v) for v in (status, number, Handle(), nodes, ctypes.c_void_p(), count)]
        if self._early_launches:
            call("cuStreamGetCaptureInfo_v3", self._stream, *asked)
        else:       # has no edges that are to be told of
            call("cuStreamGetCaptureInfo_v2", self._stream, *asked[:4], asked[5])
        if count.value != 1:
            raise CudaError(f"a captured stream has {count.value} last nodes")
        return nodes[0] or 0

    def launch_edit(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
                    pointers: Sequence[int], symbols: Sequence[int]) -> NodeEdit:
        """What gives a launch's node other pointers."""
        params, values = parameters(pointers, symbols)
        node = _KernelNode(function, *sizes(grid, block, shared_bytes), ctypes.addressof(params))
        at = ctypes.addressof(values)
        return NodeEdit(address_of_function(cuda_api.library().cuGraphExecKernelNodeSetParams_v2),
                        ctypes.addressof(node), range(at, at + 8 * len(pointers), 8), alive=(node, params, values))

    def copy_edit(self, target: int, source: int, size: int, *, from_host: bool = False) -> NodeEdit:
        """What gives a copy's node another target or source, its pointers 0 and 1."""
        copy = _Copy(source_type=_HOST if from_host else _DEVICE, target_type=_DEVICE, target_device=target,
                     width=size, height=1, depth=1, **{"source_host" if from_host else "source_device": source})
        at = ctypes.addressof(copy)
        return NodeEdit(address_of_function(cuda_api.library().cuGraphExecMemcpyNodeSetParams), at,
                        [at + _Copy.target_device.offset, at + _Copy.source_device.offset], self._context.value or 0,
                        alive=copy)

    def movable(self, graph: CapturedGraph, now: Sequence[int], uses: Sequence[Sequence[Use]]) -> GraphReplay:
        """What replays the graph with that elsewhere which is `now` at these addresses, and of which nodes have these
        `uses`."""
        return GraphReplay(address_of_function(self._launch_graph), graph.ready.value, graph.stream.value or 0, now,
                           uses, _refuse_replay)

    # -- memory -------------------------------------------------------------------------------------------------

    def alloc(self, size: int) -> int:
        """Device memory, aligned to 256 bytes."""
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer.value

    def wait_for_gpu(self, number: int) -> None:
        """Waits for the default stream of another GPU."""
        with on_gpu(number):
            call("cuStreamSynchronize", None)

    def copy_from(self, number: int, target: int, source: int, size: int) -> None:
        """Copies to this GPU from another one, after what its default stream has come to, and waits for that."""
        if not size:
            return
        self.wait_for_gpu(number)
        call("cuMemcpyPeerAsync", Handle(target), self._context, Handle(source), context_of(number),
             ctypes.c_size_t(size), self._stream)
        self.synchronize()
