"""The sample tile programs on an NVIDIA GPU against numpy, and their code for every chip without one.

On a machine with a GPU: ``pytest -m gpu test/e2e/test_gpu_smoke.py``; gpu_smoke.py shows times as well.
"""

from __future__ import annotations

import gpu_smoke
import gpu_smoke_cases
import pytest

from xcc._mlir import ir
from xcc.passes.base import PassContext
from xcc.runtime.cuda_api import find_gpu
from xcc.runtime.cuda_driver import CudaDriver
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.driver import default_chip
from xcc.targets.nvptx.emit import emit_kernel
from xcc.targets.nvptx.pipeline import kernel_pipeline
from xcc.targets.nvptx.ptxas import find_ptxas


def compiled(text, chip):
    with ir.Context():
        module = ir.Module.parse(text)
        kernel_pipeline().run(module, PassContext(chip=chip))
        return emit_kernel(module, chip)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("kernel", sorted({c.kernel for c in gpu_smoke_cases.CASES}))
def test_samples_assemble_without_spills(kernel, chip):
    binary = compiled(next(c for c in gpu_smoke_cases.CASES if c.kernel == kernel).text(), chips()[chip])
    report = dict(binary.report)
    assert binary.format == "cubin" and report["spills"] == 0 and report["stack"] == 0
    assert 0 < report["registers"] <= 255


@pytest.fixture(scope="module")
def gpu():
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    return CudaDriver()


@pytest.mark.gpu
def test_kernels_on_the_gpu(gpu, tmp_path):
    gpu_smoke.prepare(tmp_path, default_chip().name)
    assert gpu_smoke.run(tmp_path, repeats=1) == 0


class IdleDriver:
    """A driver that runs nothing: what the script would launch."""

    def __init__(self):
        self.launched = []

    def __getattr__(self, name):
        if name == "launch":
            return lambda function, *rest: self.launched.append(rest)
        return lambda *_: 1.0


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_the_script_finds_wrong_results(tmp_path, monkeypatch, capsys):
    gpu_smoke.prepare(tmp_path, "sm_90a")
    driver = IdleDriver()
    monkeypatch.setattr(gpu_smoke, "CudaDriver", lambda: driver)
    assert gpu_smoke.run(tmp_path, repeats=1) == len(gpu_smoke_cases.CASES)
    assert len(driver.launched) == 2 * len(gpu_smoke_cases.CASES)
    assert "WRONG" in capsys.readouterr().out
