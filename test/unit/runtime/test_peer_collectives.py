"""Sums by windows that ranks map, between threads whose GPUs are host memory."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest
from fake_nccl import FakeNccl
from gpu_ranks import installed, ranks
from host_driver import HostDriver, N, add, array, f32

from xcc.diagnostics import UserError
from xcc.runtime import peer_collectives
from xcc.runtime.arena import ArenaPlanner
from xcc.runtime.mesh import Mesh
from xcc.runtime.peer_collectives import BLOCKS, FLAGS, kernel_name
from xcc.runtime.peer_places import SWAP
from xcc.runtime.program import Buffer, Collective, Launch, Program

KERNELS = {kernel_name("all_reduce", "add", "f32"): lambda pointers, symbols: kernel(pointers, symbols, sum_up),
           kernel_name("all_gather", "", ""): lambda pointers, symbols: kernel(pointers, symbols, put),
           kernel_name("permute", "", ""): lambda pointers, symbols: kernel(pointers, symbols, None),
           kernel_name("meeting", "", ""): lambda pointers, symbols: meet(pointers)}
TP, PAIR = Mesh((("tp", 3),)), Mesh((("tp", 2),))


def summing(n: int, dtype: str = "f32", combine: Any = "add") -> Program:
    """y = all_reduce(x) of n elements."""
    return Program((Buffer("input", (n,), dtype, "x"), Buffer("output", (n,), dtype, "y")),
                   (Collective("all_reduce", 0, 1, ("tp",), combine),), (0,), (1,))


def flag(window: int, sender: int) -> Any:
    return ctypes.c_uint32.from_address(window + 4 * BLOCKS * sender)


def kernel(pointers: Any, symbols: Any, use: Any) -> None:
    """What the kernels of the artifact do, as one block."""
    source, target, table, epochs, given_up = pointers
    count, place, size, slot = symbols
    windows = np.frombuffer((ctypes.c_char * (8 * size)).from_address(table), np.uint64).tolist()
    epoch = ctypes.c_uint32.from_address(epochs)
    now = epoch.value + 1
    half = now % 2 * size
    there = FLAGS + (half + place) * slot if use else slot
    for r in range(size):
        if r != place:
            ctypes.memmove(windows[r] + there, source, 16 * count)
            flag(windows[r], place).value = now
    for r in range(size):
        while r != place and flag(windows[place], r).value < now:
            if ctypes.c_uint32.from_address(given_up).value:
                raise threading.BrokenBarrierError
            time.sleep(0.001)
    if use:
        use(target, [array(source if r == place else windows[place] + FLAGS + (half + r) * slot, 4 * count)
                     for r in range(size)])
    epoch.value = now


def meet(pointers: Any) -> None:
    told, awaited, epoch, given_up = map(ctypes.c_uint32.from_address, pointers)
    epoch.value = told.value = epoch.value + 1
    while awaited.value < epoch.value:
        if given_up.value:
            raise threading.BrokenBarrierError
        time.sleep(0.001)


def sum_up(target: int, parts: list[Any]) -> None:
    array(target, parts[0].size)[:] = sum(parts)


def put(target: int, parts: list[Any]) -> None:
    array(target, parts[0].size * len(parts))[:] = np.concatenate(parts)


def chain(links: int, read_late: bool = False) -> Program:
    """Each link writes 2 h into two places, of which the other rank gets one, and adds what came: h = 2 h + 2 h'.
    read_late: what came first is added once more behind all others."""
    buffers = [f32("input", N, name="x"), f32("output", N, name="y"), f32("temp", N)]
    body: list[Any] = [add(0, 2)]
    for _ in range(links):
        h, own, sent, came, summed = (len(buffers) - 1, *range(len(buffers), len(buffers) + 4))
        buffers += [f32("temp", N)] * 4
        body += [Launch("double", (h, own, sent), (N,), (1,), (1,)),
                 Collective("permute", sent, came, ("tp",), pairs=SWAP),
                 Launch("sum", (own, came, summed), (N,), (1,), (1,))]
    last = len(buffers) - 1
    body.append(Launch("sum", (last, 5 if read_late else last, 1), (N,), (1,), (1,)))
    return Program(tuple(buffers), tuple(body), (0,), (1,), ("n",))


def wanted(links: int, read_late: bool, xs: list[Any]) -> list[Any]:
    """Of both ranks."""
    h = [x + 1 for x in xs]
    first = [2 * h[1], 2 * h[0]]
    for _ in range(links):
        h = [2 * h[0] + 2 * h[1]] * 2
    return [h[r] + (first[r] if read_late else h[r]) for r in range(2)]


def double(pointers: Any, symbols: Any) -> None:
    x, own, sent = (array(p, symbols[0]) for p in pointers)
    time.sleep(0.002 * (threading.get_ident() % 2))
    own[:] = 2 * x
    sent[:] = 2 * x


def add_both(pointers: Any, symbols: Any) -> None:
    a, b, y = (array(p, symbols[0]) for p in pointers)
    time.sleep(0.002 * (threading.get_ident() // 2 % 2))
    y[:] = a + b


class Gpu(HostDriver):
    """One whose memory others can map. `fails`: where that is not so."""

    prefix = "cu"
    fails = ""

    def call(self, name: str, *args: Any) -> None:
        if name == self.fails:
            raise RuntimeError(name)
        if name == "cuIpcGetMemHandle":
            ctypes.memmove(ctypes.addressof(args[0]._obj), ctypes.addressof(args[1]), 8)
        elif name == "cuIpcOpenMemHandle_v2":
            args[0]._obj.value = int.from_bytes(bytes(args[1])[:8], "little")
        elif name == "cuMemHostAlloc":
            args[0]._obj.value = self.alloc(args[1].value)
        else:
            assert name == "cuMemFreeHost"
            self.free(args[0].value)

    def fill(self, pointer: int, byte: int, size: int) -> None:
        ctypes.memset(pointer, byte, size)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNccl:
    return installed(monkeypatch)


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    monkeypatch.setattr(peer_collectives, "_FREE", made := {})
    monkeypatch.setattr(peer_collectives, "PUSHED", 1 << 16)
    monkeypatch.setattr(peer_collectives, "LEAST", 0)
    return made


def runs(n: int, times: int, dtype: Any = np.float32) -> Any:
    def work(r: Any) -> Any:
        outputs = [r.run.run([(np.arange(n) + k + 10 * r.rank).astype(dtype)], {})[0] for k in range(times)]
        r.world.exchange("all to be done", "")
        return outputs, list(r.driver.log)

    return work


def by_library(fake: FakeNccl) -> bool:
    """Whether it was asked for a sum."""
    return any(g.meetings[1:] for g in fake.groups.values())       # the first is that of joining


@pytest.mark.parametrize("n", [4, 4096])
def test_sums_and_turns(fake: FakeNccl, n: int) -> None:
    for outputs, log in ranks(fake, summing(n), TP, runs(n, 5), Gpu, KERNELS):
        for k, y in enumerate(outputs):
            np.testing.assert_array_equal(y, 3 * (np.arange(n) + k) + 30)
        assert log.count("capture") == 1
    assert not by_library(fake)


def test_gathers(fake: FakeNccl) -> None:
    program = Program((Buffer("input", (8,), "f16", "x"), Buffer("output", (24,), "f16", "y")),
                      (Collective("all_gather", 0, 1, ("tp",)),), (0,), (1,))
    for outputs, _ in ranks(fake, program, TP, runs(8, 3, np.float16), Gpu, KERNELS):
        for k, y in enumerate(outputs):
            np.testing.assert_array_equal(y, np.concatenate([np.arange(8) + k + 10 * rank for rank in range(3)]))
    assert not by_library(fake)


@pytest.mark.parametrize("read_late", [False, True])
@pytest.mark.parametrize("links", [1, 2, 3, 6])
def test_exchanges(fake: FakeNccl, links: int, read_late: bool) -> None:
    """Of several sizes. The library does one that is a run's only one, or read behind all others."""
    sizes = (4, 900, 4, 900, 5)

    def work(r: Any) -> Any:
        out = [r.run.run([np.arange(n, dtype=np.float32) + k + 10 * r.rank], {"n": n})[0] for k, n in enumerate(sizes)]
        r.world.exchange("all to be done", "")
        room = r.run.arena_bytes({"n": 900})
        assert room == ArenaPlanner(r.run.program).plan({"n": 900}).size or links > 1
        assert room <= 3 * 4 * 960 or links == 1 or read_late      # of what is exchanged there is none
        return out

    got = ranks(fake, chain(links, read_late), PAIR, work, Gpu, KERNELS | {"double": double, "sum": add_both})
    for k, n in enumerate(sizes):
        xs = [np.arange(n, dtype=np.float32) + k + 10 * rank for rank in range(2)]
        for rank in range(2):
            np.testing.assert_array_equal(got[rank][k], wanted(links, read_late, xs)[rank])
    assert bool([g for g in fake.groups.values() if g.sent]) == (links == 1 or read_late)


