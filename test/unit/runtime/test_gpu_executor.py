"""The GPU executor's use of its driver, with a driver whose device memory is host memory."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from host_driver import HostDriver, N, add, add_one, array, executor, f32

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.program import (
    BindSymbol,
    Buffer,
    Copy,
    For,
    If,
    InputValue,
    Launch,
    Program,
    Require,
    SetScalar,
    State,
    While,
)


def test_a_shape_is_captured_once_and_replayed():
    driver, run = executor([f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N)],
                           [add(0, 2), add(2, 1)])
    for _ in range(3):
        x = np.random.default_rng(0).standard_normal(5).astype(np.float32)
        np.testing.assert_array_equal(run.run([x], {"n": 5})[0], x + 1 + 1)
    assert driver.log.count("capture") == 1 and driver.log.count("replay") == 3
    x = np.ones(9, np.float32)
    np.testing.assert_array_equal(run.run([x], {"n": 9})[0], x + 2)
    assert driver.log.count("capture") == 2


def test_nothing_of_the_host_lies_between_launches():
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), *(f32("temp", N) for _ in range(5))]
    driver, run = executor(buffers, [add(0, 2), add(2, 3), Copy(3, 4), add(4, 5), add(5, 6), add(6, 1)])
    x = np.zeros(4, np.float32)
    run.run([x], {"n": 4})
    driver.log.clear()
    np.testing.assert_array_equal(run.run([x], {"n": 4})[0], x + 5)
    assert driver.log == ["upload", "replay", "wait"]


def test_an_empty_grid_is_no_launch():
    _, run = executor([f32("input", N, name="x"), f32("output", N, name="y")], [add(0, 1)])
    assert run.run([np.empty(0, np.float32)], {"n": 0})[0].shape == (0,)


def test_empty_buffers_are_memory_that_can_be_read():
    """A row of them, which clamped coordinates may read."""
    buffers = [Buffer("input", (N, 1000), "f32", "x"), f32("output", 1000, name="y"), f32("temp", 10),
               Buffer("alias", (N, 1000), "f32", base=0)]
    _, run = executor(buffers, [Launch("add_one", (3, 1), (1000,), (1,), (1,)), add(2, 2)])
    assert run.run([np.empty((0, 1000), np.float32)], {"n": 0})[0].shape == (1000,)


def test_weights_are_uploaded_once():
    driver, run = executor([f32("input", N, name="x"), f32("output", N, name="y"), f32("weight", N, name="w")],
                           [add(2, 1)], weights={"w": np.arange(4, dtype=np.float32)})
    for _ in range(2):
        np.testing.assert_array_equal(run.run([np.zeros(4, np.float32)], {"n": 4})[0], np.arange(4) + 1)
    assert driver.log.count("upload") == 1 + 2


@pytest.mark.parametrize("flag", [0, 1])
def test_a_condition_is_read_back_and_picks_its_branch(flag):
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), Buffer("temp", (1,), "i1")]
    _, run = executor(buffers, [SetScalar(2, (flag,)), If(2, (add(0, 1),), (Copy(0, 1),))])
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run.run([x], {"n": 6})[0], x + flag)


def test_while_counts_down():
    def count(pointers, symbols):
        counter = np.frombuffer((ctypes.c_char * 8).from_address(pointers[0]), np.int64)
        counter -= 1

    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), Buffer("temp", (1,), "i64")]
    down = Launch("count", (2,), (), (1,), (1,))
    body = [SetScalar(2, (4,)), Copy(0, 1), While((down,), 2, (add(1, 1),))]
    driver = HostDriver({"add_one": add_one, "count": count})
    run = GpuExecutor(driver, Program(tuple(buffers), tuple(body), (0,), (1,), ("n",)), [b"m"], {})
    x = np.zeros(3, np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(run.run([x], {"n": 3})[0], x + 3)


def test_a_loop_over_slices_is_unrolled_into_one_graph():
    i = symbolic.sym("i")
    buffers = [Buffer("input", (4, N), "f32", "x"), Buffer("output", (4, N), "f32", "y"),
               Buffer("alias", (N,), "f32", base=0, offset=i * N * 4),
               Buffer("alias", (N,), "f32", base=1, offset=i * N * 4)]
    driver, run = executor(buffers, [For("i", 4, (add(2, 3),))])
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run.run([x], {"n": 3})[0], x + 1)
    assert driver.log.count("capture") == 1
    assert [t.kernel for t in run.profile([x], {"n": 3})] == ["add_one"]       # of the first turn


def test_a_size_that_the_model_computes_shapes_the_output():
    m = symbolic.sym("m")
    buffers = [f32("input", N, name="x"), f32("output", m, name="y"), Buffer("temp", (1,), "i64")]
    body = [SetScalar(2, (2,)), BindSymbol("m", 2, 0, N),
            Launch("add_one", (0, 1), (m,), (1,), (1,))]
    _, run = executor(buffers, body)
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run.run([x], {"n": 6})[0], x[:2] + 1)


def test_an_updated_input_is_what_the_caller_gave():
    """Of arrays on the host and on the device; graphs stay."""
    buffers = [f32("input", N, name="x"), f32("alias", N, name="y", base=0)]
    driver, run = executor(buffers, [add(0, 1)], updates=((1, 0),))
    x = np.arange(5, dtype=np.float32)
    for n in range(3):
        assert run.run([x], {"n": 5})[0] is x
        np.testing.assert_array_equal(x, np.arange(5) + n + 1)
    assert driver.log.count("capture") == 1
    pointer = driver.alloc(20)
    driver.upload(pointer, x)
    tensor = SimpleNamespace(pointer=pointer, device_id=0, shape=(5,), dtype="f32", shared=False)
    assert run.run([tensor], {"n": 5})[0] is tensor
    np.testing.assert_array_equal(array(pointer, 5), x + 1)


@pytest.mark.parametrize("poisoned", ["0", "1"])
def test_what_a_model_holds_stays_on_the_device(poisoned, monkeypatch):
    monkeypatch.setenv("XCC_POISON", poisoned)
    buffers = [f32("input", N, name="x"), f32("output", 4, name="y"), f32("state", 4, name="a"),
               f32("state", 4, name="b")]
    one = Launch("add_one", (2, 2), (4,), (1,), (1,)), Launch("add_one", (3, 3), (4,), (1,), (1,))
    states = (State("a", 2, "first"), State("b", 3))
    driver, run = executor(buffers, [*one, Copy(2, 1)], weights={"first": np.full(4, 7, np.float32)}, states=states)
    x = np.zeros(2, np.float32)
    for n in (1, 2):
        np.testing.assert_array_equal(run.run([x], {"n": 2})[0], np.full(4, 7 + n))
        np.testing.assert_array_equal(run.state.read(3), np.full(4, n))
    driver.log.clear()
    run.run([x], {"n": 2})
    assert driver.log.count("upload") == 1          # x
    run.state.write(2, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(run.run([x], {"n": 2})[0], np.arange(4) + 1)
    run.state.reset()
    np.testing.assert_array_equal(run.state.read(2), np.full(4, 7))
    np.testing.assert_array_equal(run.state.read(3), np.zeros(4))


def test_device_memory_leaves_and_comes_back_through_dlpack():
    from xcc.runtime.device_array import DeviceArray
    from xcc.runtime.dlpack import import_dlpack

    driver = HostDriver({})
    pointer = driver.alloc(24)
    array(pointer, 6)[:] = np.arange(6)
    value = DeviceArray(driver, pointer, "f32", (2, 3))
    np.testing.assert_array_equal(np.asarray(value), np.arange(6).reshape(2, 3))
    seen = import_dlpack(value)
    assert (seen.pointer, seen.device, seen.dtype, seen.shape) == (pointer, 2, "f32", (2, 3)) and seen.contiguous
    del value
    assert pointer in driver.memory      # the capsule keeps it
    del seen
    assert pointer not in driver.memory


def test_inputs_on_the_device_give_outputs_on_the_device():
    from xcc.runtime.device_array import DeviceArray
    from xcc.runtime.dlpack import import_dlpack

    driver, run = executor([f32("input", N, name="x"), f32("output", N, name="y")], [add(0, 1)])
    pointer = driver.alloc(16)
    array(pointer, 4)[:] = 5
    out = run.run([import_dlpack(DeviceArray(driver, pointer, "f32", (4,)))], {"n": 4})[0]
    assert isinstance(out, DeviceArray)
    np.testing.assert_array_equal(np.asarray(out), np.full(4, 6, np.float32))


def test_values_of_an_input_on_the_device_are_read_back():
    """A symbol that is an element of an input, given on the host or on the device, shapes the run."""
    from xcc.runtime.device_array import DeviceArray
    from xcc.runtime.model import Model

    buffers = [Buffer("input", (2,), "i64", "shape"), f32("output", N, name="y"), f32("weight", N, name="w")]
    program = Program(tuple(buffers), (add(2, 1),), (0,), (1,), ("n",), values=(InputValue("n", 0, 1),))
    driver = HostDriver({"add_one": add_one})
    model = Model(SimpleNamespace(program=program, manifest={"target": "nvptx"}))
    model._executor = GpuExecutor(driver, program, [b"module"], {"w": np.arange(8, dtype=np.float32)})
    for n in (5, 3):
        shape, pointer = np.array([7, n]), driver.alloc(16)
        ctypes.memmove(pointer, shape.ctypes.data, 16)
        for given in (shape, DeviceArray(driver, pointer, "i64", (2,))):
            np.testing.assert_array_equal(np.asarray(model.run({"shape": given})["y"]), np.arange(1, n + 1))
    assert [str(i) for i in model.inputs] == ["shape: i64[2] = [n]"]


def test_requirements_are_checked_inside_graphs_and_between_them():
    """A graph whose sizes do not fit is never kept; the driver is left ready for the next run."""
    body = [Require(N, 2 * sym_half(), "halves"), add(0, 2), If(3, (Require(0, 1, "never"),), ()), add(2, 1)]
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N),
               Buffer("weight", (), "i1", "flag")]
    for flag, sizes, message in ((False, (4,), ""), (False, (5, 5), "halves: sizes do not fit: n = 5"),
                                 (True, (4, 4), "never")):
        _, run = executor(buffers, body, weights={"flag": np.array(flag)})
        for n in sizes:
            if message:
                with pytest.raises(UserError, match=message):
                    run.run([np.zeros(n, np.float32)], {"n": n})
            else:
                np.testing.assert_array_equal(run.run([np.zeros(n, np.float32)], {"n": n})[0], np.full(n, 2))
        if not flag:
            np.testing.assert_array_equal(run.run([np.zeros(6, np.float32)], {"n": 6})[0], np.full(6, 2))


def sym_half():
    return symbolic.floordiv(N, 2)


def test_kernels_that_wait_by_themselves_are_launched_early_behind_kernels_alone():
    def early(source, target):
        return replace(add(source, target), early=True)

    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), *(f32("temp", N) for _ in range(4))]
    driver, run = executor(buffers, [early(0, 2), early(2, 3), Copy(3, 4), early(4, 5), add(5, 2), early(2, 1)])
    seen = []
    replay = driver.replay
    driver.replay = lambda graph: (seen.append([name for name, _ in graph]), replay(graph))[1]
    for n in (4, 0):
        np.testing.assert_array_equal(run.run([np.zeros(n, np.float32)], {"n": n})[0], np.full(n, 5.0))
    assert seen == [["launch", "early launch", "copy", "launch", "launch", "early launch"], ["copy"]]
