"""Runs the sample kernels' AMD code objects in an instruction-level emulator and prints a table of their errors.

    python benchmarks/amd_emulation.py --emulator PATH/amd_emu.py gfx942 gfx1100
    python benchmarks/amd_emulation.py --emulator PATH/amd_emu.py --model m.onnx --free-dim 16 gfx942

With ``--model`` whole models run, against onnxruntime: the executor of the HIP runtime over a driver that emulates.
The emulator is a Python file with ``run_kernel(hsaco, name, arch, grid, block, args, dynamic_lds=, guard=)``, where
numpy arrays or addresses stand for device pointers. It is not part of this project.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xcc
from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.base import PassContext
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.signature import solve_symbols
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.code_object import read_code_object
from xcc.targets.amdgcn.emit import emit_kernel
from xcc.targets.amdgcn.pipeline import kernel_pipeline
from xcc.targets.base import Chip, KernelBinary

ROOT = Path(__file__).resolve().parent.parent
HEAD = ("chip", "kernel", "case", "max error", "VGPRs", "LDS bytes", "scratch", "waves/SIMD", "loop", "matrix in loop",
        "instructions run")


def load(path: Path) -> Any:
    """The Python file `path` as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def compile_kernel(text: str, chip: Chip) -> KernelBinary:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        kernel_pipeline(chip).run(module, PassContext(chip=chip))
        return emit_kernel(module, chip)


def run(emulator: Any, case: Any, chip: Chip) -> tuple[str, ...]:
    """One row of the table."""
    inputs, expected, dtype, symbols = case.make(np.random.default_rng(5))
    output = np.full(expected.shape, np.nan, dtype)
    binary = compile_kernel(case.text(), chip)
    arrays = [a.view(np.uint16) if a.dtype.kind == "V" else a for a in (*inputs, output)]
    instructions = 0
    for launch in binary.launches:
        grid = tuple(int(symbolic.evaluate(d, symbols)) for d in launch.grid)
        stats = emulator.run_kernel(binary.blob, launch.entry, chip.name, grid, launch.block,
                                    [*arrays, *(ctypes.c_int64(v) for v in symbols.values())],
                                    dynamic_lds=launch.shared_bytes)
        instructions += stats.instructions
    error = np.abs(output.astype(np.float64) - expected).max() / np.abs(expected).max()
    r = dict(binary.report)
    return (chip.name, case.kernel, " ".join(f"{k}={v}" for k, v in symbols.items()), f"{error:.1e}", str(r["vgprs"]),
            str(r["shared_bytes"]), str(r["scratch_bytes"]), str(r["occupancy"]), str(r["loop_instructions"]),
            str(r["loop_matrix"]), str(instructions))


class EmulatedDriver:
    """What `xcc.runtime.hip_driver.HipDriver` does, with host memory and emulated launches."""

    device_type, number = 10, 0

    def __init__(self, emulator: Any, chip: str) -> None:
        self.emulator, self.chip, self.instructions = emulator, chip, 0
        self._memory: dict[int, Any] = {}
        self._recording: list[Callable[[], None]] | None = None

    def activate(self) -> None:
        """There is one device."""

    synchronize = activate

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
               pointers: Sequence[int], symbols: Sequence[int]) -> None:
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


def run_model(emulator: Any, path: Path, chip: str, free_dim: int) -> tuple[str, ...]:
    """One row: the whole model on random inputs, its batch 1 and its other free dims `free_dim`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng, feeds = np.random.default_rng(0), {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 if "batch" in str(d) else free_dim for d in i.shape]
        small = rng.integers(0, 2 if "mask" in i.name or "type" in i.name else 50, shape)
        feeds[i.name] = small.astype(np.int64) if "int" in i.type else rng.standard_normal(shape).astype(np.float32)
    artifact = xcc.compile(str(path), target="amdgcn", chip=chip).artifact
    driver = EmulatedDriver(emulator, chip)
    blobs = [bytes(data) for name, data in sorted(artifact.members.items()) if name.endswith(".hsaco")]
    executor = GpuExecutor(driver, artifact.program, blobs, artifact.weights)
    arrays = [feeds[artifact.program.buffers[i].name] for i in artifact.program.inputs]
    outputs = executor.run(arrays, solve_symbols(artifact.program, [a.shape for a in arrays]))
    wanted = session.run([artifact.program.buffers[i].name for i in artifact.program.outputs], feeds)
    error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(outputs, wanted, strict=True))
    return chip, path.stem, str(len(blobs)), f"{error:.1e}", str(driver.instructions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", type=Path, required=True)
    parser.add_argument("--model", type=Path, action="append", default=[])
    parser.add_argument("--free-dim", type=int, default=16)
    parser.add_argument("chips", nargs="*", default=["gfx942", "gfx1100"])
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "test" / "e2e"))
    cases = load(ROOT / "test" / "e2e" / "gpu_cases.py")
    emulator = load(args.emulator)
    if args.model:
        print("|chip|model|kernels|max error|instructions run|\n|---|---|---|---|---|")
        for chip in args.chips:
            for path in args.model:
                print("|" + "|".join(run_model(emulator, path, chip, args.free_dim)) + "|", flush=True)
        return
    print("|" + "|".join(HEAD) + "|\n" + "|---" * len(HEAD) + "|")
    for chip in args.chips:
        for case in (*cases.CASES, *cases.LARGE):
            print("|" + "|".join(run(emulator, case, CHIPS[chip])) + "|", flush=True)


if __name__ == "__main__":
    main()