@pytest.mark.parametrize(("program", "dtype"), [
    (summing(5), np.float32), (summing(8, "i32"), np.int32), (summing(40_000), np.float32),
    (summing(8, "f32", "max"), np.float32)], ids=["no vectors", "integers", "large", "max"])
def test_what_is_left_to_the_library(fake: FakeNccl, program: Program, dtype: Any) -> None:
    n = program.buffers[0].shape[0]
    for outputs, _ in ranks(fake, program, TP, runs(n, 2, dtype), Gpu, KERNELS):
        wanted = 3 * np.arange(n) + 30 if program.body[0].combine == "add" else np.arange(n) + 20
        np.testing.assert_array_equal(outputs[0], wanted)
    assert by_library(fake)


@pytest.mark.parametrize("fails", ["cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2"])
def test_one_rank_that_cannot_leaves_all_to_the_library(fake: FakeNccl, fails: str) -> None: 
    class First(Gpu):
        made = 0

        def __init__(self, kernels: Any) -> None:
            super().__init__(kernels)
            First.made += 1
            self.fails = fails if First.made == 1 else ""

    for outputs, _ in ranks(fake, summing(4), TP, runs(4, 2), First, KERNELS):
        np.testing.assert_array_equal(outputs[1], 3 * (np.arange(4) + 1) + 30)
    assert by_library(fake)


def test_it_can_be_asked_not_to(fake: FakeNccl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_PEER_COLLECTIVES", "0")
    ranks(fake, summing(4), TP, runs(4, 1), Gpu, KERNELS)
    assert by_library(fake)


def test_who_waits_for_a_rank_that_fails_goes_on(fake: FakeNccl) -> None:
    def work(r: Any) -> Any:
        r.world.exchange("all to run", "")
        if r.rank == 1:
            r.world.fail("its input is wrong")
            return None
        return r.run.run([np.zeros(4, np.float32)], {})

    first, _, third = ranks(fake, summing(4), TP, work, Gpu, KERNELS)
    assert all(isinstance(e, (threading.BrokenBarrierError, UserError)) for e in (first, third))
