"""Runs of the GPU executor on a caller's stream, on memory that the caller has: nothing is copied, nobody waits."""

from types import SimpleNamespace

import numpy as np
import pytest
from host_driver import HostDriver, N, add, array, executor, f32

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.program import BindSymbol, Buffer, Copy, Launch, SetScalar

BUFFERS = [f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N), f32("temp", N)]
BODY = [add(0, 2), add(2, 3), Copy(3, 1), add(1, 1)]


class Caller:
    """Memory for calls of the program BODY, which gives x + 3; another one adds `added`."""

    def __init__(self, buffers=BUFFERS, body=BODY, added=3, **more):
        self.added = added
        self.driver, self.run = executor(buffers, body, **more)
        self.arena = self.driver.alloc(4096)
        self.driver.log.clear()

    def place(self, n=0):
        return self.driver.alloc(4 * n)

    def __call__(self, n, x=None, y=None, stream=7, arena=None, **more):
        x, y = x or self.place(n), y or self.place(n)
        array(x, n)[:] = np.arange(n)
        assert self.run.arena_bytes({"n": n}) <= 4096
        self.driver.log.clear()
        self.run.run_on(stream, [x], {"n": n}, [y], arena or self.arena, **more)
        np.testing.assert_array_equal(array(y, n), np.arange(n) + self.added)
        return self.driver.log


def test_memory_that_stays_replays_one_graph():
    call = Caller()
    x, y = call.place(5), call.place(5)
    assert call(5, x, y) == ["capture", "replay"]
    for _ in range(3):
        assert call(5, x, y) == ["replay"]
    assert call.driver.stream is None


def test_what_has_moved_is_edited_alone():
    call = Caller()
    x, y = call.place(5), call.place(5)
    call(5, x, y)
    x = call.place(5)
    assert call(5, x, y) == ["edit", "replay"]
    assert call(5, x, call.place(5)) == ["edit", "edit", "replay"]      # a copy and a launch
    assert call(5, x, y, arena=call.driver.alloc(4096)) == ["edit"] * 4 + ["replay"]        # and y, back again


def test_a_repeat_moves_what_it_names():
    """Inputs, outputs and arena, by their places; a run that is none begins with what it is given again."""
    call = Caller()
    x, y, other = call.place(5), call.place(5), call.place(5)
    call(5, x, y)
    shape, moves, activate = call.run.repeat(7, {"n": 5})
    activate()
    array(other, 5)[:] = 7
    call.driver.log.clear()
    for n, address in enumerate((other, x, call.driver.alloc(4096))):
        moves.addresses[n] = address
    moves()
    assert call.driver.log == ["edit"] * 4 + ["replay"] and shape.whole is not None
    np.testing.assert_array_equal(array(x, 5), np.full(5, 10))
    assert call(5, x, y) == ["edit"] * 4 + ["replay"]
    assert call(5, x, y) == ["replay"]
    for n in (*range(6, 70), 69):       # so many sizes that the graph is forgotten
        call(n)
    assert shape.whole is None


def test_one_launch_is_a_graph_too():
    call = Caller(body=[add(0, 1)], added=1)
    x, y = call.place(5), call.place(5)
    assert call(5, x, y) == ["capture", "replay"]
    assert call(5, x, y) == ["replay"]
    assert call(5, call.place(5), y) == ["edit", "replay"]


def test_launches_follow_what_moves_where_graphs_cannot_be_edited(monkeypatch):
    """And nobody waits."""
    monkeypatch.setattr(HostDriver, "edits_graphs", False)
    call = Caller(body=[add(0, 1)], added=1)
    x, y = call.place(5), call.place(5)
    for place in ((x, y), (x, y), (call.place(5), y), (x, call.place(5))):
        assert call(5, *place) == ["launch"]
    assert call(5, captured=True) == ["launch"]


def test_each_stream_and_each_size_has_its_graph():
    call = Caller()
    x, y = call.place(9), call.place(9)
    other = call.driver.alloc(4096)
    for _ in range(2):
        call(9, x, y), call(5, x, y), call(9, x, y, 8, other)
    assert call(9, x, y) == call(5, x, y) == call(9, x, y, 8, other) == ["replay"]


def test_nothing_is_kept_of_a_run_that_the_caller_captures():
    call = Caller()
    for _ in range(2):
        assert call(5, captured=True) == ["launch", "launch", "copy", "launch"]
    assert call(5) == ["capture", "replay"]


def test_scalars_of_a_captured_run_stay():
    buffers = [f32("input", N, name="x"), Buffer("output", (1,), "i64", "y")]
    call = Caller(buffers, [SetScalar(1, (N,))])
    for _ in range(3):
        call.run.run_on(7, [call.place(4)], {"n": 4}, [call.place(4)], call.arena, captured=True)
    assert len(call.run._captured) == 3 and not call.run._body.uploads


