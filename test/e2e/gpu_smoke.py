"""The sample tile programs on an NVIDIA GPU that has no compiler installed, against numpy.

    python gpu_smoke.py prepare FOLDER [CHIP]    compiles every case (needs MLIR and llvmlite); default sm_90a
    python gpu_smoke.py run FOLDER               runs them (needs numpy and the driver): times and verdicts
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gpu_smoke_cases
import numpy as np

from xcc import symbolic
from xcc.runtime.cuda_driver import CudaDriver


def prepare(folder: Path, chip_name: str) -> None:
    """Writes <kernel>.cubin (or .ptx) and <kernel>.json for each sample kernel."""
    from xcc._mlir import ir
    from xcc.passes.base import PassContext
    from xcc.runtime.program import to_json
    from xcc.targets.nvptx.chip import chips
    from xcc.targets.nvptx.emit import emit_kernel
    from xcc.targets.nvptx.pipeline import kernel_pipeline

    chip = chips()[chip_name]
    folder.mkdir(parents=True, exist_ok=True)
    for kernel, case in {c.kernel: c for c in gpu_smoke_cases.CASES}.items():
        with ir.Context():
            module = ir.Module.parse(case.text())
            kernel_pipeline().run(module, PassContext(chip=chip))
            binary = emit_kernel(module, chip)
        (folder / f"{kernel}.{binary.format}").write_bytes(binary.blob)
        (folder / f"{kernel}.json").write_text(json.dumps([to_json(x) for x in binary.launches]))
        print(f"{kernel:16} {binary.format} {dict(binary.report)}")


def run(folder: Path, repeats: int = 50) -> int:
    """Runs every case; returns how many were wrong."""
    driver = CudaDriver()
    wrong = 0
    for case in gpu_smoke_cases.CASES:
        inputs, expected, dtype, symbols = case.make(np.random.default_rng(3))
        output = gpu_smoke_cases.poisoned(expected.shape, dtype)
        milliseconds = _launch(driver, folder, case.kernel, [*inputs, output], symbols, repeats)
        try:
            gpu_smoke_cases.check(output, expected, dtype)
            verdict = "ok"
        except AssertionError as e:
            verdict, wrong = f"WRONG: {e}", wrong + 1
        print(f"{case.id:24} {1e3 * milliseconds:9.1f} us  {verdict}")
    return wrong


def _launch(driver: Any, folder: Path, kernel: str, arrays: list[Any], symbols: dict[str, int], repeats: int) -> float:
    """Runs the kernel once on `arrays`, the last of which it fills, then times it; milliseconds a run."""
    blob = next(p for p in (folder / f"{kernel}.cubin", folder / f"{kernel}.ptx") if p.exists()).read_bytes()
    launches = json.loads((folder / f"{kernel}.json").read_text())
    module = driver.load(blob)
    arrays = [np.ascontiguousarray(a) for a in arrays]
    pointers = [driver.alloc(a.nbytes) for a in arrays]
    for p, a in zip(pointers, arrays, strict=True):
        driver.upload(p, a)

    def once() -> None:
        for x in launches:
            grid = [d if isinstance(d, int) else symbolic.evaluate(symbolic.parse(d), symbols) for d in x["grid"]]
            driver.launch(driver.function(module, x["entry"], x["shared_bytes"]), grid, x["block"],
                          x["shared_bytes"], pointers, list(symbols.values()))

    once()
    driver.download(arrays[-1], pointers[-1])
    start = driver.event()
    for _ in range(repeats):
        once()
    time = driver.elapsed_ms(start, driver.event()) / repeats
    for p in pointers:
        driver.free(p)
    return float(time)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("prepare", "run"):
        raise SystemExit(__doc__)
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "sm_90a")
    else:
        raise SystemExit(run(Path(sys.argv[2])))
