"""What a GPU run knows of its sizes when it begins, and how a kernel's parameters lie in memory."""

import ctypes

import numpy as np
import pytest
from host_driver import HostDriver, N, add, add_one, executor, f32

from xcc import symbolic
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.known_sizes import KnownSizes
from xcc.runtime.program import BindSymbol, Buffer, Copy, For, If, Launch, Program, SetScalar
from xcc.runtime.stream_driver import parameters, sizes

M, TURN = symbolic.sym("m"), symbolic.sym("i")


def program(buffers, body):
    return Program(tuple(buffers), tuple(body), (0,), (1,), ("n",))


def test_statements_with_sizes_of_the_inputs_are_known():
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), Buffer("temp", (2,), "i64")]
    body = [Launch("a", (0, 1), (N, 2 * N), (symbolic.ceildiv(N, 4), 1), (1,)), Copy(0, 1), SetScalar(2, (N, 7)),
            BindSymbol("m", 2, 0, N), Launch("b", (0, 1), (M,), (N,), (1,)),
            For("i", N, (Launch("c", (0, 1), (TURN,), (1,), (1,)), Launch("d", (0, 1), (), (N,), (1,))))]
    known = KnownSizes(program(buffers, body))
    values = known({"n": 9})
    assert [known.of(s, values) for s in body[:3]] == [[3, 1, 9, 18], [36], [9, 7]]
    assert known.of(body[4], values) is None and known.of(body[5].body[0], values) is None
    assert known.of(body[5].body[1], values) == [9]


def test_aliases_come_behind_what_they_alias():
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"),
               Buffer("alias", (1,), "f32", base=3, offset=4 * N), Buffer("alias", (2,), "f32", base=4, offset=8),
               f32("temp", 2 * N), Buffer("alias", (1,), "f32", base=4, offset=4 * M),
               Buffer("alias", (1,), "f32", base=5, offset=0)]
    known = KnownSizes(program(buffers, []))
    assert known.offsets(known({"n": 3})) == [(3, 8), (2, 12)]


def test_a_division_by_zero_on_a_way_not_taken():
    """The launch in the branch counts in pieces of n - 4."""
    flag = symbolic.dim_max(symbolic.dim_min(N - 4, 1), 0)
    half = Launch("add_one", (0, 1), (N,), (symbolic.ceildiv(N, N - 4),), (1,))
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), Buffer("temp", (1,), "i64")]
    _, run = executor(buffers, [SetScalar(2, (flag,)), If(2, (half,), (Copy(0, 1),))])
    for n, more in ((9, 1), (4, 0), (6, 1)):
        np.testing.assert_array_equal(run.run([np.ones(n, np.float32)], {"n": n})[0], np.full(n, 1 + more))


@pytest.mark.parametrize("shapes", [1, 64])
def test_parts_of_a_buffer(monkeypatch, shapes):
    """With graphs, and without: two launches, each on an alias of a temporary, the second on one of an alias."""
    monkeypatch.setattr("xcc.runtime.placed_shape.CACHED_SHAPES", shapes)
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", 3 * N),
               Buffer("alias", (2 * N,), "f32", base=2, offset=4 * N),
               Buffer("alias", (N,), "f32", base=3, offset=4 * N)]
    driver = HostDriver({"add_one": add_one})
    run = GpuExecutor(driver, program(buffers, [add(0, 4), add(4, 3), add(3, 1)]), [b"module"], {})
    for n in (3, 5, 4, 5):
        np.testing.assert_array_equal(run.run([np.arange(n, dtype=np.float32)], {"n": n})[0], np.arange(n) + 3)


def test_parameters_are_words_of_eight_bytes():
    given = [1 << 47, 5, -3, 1 << 40]
    places, alive = parameters(given[:2], given[2:])
    assert [ctypes.cast(p, ctypes.POINTER(ctypes.c_int64))[0] for p in places] == given
    assert len(alive) == 4
    assert len(parameters([], [])[0]) == 1
    assert sizes((7,), (32, 2), 128) == [7, 1, 1, 32, 2, 1, 128]