def test_a_run_that_waits_for_the_device_cannot_be_captured():
    m = symbolic.sym("m")
    buffers = [f32("input", N, name="x"), f32("output", m, name="y"), Buffer("temp", (1,), "i64")]
    call = Caller(buffers, [SetScalar(2, (2,)), BindSymbol("m", 2, 0, N), Launch("add_one", (0, 1), (m,), (1,), (1,))])
    x, y, exact = call.place(6), call.place(6), call.place(2)
    array(x, 6)[:] = 1
    call.run.run_on(7, [x], {"n": 6}, [y], call.arena)
    assert call.run.copied_outputs == [0] and call.run.output_shape(0) == (2,)
    call.run.copy_output(0, exact)
    np.testing.assert_array_equal(array(exact, 2), [2, 2])
    with pytest.raises(UserError, match="cannot be captured"):
        call.run.run_on(7, [x], {"n": 6}, [y], call.arena, captured=True)


def test_empty_arrays_have_an_address_of_memory():
    buffers = [Buffer("input", (N, 1000), "f32", "x"), f32("output", 1000, name="y")]
    call = Caller(buffers, [Launch("add_one", (0, 1), (1000,), (1,), (1,))])
    arena = call.driver.alloc(call.run.arena_bytes({"n": 0}))
    for _ in range(2):
        call.run.run_on(7, [0], {"n": 0}, [call.place(1000)], arena)


def test_without_graphs_that_can_be_edited_launches_are_enqueued():
    call = Caller()
    call.driver.edits_graphs = False
    for _ in range(2):
        assert call(5) == ["launch", "launch", "copy", "launch"]


def on_device(call, values, device_id=0, shared=False):
    pointer = call.driver.alloc(values.nbytes)
    array(pointer, values.size)[:] = values
    return SimpleNamespace(pointer=pointer, device_id=device_id, shape=values.shape, dtype="f32", shared=shared)


def test_arrays_on_the_device_are_read_and_written_where_they_lie():
    call = Caller()
    x, y = on_device(call, np.arange(5, dtype=np.float32)), on_device(call, np.zeros(5, np.float32))
    assert call.run.run([x], {"n": 5}, [y])[0] is y
    np.testing.assert_array_equal(array(y.pointer, 5), np.arange(5) + 3)
    call.driver.log.clear()
    call.run.run([x], {"n": 5}, [y], stream=3)      # nobody waits
    call.run.run([x], {"n": 5}, [y], stream=3)
    assert call.driver.log == ["capture", "replay", "replay"]


def test_what_lies_badly_is_copied():
    """Or shares its memory with what is written."""
    call = Caller()
    x, y = on_device(call, np.arange(5, dtype=np.float32), shared=True), on_device(call, np.zeros(9, np.float32))
    y.pointer, y.shape = y.pointer + 4, (5,)
    call.driver.log.clear()
    assert call.run.run([x], {"n": 5}, [y])[0] is y
    assert call.driver.log == ["copy", "capture", "replay", "copy", "wait"]
    np.testing.assert_array_equal(array(y.pointer, 5), np.arange(5) + 3)


def test_what_lies_on_another_gpu_is_copied():
    call = Caller()
    x, y = on_device(call, np.arange(5, dtype=np.float32), device_id=1), on_device(call, np.zeros(5, np.float32))
    call.driver.log.clear()
    call.run.run([x], {"n": 5}, [y], stream=3)
    call.run.run([x], {"n": 5}, [y], stream=3)
    assert call.driver.log == ["copy from GPU", "capture", "replay", "copy from GPU", "replay"]
    np.testing.assert_array_equal(array(y.pointer, 5), np.arange(5) + 3)
    call.driver.log.clear()
    np.testing.assert_array_equal(call.run.to_host(x), np.arange(5))
    assert call.driver.log == ["wait for GPU"]


def test_outputs_are_borrowed():
    call = Caller()
    x = np.arange(5, dtype=np.float32)
    first, = call.run.run([x], {"n": 5}, borrow=True)
    blocks = set(call.driver.memory)
    second, = call.run.run([x + 1], {"n": 5}, borrow=True)
    assert first.pointer == second.pointer
    np.testing.assert_array_equal(np.asarray(first), x + 4)
    del first, second
    assert set(call.driver.memory) == blocks


def test_an_output_of_another_size_is_refused():
    call = Caller()
    with pytest.raises(UserError, match=r"out: 'y' is \[5\] in this run, the array for it \[6\]"):
        call.run.run([np.zeros(5, np.float32)], {"n": 5}, [np.zeros(6, np.float32)])
