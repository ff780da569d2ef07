"""What the GPU executor keeps for each set of sizes: graphs of those used last, and one memory for all."""

import numpy as np
import pytest
from host_driver import HostDriver, N, add, add_one, executor, f32

from xcc import symbolic
from xcc.runtime import placed_shape
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.program import BindSymbol, Buffer, InputValue, Launch, Program, SetScalar

BUFFERS = [f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N)]


class Runs:
    """Runs of a program of two launches, and what each of the numbers in `counted` did in them."""

    counted = ("capture", "free graph", "launch")

    def __init__(self):
        self.driver, self.run = executor(BUFFERS, [add(0, 2), add(2, 1)])

    def __call__(self, *sizes):
        self.driver.log.clear()
        for n in sizes:
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_array_equal(self.run.run([x], {"n": n})[0], x + 2)
        return tuple(self.driver.log.count(what) for what in self.counted)

    def bytes(self):
        return sum(len(block) for block in self.driver.memory.values())


@pytest.fixture
def two(monkeypatch):
    monkeypatch.setattr(placed_shape, "CACHED_SHAPES", 2)
    monkeypatch.setattr(placed_shape, "AWAITED_SHAPES", 2)
    return Runs()


def test_the_shapes_used_last_keep_their_graphs(two):
    assert two(9, 5, 9, 5, 9) == (2, 0, 0)
    assert two(7) == (0, 0, 2)              # it may not come again
    assert two(7) == (1, 1, 0)              # in place of 5
    assert two(9, 7, 9) == (0, 0, 0)
    assert two(5, 5) == (1, 1, 2)           # in place of 7
    assert two(9) == (0, 0, 0)


def test_a_round_of_more_shapes_than_there_are_places_captures_nothing(two):
    two(9, 8)
    assert two(*(7, 6, 5, 4) * 3) == (0, 0, 24)
    assert two(9, 8) == (0, 0, 0)


def test_all_sizes_share_their_memory():
    runs = Runs()
    runs(100)
    held, blocks = runs.bytes(), set(runs.driver.memory)
    assert runs(*range(1, 60)) == (59, 0, 0)
    assert (runs.bytes(), set(runs.driver.memory)) == (held, blocks)


def test_a_larger_size_takes_the_place_of_what_smaller_ones_had():
    runs = Runs()
    assert runs(64, 32, 64) == (2, 0, 0)
    assert runs(1000) == (1, 0, 0)
    assert len(runs.driver.memory) == 3
    assert runs.bytes() < 3 * 1000 * 4 * 1.3
    runs.driver.log.clear()
    assert runs(64, 32) == (0, 0, 0) and runs.driver.log.count("edit") == 4     # they are where they were not
    blocks = set(runs.driver.memory)
    runs(*range(1001, 1200))                # a quarter is spared
    assert set(runs.driver.memory) == blocks


def test_what_grows_is_made_small_where_memory_is_short():
    class Small(HostDriver):
        def alloc(self, size):
            if sum(len(block) for block in self.memory.values()) + size > 3 * 4096:
                raise RuntimeError("out of memory")
            return super().alloc(size)

    driver = Small({"add_one": add_one})
    run = GpuExecutor(driver, Program(tuple(BUFFERS), (add(0, 2), add(2, 1)), (0,), (1,), ("n",)), [b"module"], {})
    for n in (10, 1024, 7):
        np.testing.assert_array_equal(run.run([np.zeros(n, np.float32)], {"n": n})[0], np.full(n, 2))
    with pytest.raises(RuntimeError, match="out of memory"):
        run.run([np.zeros(1025, np.float32)], {"n": 1025})
    np.testing.assert_array_equal(run.run([np.zeros(9, np.float32)], {"n": 9})[0], np.full(9, 2))


def test_values_of_an_input_that_are_sizes_find_their_graphs_again():
    buffers = [Buffer("input", (1,), "i64", "k"), f32("output", N, name="y"), f32("weight", 8, name="w")]
    driver = HostDriver({"add_one": add_one})
    program = Program(tuple(buffers), (add(2, 1),), (0,), (1,), ("n",), values=(InputValue("n", 0, 0),))
    run = GpuExecutor(driver, program, [b"module"], {"w": np.arange(8, dtype=np.float32)})
    for _ in range(3):
        for n in (8, 3, 5):
            np.testing.assert_array_equal(run.run([np.array([n])], {"n": n})[0], np.arange(1, n + 1))
    assert driver.log.count("capture") == 3 and driver.log.count("replay") == 9


def test_a_shape_without_a_place_gets_one_when_it_is_profiled(two):
    two(9, 8)
    times = two.run.profile([np.zeros(5, np.float32)], {"n": 5})
    assert [t.kernel for t in times] == ["add_one"] * 2
    assert two(5) == (1, 0, 0)


def test_what_runs_upload_does_not_pile_up():
    """Scalars of statements that no graph holds: their size is known behind the first of them."""
    m = symbolic.sym("m")
    buffers = [f32("input", N, name="x"), f32("output", m, name="y"), Buffer("temp", (1,), "i64")]
    body = [SetScalar(2, (2,)), BindSymbol("m", 2, 0, N), SetScalar(2, (m,)),
            Launch("add_one", (0, 1), (m,), (1,), (1,))]
    _, run = executor(buffers, body)

    def held():
        return len(run._body.uploads) + sum(len(shape.kept) for shape in run._places.shapes)

    seen = []
    for _ in range(4):
        run.run([np.zeros(6, np.float32)], {"n": 6})
        seen.append(held())
    assert seen == [1, 1, 1, 1]
