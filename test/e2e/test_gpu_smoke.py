"""The sample tile programs on an NVIDIA GPU against numpy, and their code for every chip without one.

On a machine with a GPU: ``pytest -m gpu test/e2e/test_gpu_smoke.py``, or run this file to see times as well.
"""

from __future__ import annotations

import gpu_cases
import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.base import PassContext
from xcc.runtime.cuda_driver import CudaDriver, find_gpu
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.driver import default_chip
from xcc.targets.nvptx.emit import emit_kernel, find_ptxas
from xcc.targets.nvptx.pipeline import kernel_pipeline


def compiled(text, chip):
    with ir.Context():
        module = ir.Module.parse(text)
        kernel_pipeline().run(module, PassContext(chip=chip))
        return emit_kernel(module, chip)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("kernel", sorted({c.kernel for c in gpu_cases.CASES}))
def test_samples_assemble_without_spills(kernel, chip):
    binary = compiled(next(c for c in gpu_cases.CASES if c.kernel == kernel).text(), chips()[chip])
    report = dict(binary.report)
    assert binary.format == "cubin" and report["spills"] == 0 and report["stack"] == 0
    assert 0 < report["registers"] <= 255


def run_on_gpu(driver, case, seed=3, repeats=0):
    """The output of a case on the GPU, its reference, and milliseconds a run."""
    inputs, expected, dtype, symbols = case.make(np.random.default_rng(seed))
    binary = compiled(case.text(), default_chip())
    module = driver.load(binary.blob)
    output = gpu_cases.poisoned(expected.shape, dtype)
    arrays = [np.ascontiguousarray(a) for a in [*inputs, output]]
    pointers = [driver.alloc(a.nbytes) for a in arrays]
    for p, a in zip(pointers, arrays, strict=True):
        driver.upload(p, a)

    def launch():
        for x in binary.launches:
            driver.launch(driver.function(module, x.entry, x.shared_bytes),
                          [symbolic.evaluate(d, symbols) for d in x.grid], x.block, x.shared_bytes, pointers,
                          list(symbols.values()))

    launch()
    driver.download(output, pointers[-1])
    time = 0.0
    if repeats:
        start = driver.event()
        for _ in range(repeats):
            launch()
        time = driver.elapsed_ms(start, driver.event()) / repeats
    for p in pointers:
        driver.free(p)
    return output, expected, dtype, time


@pytest.fixture(scope="module")
def gpu():
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    return CudaDriver()


@pytest.mark.gpu
@pytest.mark.parametrize("case", gpu_cases.CASES, ids=lambda c: c.id)
def test_kernel_on_the_gpu(gpu, case):
    output, expected, dtype, _ = run_on_gpu(gpu, case)
    gpu_cases.check(output, expected, dtype)


if __name__ == "__main__":
    found = CudaDriver()
    for c in gpu_cases.CASES:
        result, wanted, kind, ms = run_on_gpu(found, c, repeats=20)
        try:
            gpu_cases.check(result, wanted, kind)
            verdict = "ok"
        except AssertionError as e:
            verdict = f"WRONG: {e}"
        print(f"{c.id:24} {1e3 * ms:9.1f} us  {verdict}")
