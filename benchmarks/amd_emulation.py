"""Runs the sample kernels' AMD code objects in an instruction-level emulator and prints a table of their errors.

    python benchmarks/amd_emulation.py --emulator PATH/amd_emu.py gfx942 gfx1100

The emulator is a Python file with ``run_kernel(hsaco, name, arch, grid, block, args, dynamic_lds=)``, where numpy
arrays stand for device pointers. It is not part of this project.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.base import PassContext
from xcc.targets.amdgcn.chip import CHIPS
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", type=Path, required=True)
    parser.add_argument("chips", nargs="*", default=["gfx942", "gfx1100"])
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "test" / "e2e"))
    cases = load(ROOT / "test" / "e2e" / "gpu_cases.py")
    emulator = load(args.emulator)
    print("|" + "|".join(HEAD) + "|\n" + "|---" * len(HEAD) + "|")
    for chip in args.chips:
        for case in (*cases.CASES, *cases.LARGE):
            print("|" + "|".join(run(emulator, case, CHIPS[chip])) + "|", flush=True)


if __name__ == "__main__":
    main()
