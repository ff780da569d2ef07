"""XCC_POISON: what nobody wrote is NaN, before each run, and behind the end of each buffer."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from host_driver import HostDriver, N, add, add_one, array, f32

import xcc
from xcc.diagnostics import UserError
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.poison import GUARD, guarded, wanted
from xcc.runtime.program import Program

MODEL = """
func.func @main(%x: tensor<5x3xf32> {xt.name = "x"}) -> (tensor<5x3xf32> {xt.name = "y"}) {
  %y = "xt.add"(%x, %x) : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
"""


def past(a, count):
    """`count` elements behind the last of `a`."""
    return np.frombuffer((ctypes.c_float * count).from_address(a.ctypes.data + a.nbytes), np.float32)


@pytest.mark.parametrize("text, want", [("1", True), ("0", False)])
def test_the_variable(monkeypatch, text, want):
    monkeypatch.setenv("XCC_POISON", text)
    assert wanted() is want


def test_other_values_are_refused(monkeypatch):
    monkeypatch.setenv("XCC_POISON", "nan")
    with pytest.raises(UserError, match="XCC_POISON is 'nan'"):
        wanted()


def test_an_array_has_a_guard():
    a = guarded((3, 5), np.dtype(np.float32))
    assert np.isnan(a).all() and np.isnan(past(a, GUARD // 4)).all() and a.ctypes.data % 64 == 0


def read_past(pointers, symbols):
    """A kernel that adds what lies behind its operand."""
    n = symbols[0]
    array(pointers[1], n)[:] = array(pointers[0], n) + array(pointers[0], n + 1)[n]


def write_nothing(pointers, symbols):
    """A kernel that forgets its result."""


@pytest.mark.parametrize("kernel, finite", [(add_one, True), (read_past, False), (write_nothing, False)])
def test_buffers_of_a_gpu(monkeypatch, kernel, finite):
    monkeypatch.setenv("XCC_POISON", "1")
    driver = HostDriver({"add_one": kernel})
    buffers = (f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N), f32("temp", N))
    program = Program(buffers, (add(0, 2), add(2, 3), add(3, 1)), (0,), (1,), ("n",))
    run = GpuExecutor(driver, program, [b"m"], {})
    for n in (16, 64, 16):      # the last in memory that the one before has used
        y, = run.run([np.zeros(n, np.float32)], {"n": n})
        assert np.isfinite(y).all() == finite


def test_buffers_of_a_cpu(monkeypatch, tmp_path):
    path = tmp_path / "m.mlir"
    path.write_text(MODEL)
    monkeypatch.setenv("XCC_POISON", "1")
    model = xcc.compile(path, target="cpu", cache=False)
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    y = model.run({"x": x})["y"]
    np.testing.assert_array_equal(y, x + x)
    assert np.isnan(past(y, GUARD // 4)).all()
    model.executor._main = lambda pointers, symbols: 0      # kernels that write nothing
    assert np.isnan(model.run({"x": x})["y"]).all()
