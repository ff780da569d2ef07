"""Collectives of GPU executors through the table of NCCL's functions, between threads that stand for ranks."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from fake_nccl import BROKEN, FakeNccl
from gpu_ranks import installed, ranks
from host_driver import N, add, f32
from rank_programs import KINDS, each_kind

from xcc.diagnostics import UserError
from xcc.runtime import nccl
from xcc.runtime.collectives import exchange
from xcc.runtime.detached import detached
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Buffer, Collective, Copy, For, If, Program

TP = Mesh((("tp", 3),))
SUM = Collective("all_reduce", 2, 3, ("tp",), "add")
REDUCED = Program((f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N), f32("temp", N)),
                  (add(0, 2), SUM, add(3, 1), Copy(3, 2)), (0,), (1,), ("n",))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNccl:
    return installed(monkeypatch)


def test_a_graph_holds_collectives(fake: FakeNccl) -> None:
    """And follows inputs and outputs that move; it is captured anew where the arena does."""
    def work(r: Any) -> Any:
        values = []
        for n in (5, 5, 5):
            y, = r.run.run([np.arange(n, dtype=np.float32) + r.rank], {"n": n})
            values.append(y)
        r.driver.log.clear()
        r.run.run([np.arange(5, dtype=np.float32)], {"n": 5})
        said = list(r.driver.log)
        r.run.run([np.arange(900, dtype=np.float32)], {"n": 900})
        r.driver.log.clear()
        y, = r.run.run([np.arange(5, dtype=np.float32)], {"n": 5})
        return values, said, list(r.driver.log), y

    for values, said, later, y in ranks(fake, REDUCED, TP, work):
        for value in values:
            np.testing.assert_array_equal(value, 3 * np.arange(5) + 3 + 3 + 1)
        np.testing.assert_array_equal(y, 3 * np.arange(5) + 4)
        assert "replay" in said and "capture" not in said and "capture" in later and "free graph" in later


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(fake: FakeNccl, kind: str) -> None:
    program = each_kind("f32", 3)
    given = [np.arange(12, dtype=np.float32) + 100 * rank for rank in range(3)]
    n = KINDS.index(kind)
    got = ranks(fake, program, TP, lambda r: [r.run.run([given[r.rank]], {}) for _ in range(2)])
    for rank, wanted in enumerate(exchange(program.body[n], given)):
        for outputs in got[rank]:
            np.testing.assert_array_equal(outputs[n], wanted)


def test_groups_of_axes(fake: FakeNccl) -> None:
    """Each has a communicator; a group of one rank needs none."""
    mesh = Mesh.parse("dp:2,tp:2,pp:1")
    body = (Collective("all_reduce", 0, 1, ("tp",), "add"), Collective("all_reduce", 1, 1, ("dp",), "max"),
            Collective("all_gather", 1, 2, ("pp",)), Collective("permute", 2, 3, ("pp",)))
    buffers = (f32("input", 2, name="x"), f32("temp", 2), f32("output", 2, name="y"), f32("output", 2, name="z"))
    program = Program(buffers, body, (0,), (2, 3))
    for y, z in ranks(fake, program, mesh, lambda r: r.run.run([np.full(2, r.rank, np.float32)], {})):
        np.testing.assert_array_equal(y, [5, 5])
        np.testing.assert_array_equal(z, [0, 0])
    assert len(fake.groups) == 4


def test_a_rank_that_fails_ends_what_waits_on_the_gpu(fake: FakeNccl) -> None:
    def work(r: Any) -> Any:
        r.world.begin_run()
        r.world.exchange("all to run", "")
        if r.rank == 1:
            group, = fake.groups.values()
            while len(group.meetings) < 2 or len(group.meetings[1]) < 2:        # behind that of joining the others wait
                time.sleep(0.001)
            r.world.fail("its input is wrong")
            return None
        r.run.run([np.zeros(3, np.float32)], {"n": 3})

    first, _, third = ranks(fake, REDUCED, TP, work)
    assert isinstance(first, threading.BrokenBarrierError) and isinstance(third, threading.BrokenBarrierError)
    assert len(set(fake.aborted)) >= 2


def test_nothing_is_enqueued_when_another_rank_has_failed(fake: FakeNccl) -> None:
    def work(r: Any) -> Any:
        r.world.exchange("all to run", "")
        if r.rank == 1:
            r.world.fail("its input is wrong")
        while not r.run._body._communicator._closed.is_set():
            time.sleep(0.001)
        r.run.run([np.zeros(3, np.float32)], {"n": 3})

    for said in ranks(fake, REDUCED, TP, work):
        assert "rank 1 failed: its input is wrong" in str(said)


def test_an_error_of_the_library_is_one_of_all_ranks(fake: FakeNccl) -> None:
    def work(r: Any) -> str:
        r.world.exchange("all", "")
        fake.trouble = BROKEN
        for _ in range(6000):
            try:
                r.world.check()
            except UserError as e:
                return str(e)
            time.sleep(0.01)
        return "no error"

    for said in ranks(fake, REDUCED, TP, work):
        assert "NCCL: unhandled system error (2)" in str(said)      # which one hears may be on its way to the others


def test_a_call_that_fails_has_the_librarys_text(fake: FakeNccl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "ncclCommInitRank", lambda *args: BROKEN, raising=False)
    for error in ranks(fake, REDUCED, TP, lambda r: None):
        assert str(error) == "ncclCommInitRank failed: unhandled system error (2)"


def test_communicators_go_with_the_executor(fake: FakeNccl) -> None:
    def work(r: Any) -> None:
        r.run.run([np.zeros(3, np.float32)], {"n": 3})
        r.world.exchange("all", "")
        del r.run
        r.world.exchange("all again", "")
        assert not r.world._listeners

    assert ranks(fake, REDUCED, TP, work) == [None] * 3
    assert sorted(fake.aborted) == [1, 2, 3]


def test_runs_on_several_streams_follow_one_another(fake: FakeNccl) -> None:
    def work(r: Any) -> list[str]:
        r.driver.log.clear()
        for stream in (None, 7, 7, 8):
            r.run.run([np.zeros(3, np.float32)], {"n": 3}, stream=stream)
        r.world.exchange("all to be done", "")
        return [text for text in r.driver.log if "event" in text or "mark" in text]

    for log in ranks(fake, REDUCED, TP, work):
        assert log == ["mark None", "wait for event on 7", "mark 7", "mark 7", "wait for event on 8", "mark 8"]


@pytest.mark.parametrize(("prefix", "words"), [("cu", "libnccl.so.2, which is not found: pip install nvidia-nccl-cu13"),
                                               ("hip", "librccl.so.1, which is not found: install ROCm's RCCL")])
def test_what_to_install(prefix: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "_LIBRARIES", {k: (f"no{v[0]}",) for k, v in nccl._LIBRARIES.items()})
    nccl.library.cache_clear()
    with pytest.raises(UserError) as e:
        nccl.library(prefix)
    assert words in str(e.value).replace("nolib", "lib")


def test_collectives_are_apart_from_inputs_and_outputs() -> None:
    s = Collective("all_reduce", 0, 1, ("tp",), "add")
    buffers = (f32("input", 4, name="x"), f32("output", 4, name="y"), f32("temp", 4), Buffer("temp", (), "i1"),
               f32("alias", 4, base=1))
    body = (s, If(3, (Collective("broadcast", 4, 4, ("tp",)),), ()), For("i", 2, (SUM_IN_PLACE,)))
    program = Program(buffers, body, (0,), (1,))
    made = detached(program)
    first, second, third, branch, loop = made.body
    assert (first, third) == (Copy(0, 5), Copy(6, 1)) and (second.source, second.target) == (5, 6)
    assert branch.then == (Copy(4, 7), Collective("broadcast", 7, 7, ("tp",)), Copy(7, 4))
    assert loop.body == (SUM_IN_PLACE,) and all(b.kind == "temp" for b in made.buffers[5:])
    assert detached(made) is made


SUM_IN_PLACE = Collective("all_reduce", 2, 2, ("tp",), "add")
