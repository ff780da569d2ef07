"""The sample tile programs for every AMD chip: numbers in the interpreter, and what the code objects need."""

from __future__ import annotations

import gpu_smoke_cases
import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.passes.base import PassContext
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.emit import emit_kernel
from xcc.targets.amdgcn.pipeline import kernel_pipeline
from xcc.targets.gpu_module import kernel_functions, kernel_launches

KERNELS = {case.kernel: case for case in gpu_smoke_cases.CASES}


def lowered(text: str, chip, stage: str):
    module = ir.Module.parse(text)
    kernel_pipeline(chip).upto(stage).run(module, PassContext(chip=chip))
    module.operation.verify()
    return module


@pytest.fixture(autouse=True)
def context():
    with ir.Context() as c:
        c.allow_unregistered_dialects = True
        yield


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda c: c.name)
@pytest.mark.parametrize("case", gpu_smoke_cases.CASES, ids=lambda c: c.id)
def test_numbers(case, chip):
    inputs, expected, dtype, symbols = case.make(np.random.default_rng(11))
    module = lowered(case.text(), chip, "gpu")
    output = gpu_smoke_cases.poisoned(expected.shape, dtype)
    launch, = kernel_launches(module)
    grid = symbolic.evaluate(launch.grid[0], symbols)
    report = run_kernel(module, launch.entry, (grid, 1, 1), launch.block, [*inputs, output], list(symbols.values()),
                        Options(warp=chip.warp), launch.shared_bytes)
    gpu_smoke_cases.check(output, expected, dtype)
    assert not report.uninitialised
    if case.kernel in ("matmul_f16", "matmul_bf16"):
        assert report.ops["amdgpu.mfma" if chip.warp == 64 else "amdgpu.wmma"]


def kernels_on_chips():
    """Each kernel on two of the chips, which take turns."""
    chips = list(CHIPS.values())
    return [(kernel, chips[(n + k) % len(chips)]) for n, kernel in enumerate(KERNELS) for k in (0, 2)]


@pytest.mark.parametrize(("kernel", "chip"), kernels_on_chips(), ids=str)
def test_code(kernel, chip):
    module = lowered(KERNELS[kernel].text(), chip, "rocdl")
    report = dict(emit_kernel(module, chip).report)
    assert report["scratch_bytes"] == report["spills"] == 0
    assert report["shared_bytes"] <= chip.shared_bytes
    assert len(kernel_functions(module)) == 1
    if kernel in ("matmul_f16", "matmul_bf16"):
        assert report["loop_matrix"] > 0
