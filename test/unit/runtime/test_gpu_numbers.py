"""Which GPU a model runs on: what load says, or where the arrays of the first run are; arrays on others are copied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_driver import HostDriver, N, add, add_one, array, f32

from xcc.diagnostics import UserError
from xcc.runtime import model as model_module
from xcc.runtime.artifact import Artifact
from xcc.runtime.device_array import DeviceArray
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.model import Model
from xcc.runtime.program import Program

PROGRAM = Program((f32("input", N, name="x"), f32("output", N, name="y")), (add(0, 1),), (0,), (1,), ("n",))
UPDATING = Program((f32("input", N, name="x"), f32("alias", N, base=0, name="y")), (add(0, 0),), (0,), (1,), ("n",),
                   updates=((1, 0),))


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of GPUs, whose memory is the host's."""

    def make_executor(program: Any, members: Any, weights: Any, manifest: Any, *, device: int) -> GpuExecutor:
        return GpuExecutor(gpu(device), program, [b"module"], weights)

    monkeypatch.setattr(model_module, "executor_module", lambda target: SimpleNamespace(make_executor=make_executor))


def gpu(number: int) -> HostDriver:
    driver = HostDriver({"add_one": add_one})
    driver.number = number
    return driver


def made(program: Program = PROGRAM, device: int | None = None) -> Model:
    return Model(Artifact({"target": "nvptx", "chip": "sm_90a"}, program, {}), device=device)


def on(number: int, values: np.ndarray[Any, Any]) -> DeviceArray:
    driver = gpu(number)
    pointer = driver.alloc(values.nbytes)
    array(pointer, values.size)[:] = values
    return DeviceArray(driver, pointer, "f32", values.shape)


X = np.arange(5, dtype=np.float32)


@pytest.mark.parametrize("device", [None, 0, 3])
def test_what_load_says(device: int | None) -> None:
    m = made(device=device)
    np.testing.assert_array_equal(m.run({"x": X})["y"], X + 1)
    assert m.device == m.executor.driver.number == (device or 0)


def test_the_first_run_decides() -> None:
    m = made()
    assert m.device is None
    y = m.run({"x": on(2, X)})["y"]
    assert m.device == 2 and y.__dlpack_device__() == (2, 2)
    np.testing.assert_array_equal(m.run({"x": X})["y"], X + 1)
    m.settle(1)
    assert m.device == 2


def test_memory_for_an_output_decides_too() -> None:
    m, y = made(), on(1, np.zeros_like(X))
    m.run({"x": X}, out={"y": y})
    assert m.device == 1
    np.testing.assert_array_equal(array(y.pointer, 5), X + 1)


def test_arrays_on_other_gpus_are_copied() -> None:
    m = made(device=1)
    for number in (0, 1, 2):
        m.executor.driver.log.clear()
        y = m.run({"x": on(number, X)})["y"]
        assert y.__dlpack_device__() == (2, 1) and ("copy from GPU" in m.executor.driver.log) == (number != 1)
        np.testing.assert_array_equal(np.asarray(y), X + 1)


def test_what_is_written_must_be_on_the_models_gpu() -> None:
    with pytest.raises(UserError, match="out: 'y' is on GPU 0, the model runs on GPU 1"):
        made(device=1).run({"x": on(1, X)}, out={"y": on(0, X)})
    with pytest.raises(UserError, match="input 'x' is updated in place, and the array is on GPU 0, the model on 1"):
        made(UPDATING, device=1).run({"x": on(0, X)})


def test_several_models_in_one_process() -> None:
    models = [made(device=n) for n in range(3)]
    for n, m in enumerate(models):
        np.testing.assert_array_equal(np.asarray(m.run({"x": on(n, X + n)})["y"]), X + n + 1)
    assert [m.executor.driver.number for m in models] == [0, 1, 2]


@pytest.mark.parametrize(("device", "message"), [
    (-1, "device is -1; give the number"), ("cuda:1", "device is 'cuda:1'"), (True, "device is True")])
def test_what_is_no_number_of_a_gpu(device: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        made(device=device)


def test_a_model_for_cpus_is_on_none() -> None:
    with pytest.raises(UserError, match="device is for models on GPUs, this one is for 'cpu'"):
        Model(Artifact({"target": "cpu", "chip": "c"}, PROGRAM, {}), device=0)
