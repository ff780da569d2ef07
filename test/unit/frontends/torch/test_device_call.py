"""Calls with tensors on a GPU, with a driver whose device memory is host memory."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from host_driver import HostDriver, N, add, add_one, f32

from xcc.frontends.torch import compat, device_call
from xcc.frontends.torch.device_call import DeviceCall
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.program import Copy, Program
from xcc.runtime.turn import Turn


@pytest.fixture
def host(monkeypatch):
    """torch's streams and memory, of a GPU that is not there."""
    state = SimpleNamespace(stream=7, captures=False)
    monkeypatch.setattr(compat, "cuda_allocator", lambda device: compat.empty_strided)
    monkeypatch.setattr(compat, "current_stream", lambda device: state.stream)
    monkeypatch.setattr(compat, "captures", lambda device: state.captures)
    return state


@pytest.fixture
def call(host):
    """x + 2, and x as a copy."""
    driver = HostDriver({"add_one": add_one})
    buffers = (f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N), f32("alias", N, base=0, name="z"))
    program = Program(buffers, (add(0, 2), add(2, 1), Copy(1, 1)), (0,), (1, 3), ("n",))
    run = GpuExecutor(driver, program, [b"module"], {})
    outputs = [SimpleNamespace(dtype="f32"), SimpleNamespace(dtype="f32")]
    made = DeviceCall(SimpleNamespace(executor=run, turn=Turn(), inputs=[None], outputs=outputs), [(), ()])
    made.device = torch.device("cpu")
    return made


def check(call, n):
    x = torch.randn(n)
    y, z = call([x.data_ptr()], (n,), {"n": n})
    np.testing.assert_array_equal(y, x + 1 + 1)
    assert torch.equal(z, x) and z.data_ptr() != x.data_ptr()


def test_outputs_are_tensors_of_torch(call):
    for n in (5, 9, 5, 1):
        check(call, n)


def test_runs_on_a_stream_share_an_arena_that_grows(call, host):
    check(call, 100)
    arena, = device_call._ARENAS.values()
    size = arena.tensor.numel()
    check(call, 5)
    assert arena.tensor.numel() == size
    check(call, 1000)
    assert 4000 <= arena.tensor.numel() < 6000
    host.stream = 8
    check(call, 5)
    assert len(device_call._ARENAS) == 2 and arena.tensor.numel() >= 4000


def test_a_captured_run_has_an_arena_of_its_own(call, host):
    host.captures = True
    check(call, 5)
    assert not device_call._ARENAS


def test_arenas_go_with_the_calls(call):
    check(call, 5)
    assert len(device_call._ARENAS) == 1
    call._arenas.clear()
    assert not device_call._ARENAS
