"""The runtime over the driver that emulates, with an emulator that knows what the kernel means."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from kernel_cases import module_of

from xcc.compiler import compile_model
from xcc.context import shared_context
from xcc.dialects import xt
from xcc.options import CompileOptions
from xcc.targets.amdgcn.code_object import read_code_object

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from emulated_gpu import EmulatedDriver, run_artifact  # noqa: E402


class Emulator:
    """Doubles f32 elements from the first pointer to the second; what it ran is in `seen`."""

    def __init__(self):
        self.seen = []

    def run_kernel(self, blob, name, arch, grid, block, args, *, dynamic_lds, guard):
        assert name in read_code_object(blob)
        self.seen.append((arch, len(grid), len(block), dynamic_lds, guard))
        source, target = (np.frombuffer((ctypes.c_char * 48).from_address(a.value), np.float32) for a in args[:2])
        target[:] = source * 2
        return SimpleNamespace(instructions=7)


def test_launches_reach_the_emulator(tmp_path):
    path = tmp_path / "double.mlir"
    with shared_context():
        path.write_text(str(module_of(lambda x: xt.add(x, x), xt.TensorType((12,), "f32"))))
    emulator = Emulator()
    driver = EmulatedDriver(emulator, "gfx942")
    artifact = compile_model(str(path), CompileOptions(target="amdgcn", chip="gfx942", isolate=False)).artifact
    x = np.arange(12, dtype=np.float32)
    y, = run_artifact(driver, artifact, {"input0": x}).values()
    np.testing.assert_array_equal(y, 2 * x)
    assert driver.instructions == 7 * len(emulator.seen) > 0
    assert set(emulator.seen) == {("gfx942", 3, 3, 0, False)}
