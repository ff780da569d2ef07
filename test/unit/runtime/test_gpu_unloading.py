"""What a model had on a GPU is given back when nothing refers to it any more."""

from typing import ClassVar

import numpy as np
import pytest
from host_driver import HostDriver, N, add, add_one, executor, f32

from xcc.runtime.cuda_api import find_gpu
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.device_array import DeviceArray
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.program import Copy, Program

BUFFERS = [f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N), f32("weight", N, name="w")]


def test_a_dropped_model_leaves_nothing_on_the_device():
    driver, run = executor(BUFFERS, [add(0, 2), add(2, 1)], weights={"w": np.ones(4, np.float32)})
    for n in (3, 5):
        run.run([np.zeros(n, np.float32)], {"n": n})
    assert driver.memory and driver.modules == [b"module"]
    del run
    assert (driver.memory, driver.modules, driver.log.count("free graph")) == ({}, [], 2)


def test_an_output_on_the_device_outlives_its_model():
    driver, run = executor(BUFFERS[:2], [add(0, 1)])
    x = DeviceArray(driver, driver.alloc(16), "f32", (4,))
    driver.upload(x.pointer, np.arange(4, dtype=np.float32))
    [y] = run.run([x], {"n": 4})
    del run
    assert sorted(driver.memory) == sorted({x.pointer, y.pointer})
    np.testing.assert_array_equal(np.asarray(y), np.arange(4) + 1)
    del x, y
    assert driver.memory == {}


def test_a_model_that_does_not_load_gives_back_what_it_had():
    class Small(HostDriver):
        def alloc(self, size):
            if self.memory:
                raise RuntimeError("out of memory")
            return super().alloc(size)

    driver = Small({"add_one": add_one})
    weights = [f32("weight", 4, name=name) for name in "vw"]
    program = Program((*BUFFERS[:2], *weights), (add(0, 1),), (0,), (1,), ("n",))
    with pytest.raises(RuntimeError, match="out of memory"):
        GpuExecutor(driver, program, [b"module"], {name: np.ones(4, np.float32) for name in "vw"})
    assert (driver.memory, driver.modules) == ({}, [])


def test_a_device_that_failed_is_no_error():
    driver, run = executor(BUFFERS[:2], [add(0, 1)])
    run.run([np.zeros(3, np.float32)], {"n": 3})

    def fail():
        raise RuntimeError("the device is lost")

    driver.synchronize = fail
    del run


class Counted(CudaDriver):
    """Knows what was allocated through any of its kind and not given back: the GPU's free memory is everybody's."""

    held: ClassVar[dict[int, int]] = {}

    def alloc(self, size):
        pointer = super().alloc(size)
        self.held[pointer] = size
        return pointer

    def free(self, pointer):
        super().free(pointer)
        del self.held[pointer]


@pytest.mark.gpu
def test_memory_of_a_gpu_is_given_back():
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    size = 1 << 20
    program = Program((f32("input", N, name="x"), f32("output", size, name="y"), f32("weight", size, name="w")),
                      (Copy(2, 1),), (0,), (1,), ("n",))
    for _ in range(3):
        run = GpuExecutor(Counted(), program, [], {"w": np.arange(size, dtype=np.float32)})
        assert run.run([np.zeros(3, np.float32)], {"n": 3})[0][-1] == size - 1
        assert sum(Counted.held.values()) >= 8 * size
        del run
        assert Counted.held == {}
