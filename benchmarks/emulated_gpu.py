"""An AMD GPU whose launches run in an instruction-level emulator: what `xcc.runtime.hip_driver.HipDriver` does."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xcc.runtime.artifact import Artifact
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.signature import solve_symbols
from xcc.targets.amdgcn.code_object import read_code_object

sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "unit"))
from host_driver import HostDriver  # noqa: E402

__all__ = ["EmulatedDriver", "run_artifact"]


class EmulatedDriver(HostDriver):
    """Device memory is host memory; `instructions` counts what the waves executed."""

    device_type = 10

    def __init__(self, emulator: Any, chip: str) -> None:
        super().__init__({})
        self.emulator, self.chip, self.instructions = emulator, chip, 0

    def function(self, module: bytes, name: str, shared_bytes: int = 0) -> Any:
        """The kernel `name`: a function of grid, block, bytes of shared memory, pointers and symbols."""
        if name not in read_code_object(module):
            raise RuntimeError(f"no kernel {name}")

        def run_it(grid: Sequence[int], block: Sequence[int], shared: int, pointers: Sequence[int],
                   symbols: Sequence[int]) -> None:
            arguments = [*map(ctypes.c_uint64, pointers), *map(ctypes.c_int64, symbols)]
            self.instructions += self.emulator.run_kernel(module, name, self.chip, tuple([*grid, 1, 1][:3]),
                                                          tuple(block), arguments, dynamic_lds=shared,
                                                          guard=False).instructions
        return run_it

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
               pointers: Sequence[int], symbols: Sequence[int], early: bool = False) -> None:
        if 0 not in grid:
            self._do("launch", lambda: function(grid, block, shared_bytes, pointers, symbols))

    def launch_edit(self, function: Any, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
                    pointers: Sequence[int], symbols: Sequence[int]) -> Any:
        return super().launch_edit(lambda now, _: function(grid, block, shared_bytes, now, symbols), grid, block,
                                   shared_bytes, pointers, symbols)


def run_artifact(driver: EmulatedDriver, artifact: Artifact, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a compiled AMD model by name, from the executor of the HIP runtime."""
    program = artifact.program
    blobs, holders = modules_of(artifact.members, artifact.manifest["kernels"], (".hsaco",))
    executor = GpuExecutor(driver, program, blobs, artifact.weights, holders)
    arrays = [np.ascontiguousarray(feeds[program.buffers[i].name]) for i in program.inputs]
    outputs = executor.run(arrays, solve_symbols(program, [a.shape for a in arrays]))
    return {program.buffers[i].name: np.asarray(o) for i, o in zip(program.outputs, outputs, strict=True)}
