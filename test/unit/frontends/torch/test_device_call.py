"""Calls with tensors on a GPU, with a driver whose device memory is host memory."""

import threading
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
    monkeypatch.setattr(compat, "_current_device", lambda: -1)
    monkeypatch.setattr(compat, "_raw_stream", lambda device: state.stream)
    monkeypatch.setattr(compat, "_is_capturing", lambda: state.captures)
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


@pytest.fixture(params=[1, 5])
def chain(host, request):
    """x + launches: one launch, or a graph of more."""
    count = request.param
    driver = HostDriver({"add_one": add_one})
    temps = [f32("temp", N) for _ in range(count - 1)]
    buffers = (f32("input", N, name="x"), f32("output", N, name="y"), *temps)
    places = [0, *range(2, 1 + count), 1]
    program = Program(buffers, tuple(map(add, places, places[1:])), (0,), (1,), ("n",))
    run = GpuExecutor(driver, program, [b"module"], {})
    made = DeviceCall(SimpleNamespace(executor=run, turn=Turn(), inputs=[None], outputs=[SimpleNamespace(dtype="f32")]),
                      [()])
    made.device, made._number = torch.device("cpu"), -1
    return SimpleNamespace(call=made, driver=driver, count=count)


def first(chain, n):
    """What repeats a call of `n` elements."""
    x, symbols = torch.randn(n), {"n": n}
    chain.call([x.data_ptr()], (n,), symbols)
    return chain.call.repeat([x.data_ptr()], (n,), symbols)


def right(chain, repeat, n):
    x = torch.randn(n)
    before = len(chain.driver.log)
    y, = repeat([x])
    torch.testing.assert_close(y, x + chain.count)
    assert "capture" not in chain.driver.log[before:] and "wait" not in chain.driver.log[before:]
    return y


def test_a_repeat_enqueues_what_there_is(chain):
    repeats = [first(chain, n) for n in (5, 100)]
    kept = [right(chain, repeat, n) for _ in range(3) for repeat, n in zip(repeats, (5, 100), strict=True)]
    assert len({y.data_ptr() for y in kept}) == 6
    first(chain, 3000)      # the arena is elsewhere
    for repeat, n in zip(repeats, (5, 100), strict=True):
        right(chain, repeat, n)
    check_plain(chain, 5)


def check_plain(chain, n):
    x = torch.randn(n)
    torch.testing.assert_close(chain.call([x.data_ptr()], (n,), {"n": n})[0], x + chain.count)


def test_a_repeat_is_of_one_stream_and_not_captured(chain, host):
    repeat, x = first(chain, 5), torch.randn(5)
    host.stream = 8
    assert repeat([x]) is None
    right(chain, first(chain, 5), 5)
    host.stream = 7
    right(chain, repeat, 5)
    host.captures = True
    assert repeat([x]) is None
    assert chain.call.repeat([x.data_ptr()], (5,), {"n": 5}) is None


def test_a_thread_makes_the_gpu_current_once(chain, monkeypatch):
    monkeypatch.setattr(device_call, "THREAD", device_call._Thread())
    asked = []
    chain.driver.activate = lambda: asked.append(threading.get_ident())
    repeat = first(chain, 5)
    for thread in [threading.Thread(target=lambda: [right(chain, repeat, 5) for _ in range(2)]) for _ in range(2)]:
        before = len(asked)
        thread.start()
        thread.join()
        assert len(asked) == before + 1


def test_a_repeat_whose_graph_is_gone_does_nothing(chain):
    repeat = first(chain, 5)
    next(iter(chain.call._executor._places.shapes)).free()
    before = list(chain.driver.log)
    assert repeat([torch.randn(5)]) is None and chain.driver.log == before
    check_plain(chain, 5)


@pytest.mark.parametrize("count", [1, 12])
def test_parameters_stay_in_a_repeat(host, count):
    """Few and many, which are compared in one call: x + 1 beside parameters that have not moved."""
    driver = HostDriver({"add_one": add_one})
    buffers = (f32("input", N, name="x"), *(f32("input", 4, name=f"p{n}") for n in range(count)),
               f32("output", N, name="y"))
    program = Program(buffers, (add(0, count + 1),), tuple(range(count + 1)), (count + 1,), ("n",))
    run = GpuExecutor(driver, program, [b"module"], {})
    call = DeviceCall(SimpleNamespace(executor=run, turn=Turn(), inputs=[None] * (count + 1),
                                      outputs=[SimpleNamespace(dtype="f32")]), [()], static=range(1, count + 1))
    call.device, call._number = torch.device("cpu"), -1
    given = [torch.randn(8), *(torch.randn(4) for _ in range(count))]
    pointers = [t.data_ptr() for t in given]
    call(pointers, (8,), {"n": 8})
    repeat = call.repeat(pointers, (8,), {"n": 8})
    for _ in range(2):
        x = torch.randn(8)
        torch.testing.assert_close(repeat([x, *given[1:]])[0], x + 1)
    assert repeat([*given[:-1], torch.randn(4)]) is None


def test_what_is_not_aligned_is_no_repeat(chain):
    repeat = first(chain, 4)
    assert repeat([torch.randn(5)[1:]]) is None


def test_a_stream_is_free_on_its_own_gpu_and_not_captured(monkeypatch):
    now = SimpleNamespace(stream=7, captures=False)
    monkeypatch.setattr(compat, "_current_device", lambda: 1)
    monkeypatch.setattr(compat, "_raw_stream", lambda device: now.stream)
    monkeypatch.setattr(compat, "_is_capturing", lambda: now.captures)
    assert compat.free_stream(1) == 7 and compat.free_stream(0) == -1
    now.captures = True
    assert compat.free_stream(1) == -1
    now.stream = 0
    assert compat.free_stream(1) == 0
