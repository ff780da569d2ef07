"""Runs AMD code objects in an instruction-level emulator and prints a table of their errors.

    python benchmarks/amd_emulation.py --emulator PATH/amd_emu.py gfx942 gfx1100            sample tile programs
    python benchmarks/amd_emulation.py --emulator PATH/amd_emu.py --cases gfx942            xt cases, whole pipeline
    python benchmarks/amd_emulation.py --emulator PATH/amd_emu.py --model m.onnx --free-dim 16 gfx942

Whole models run against onnxruntime, xt cases against PyTorch in float64: the executor of the HIP runtime over a driver
that emulates. The emulator is a Python file with ``run_kernel(hsaco, name, arch, grid, block, args, dynamic_lds=,
guard=)``, where numpy arrays or addresses stand for device pointers. It is not part of this project; one that gets
an instruction of ``emulated_instructions.py`` wrong is refused.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import gpu_cases
import numpy as np
from emulated_gpu import EmulatedDriver, run_artifact
from emulated_instructions import wrong_instructions
from gpu import module_text

from xcc import symbolic
from xcc._mlir import ir
from xcc.compiler import compile_model
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.runtime.dtypes import numpy_dtype
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.emit import emit_kernel
from xcc.targets.amdgcn.pipeline import kernel_pipeline
from xcc.targets.base import Chip, KernelBinary

ROOT = Path(__file__).resolve().parent.parent
HEAD = ("chip", "kernel", "case", "max error", "VGPRs", "LDS bytes", "scratch", "waves/SIMD", "loop", "matrix in loop",
        "instructions run")
CASE_HEAD = ("chip", "case", "kernels", "max error", *HEAD[4:])
MODEL_HEAD = ("chip", "model", "kernels", "max error", "instructions run")

XT_CASES = (
    gpu_cases.chain(64, 96),
    gpu_cases.matmul(256, 256, 128, "f16"), gpu_cases.matmul(256, 256, 128, "bf16"),
    gpu_cases.matmul(96, 64, 80, "f16", "T", "T"),
    gpu_cases.epilogue(70, 90, 37, "gelu"), gpu_cases.epilogue(70, 90, 37, "gelu", "bf16"),
    gpu_cases.epilogue(64, 64, 64, "relu+residual"),
    gpu_cases.softmax(8, 1000), gpu_cases.softmax(3, 4096), gpu_cases.softmax(5, 12345),
    gpu_cases.layer_norm(8, 768), gpu_cases.rms_norm(8, 768),
    gpu_cases.attention(1, 2, 64, 64, True), gpu_cases.attention(1, 2, 33, 64, False),
    gpu_cases.conv(1, 14, 32, 64, 3),
    gpu_cases.transpose(64, 96), gpu_cases.transpose(45, 70),
)


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


def needs(kernels: tuple[KernelBinary, ...]) -> tuple[str, ...]:
    """Columns VGPRs to matrix: the largest need of any kernel, the loop with the most matrix instructions."""
    reports: list[dict[str, Any]] = [dict(k.report) for k in kernels]
    loop = max(reports, key=lambda r: (r["loop_matrix"], r["loop_instructions"]))
    return (*(str(max(r[k] for r in reports)) for k in ("vgprs", "shared_bytes", "scratch_bytes")),
            str(min(r["occupancy"] for r in reports)), str(loop["loop_instructions"]), str(loop["loop_matrix"]))


def run_sample(emulator: Any, case: Any, chip: Chip) -> tuple[str, ...]:
    """One row: a tile program of test/e2e/gpu_smoke_cases."""
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
    return (chip.name, case.kernel, " ".join(f"{k}={v}" for k, v in symbols.items()), f"{error:.1e}",
            *needs((binary,)), str(instructions))


def run_xt_case(emulator: Any, case: gpu_cases.Case, chip: str) -> tuple[str, ...]:
    """One row: a case of the GPU benchmark through the whole pipeline, against PyTorch in float64."""
    import torch

    generator = torch.Generator().manual_seed(0)
    kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[case.dtype]
    tensors = [(torch.randn(s, generator=generator) * case.scale).to(kind) for s in case.shapes]
    with torch.no_grad():
        wanted = case.torch(torch.nn.functional, *[t.double() for t in tensors]).numpy()
    bits = torch.int32 if case.dtype == "f32" else torch.int16
    feeds = {f"a{n}": t.view(bits).numpy().view(numpy_dtype(case.dtype)) for n, t in enumerate(tensors)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(module_text(case))
        compiled = compile_model(str(path), CompileOptions(target="amdgcn", chip=chip))
    driver = EmulatedDriver(emulator, chip)
    assert compiled.artifact is not None
    got = run_artifact(driver, compiled.artifact, feeds)["y"].astype(np.float64)
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    return (chip, case.name, str(len(compiled.kernels)), f"{error:.1e}", *needs(compiled.kernels),
            str(driver.instructions))


def run_model(emulator: Any, path: Path, chip: str, free_dim: int) -> tuple[str, ...]:
    """One row: the whole model on random inputs, its batch 1 and its other free dims `free_dim`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng, feeds = np.random.default_rng(0), {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else free_dim for d in i.shape]
        if i.shape and not isinstance(i.shape[0], int):
            shape[0] = 1
        small = rng.integers(0, 2 if "mask" in i.name or "type" in i.name else 50, shape)
        feeds[i.name] = small.astype(np.int64) if "int" in i.type else rng.standard_normal(shape).astype(np.float32)
    compiled = compile_model(str(path), CompileOptions(target="amdgcn", chip=chip))
    driver = EmulatedDriver(emulator, chip)
    assert compiled.artifact is not None
    outputs = run_artifact(driver, compiled.artifact, feeds)
    wanted = dict(zip(outputs, session.run(list(outputs), feeds), strict=True))
    error = max(np.abs(outputs[n] - wanted[n]).max() / np.abs(wanted[n]).max() for n in outputs)
    return chip, path.stem, str(len(compiled.kernels)), f"{error:.1e}", str(driver.instructions)


def show(row: tuple[str, ...]) -> None:
    print("|" + "|".join(row) + "|", flush=True)


def head(row: tuple[str, ...]) -> None:
    show(row)
    show(("---",) * len(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", type=Path, required=True)
    parser.add_argument("--cases", action="store_true", help="cases of the GPU benchmark, at small sizes")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--model", type=Path, action="append", default=[])
    parser.add_argument("--free-dim", type=int, default=16)
    parser.add_argument("chips", nargs="*", default=["gfx942", "gfx1100"])
    args = parser.parse_args()
    emulator = load(args.emulator)
    if wrong := [line for chip in args.chips for line in wrong_instructions(emulator, CHIPS[chip])]:
        raise SystemExit("\n".join([f"{args.emulator} is not to be trusted:", *wrong]))
    if args.model:
        head(MODEL_HEAD)
        for path in args.model:
            for chip in args.chips:
                show(run_model(emulator, path, chip, args.free_dim))
    elif args.cases:
        head(CASE_HEAD)
        for chip in args.chips:
            for xt_case in (c for c in XT_CASES if args.only in c.name):
                show(run_xt_case(emulator, xt_case, chip))
    else:
        samples = load(ROOT / "test" / "e2e" / "gpu_smoke_cases.py")
        head(HEAD)
        for chip in args.chips:
            for case in (c for c in (*samples.CASES, *samples.LARGE) if args.only in c.kernel):
                show(run_sample(emulator, case, CHIPS[chip]))


if __name__ == "__main__":
    main()
