"""An AMD GPU whose launches run in an instruction-level emulator: what `xcc.runtime.hip_driver.HipDriver` does."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xcc.runtime.artifact import Artifact
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.signature import solve_symbols
from xcc.targets.amdgcn.code_object import read_code_object

__all__ = ["EmulatedDriver", "run_artifact"]


class EmulatedDriver:
    """Device memory is host memory; `instructions` counts what the waves executed."""

    device_type, number = 10, 0

    def __init__(self, emulator: Any, chip: str) -> None:
        self.emulator, self.chip, self.instructions = emulator, chip, 0
        self._memory: dict[int, Any] = {}
        self._recording: list[Callable[[], None]] | None = None

    def activate(self) -> None:
        """There is one device."""

    synchronize = activate

    def current(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def unload(self, module: bytes) -> None:
        """Code is what was loaded, and goes with the last reference."""

    def load(self, blob: bytes) -> bytes:
        return blob

    def function(self, module: bytes, name: str, shared_bytes: int = 0) -> tuple[bytes, str]:
        if name not in read_code_object(module):
            raise RuntimeError(f"no kernel {name}")
        return module, name

    def _do(self, action: Callable[[], Any]) -> None:
        if self._recording is None:
            action()
        else:
            self._recording.append(action)

    def launch(self, function: tuple[bytes, str], grid: Sequence[int], block: Sequence[int], shared_bytes: int,
               pointers: Sequence[int], symbols: Sequence[int], early: bool = False) -> None:
        size = tuple([*grid, 1, 1][:3])
        arguments = [*map(ctypes.c_uint64, pointers), *map(ctypes.c_int64, symbols)]

        def run_it() -> None:
            stats = self.emulator.run_kernel(function[0], function[1], self.chip, size, tuple(block), arguments,
                                             dynamic_lds=shared_bytes, guard=False)
            self.instructions += stats.instructions

        if 0 not in size:
            self._do(run_it)

    def alloc(self, size: int) -> int:
        memory = np.full(size + 256, 0xFF, np.uint8)
        pointer = int(memory.ctypes.data + 255 & ~255)
        self._memory[pointer] = memory
        return pointer

    def free(self, pointer: int) -> None:
        del self._memory[pointer]

    def upload(self, pointer: int, array: Any) -> None:
        self._do(lambda: ctypes.memmove(pointer, array.ctypes.data, array.nbytes))

    def download(self, array: Any, pointer: int) -> None:
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    def copy(self, target: int, source: int, size: int) -> None:
        self._do(lambda: ctypes.memmove(target, source, size))

    def begin_capture(self) -> None:
        self._recording = []

    def end_capture(self) -> list[Callable[[], None]]:
        graph, self._recording = self._recording or [], None
        return graph

    def replay(self, graph: list[Callable[[], None]]) -> None:
        for action in graph:
            action()

    def free_graph(self, graph: list[Callable[[], None]]) -> None:
        graph.clear()


def run_artifact(driver: EmulatedDriver, artifact: Artifact, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a compiled AMD model by name, from the executor of the HIP runtime."""
    program = artifact.program
    blobs, holders = modules_of(artifact.members, artifact.manifest, (".hsaco",))
    executor = GpuExecutor(driver, program, blobs, artifact.weights, holders)
    arrays = [np.ascontiguousarray(feeds[program.buffers[i].name]) for i in program.inputs]
    outputs = executor.run(arrays, solve_symbols(program, [a.shape for a in arrays]))
    return {program.buffers[i].name: np.asarray(o) for i, o in zip(program.outputs, outputs, strict=True)}
