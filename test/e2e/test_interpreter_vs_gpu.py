"""The comparison of interpreter and GPU: what it counts as a difference, and what it stores and launches."""

from __future__ import annotations

import gpu_smoke_cases
import interpreter_vs_gpu as script
import numpy as np
import pytest

import xcc.runtime.cuda_driver
from xcc.targets.nvptx.chip import chips


def raw(a):
    return a.view(np.uint8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_ulp(dtype):
    x = np.array([1, -1, 0, 100, np.nan, np.inf], dtype)
    name = str(np.dtype(dtype))
    assert script.difference(raw(x), raw(x.copy()), name) == (0, 0, 1)
    y = x.copy()
    y[1] = np.nextafter(x[1], dtype(0))
    ulp, largest, equal = script.difference(raw(y), raw(x), name)
    assert ulp == 1 and 0 < largest < 0.02 and equal == 5 / 6
    y[0] = np.nan
    assert script.difference(raw(y), raw(x), name)[0] == np.inf


def test_zeros_of_both_signs_are_equal_and_integers_are_exact():
    zeros = np.array([0.0, -0.0], np.float32)
    assert script.difference(raw(zeros), raw(-zeros), "float32") == (0, 0, 1)
    ids = np.arange(4)
    assert script.difference(raw(ids), raw(ids.copy()), "int64")[0] == 0
    assert script.difference(raw(ids + 1), raw(ids), "int64")[0] == np.inf


class IdleDriver:
    """Launches nothing."""

    launched: list = []

    def __init__(self):
        self.memory = []

    def load(self, blob):
        assert blob.startswith(b"//") and b".visible .entry" in blob
        return blob

    def function(self, module, name, shared_bytes):
        assert name.encode() in module
        return name

    def alloc(self, size):
        self.memory.append(None)
        return len(self.memory) - 1

    def free(self, pointer):
        self.memory[pointer] = None

    def upload(self, pointer, array):
        self.memory[pointer] = array.copy()

    def download(self, array, pointer):
        array[...] = self.memory[pointer]

    def launch(self, *args):
        self.launched.append(args)


def test_a_driver_that_does_nothing_is_found_out(tmp_path, monkeypatch, capsys):
    recorder = script.Recorder()
    for case in gpu_smoke_cases.CASES[:2]:
        script.record_sample(recorder, case, chips()["sm_80"])
    recorder.save(tmp_path / "f.npz")
    monkeypatch.setattr(xcc.runtime.cuda_driver, "CudaDriver", IdleDriver)
    assert script.check(tmp_path / "f.npz", 16.0) == 2
    function, grid, block, shared, pointers, symbols = IdleDriver.launched[0]
    assert function == "pointwise" and grid[0] > 1
    assert len(pointers) == 3 and symbols == [4096] and block[0] >= 32 and shared == 0
    assert "DIFFERENT" in capsys.readouterr().out
