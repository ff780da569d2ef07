"""Ranks of a job meet, exchange values, and hear of each other's ends."""

from __future__ import annotations

import os
import queue
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from xcc.diagnostics import UserError
from xcc.runtime.handshake import ask
from xcc.runtime.hub import Connection, Hub, candidates
from xcc.runtime.launcher import Place, place
from xcc.runtime.world import World, own_host


@pytest.fixture
def port() -> Iterator[int]:
    """One of which the derived ports are free."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield int(s.getsockname()[1])


def meet(size: int, port: int, work: Callable[[World], Any] = lambda w: w) -> list[Any]:
    """What `work` gives for each rank, in threads; errors as results."""
    out: list[Any] = [None] * size

    def one(rank: int) -> None:
        try:
            out[rank] = work(World(Place(rank, size, rank, size, "127.0.0.1", port, "job"), seconds=60))
        except UserError as e:
            out[rank] = e

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def failed(w: World) -> str:
    """The failure that it hears of."""
    for _ in range(6000):
        try:
            w.check()
        except UserError as e:
            return str(e)
        time.sleep(0.01)
    raise AssertionError("nothing was heard")


def soon(holds: Callable[[], bool]) -> None:
    """Waits until it does, which another thread is about to see to."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_rank_0_is_told_last(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process has the hub in it, and may end when it hears: others would not be told."""
    told: list[int] = []
    tell, send = Hub._tell, Connection.send

    def telling(hub: Hub, message: dict[str, Any], besides: int = -1) -> None:
        if "all" in message:
            names = {id(c): rank for rank, c in hub._ranks.items()}

            def sending(connection: Connection, sent: dict[str, Any]) -> None:
                if sent is message:  # not what the ranks, threads of this process, send meanwhile
                    told.append(names[id(connection)])
                send(connection, sent)

            monkeypatch.setattr(Connection, "send", sending)
        tell(hub, message, besides)

    monkeypatch.setattr(Hub, "_tell", telling)
    meet(3, port, lambda w: w.exchange("a", 1))
    assert told == [2, 1, 0] * 2     # where all are, and "a"


@pytest.mark.parametrize("size", [2, 5])
def test_values_are_exchanged_in_order(size: int, port: int) -> None:
    got = meet(size, port, lambda w: [w.exchange("a", w.place.rank), w.exchange("a", [str(w.place.rank)])])
    assert got == [[list(range(size)), [[str(r)] for r in range(size)]]] * size


def test_two_jobs_on_one_port(port: int) -> None:
    """The second finds the next port, and its ranks find it there."""
    first = meet(2, port)
    other = [None, None]

    def one(rank: int) -> None:
        other[rank] = World(Place(rank, 2, rank, 2, "127.0.0.1", port, "another job"), seconds=60).exchange("x", rank)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert other == [[0, 1]] * 2 and len(first) == 2
    assert len(set(candidates(port))) == 16


def test_a_rank_that_fails_is_heard_of(port: int) -> None:
    worlds = meet(3, port)
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    worlds[2].on_failure(heard.put)
    worlds[1].fail("sizes do not fit")
    assert failed(worlds[0]) == "rank 0 of 3: rank 1 failed: sizes do not fit"
    assert failed(worlds[2]) == "rank 2 of 3: rank 1 failed: sizes do not fit"
    assert heard.get(timeout=60) == "rank 1 failed: sizes do not fit"     # a thread tells it, after the others know
    assert heard.empty()
    with pytest.raises(UserError, match="rank 1 of 3: rank 1 failed: sizes do not fit"):
        worlds[1].begin_run()
    with pytest.raises(UserError, match="rank 1 failed"):
        worlds[0].exchange("more", 1)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_ends_is_heard_of(rank: int, port: int) -> None:
    worlds = meet(3, port)
    worlds[rank]._connection.close()
    assert f"rank {rank} has ended" in failed(worlds[2])


def test_who_waits_for_a_rank_that_ends_is_told(port: int) -> None:
    def work(w: World) -> Any:
        if w.place.rank == 1:
            w._connection.close()
            return None
        return w.exchange("the model", 1)

    got = meet(3, port, work)
    assert "rank 1 has ended" in str(got[0]) and "rank 1 has ended" in str(got[2])


def test_a_rank_that_does_not_come(port: int) -> None:
    got = meet(3, port, lambda w: w.exchange("m.xcm is loaded", 1, seconds=0.1) if w.place.rank else w)
    for rank in (1, 2):
        assert re.match(f"rank {rank} of 3: rank 0(, [12])? did not come: m.xcm is loaded", str(got[rank]))


def test_a_rank_that_is_done_leaves_the_others_at_work(port: int) -> None:
    worlds = meet(2, port)
    for w in worlds:
        w.begin_run()
    worlds[0].leave()
    soon(lambda: 0 in worlds[1]._left)
    worlds[1].check()           # the run that both have begun goes on
    with pytest.raises(UserError, match="rank 0 has left after 1 runs"):
        worlds[1].begin_run()


def test_a_rank_that_leaves_before_others_are_done(port: int) -> None:
    worlds = meet(2, port)
    worlds[1].begin_run()
    worlds[0].leave()
    assert "rank 0 has left after 0 runs" in failed(worlds[1])


class Ears:
    def __init__(self) -> None:
        self.came, self.heard = threading.Semaphore(0), []

    def hear(self, rank: int, value: Any) -> None:
        self.heard.append((rank, value))
        self.came.release()


def test_what_is_told(port: int) -> None:
    """Before somebody hears, too; nobody is kept for it."""
    worlds, ears = meet(2, port), Ears()
    worlds[0].tell("m", {"n": 3})
    worlds[1].hear("m", ears.hear)
    worlds[0].tell("other", 1)
    worlds[0].tell("m", 4)
    assert ears.came.acquire(timeout=60) and ears.came.acquire(timeout=60) and ears.heard == [(0, {"n": 3}), (0, 4)]
    gone = weakref.ref(ears)
    del ears
    soon(lambda: gone() is None)        # the thread that called it has it for a moment more
    worlds[0].tell("m", 5)


def test_who_does_not_know_the_secret_is_sent_away(port: int) -> None:
    """And who says nothing holds nobody up; a place is given once."""
    facts = ["job", "127.0.0.1", port, 2]
    hub = Hub(2, facts, "secret", candidates(port), "127.0.0.1")
    hub.start()
    at = hub._listener.getsockname()

    def asked(secret: str, rank: int = 1, job: Any = facts) -> Connection:
        made = Connection(socket.create_connection(at, timeout=10))
        ask(made, secret, job, rank)
        return made

    silent = socket.create_connection(at)
    for secret, rank, job in (("other", 1, facts), ("", 1, facts), ("secret", 1, ["job 2"]), ("secret", 2, facts)):
        with pytest.raises((EOFError, OSError, ValueError)):
            asked(secret, rank, job)
    first = asked("secret")
    soon(lambda: 1 in hub._ranks)
    with pytest.raises(EOFError):
        asked("secret").receive()
    for c in (first, silent):
        c.close()


def test_a_hub_that_does_not_know_the_secret(port: int) -> None:
    Hub(2, ["job", "127.0.0.1", port, 2], "other", candidates(port), "127.0.0.1").start()
    with pytest.raises(UserError, match="is of another job, or does not know its secret"):
        World(Place(1, 2, 1, 2, "127.0.0.1", port, "job", "secret"), seconds=0.2)


def test_which_address_is_listened_on() -> None:
    assert own_host("127.0.0.1") == own_host("no such host.invalid") == own_host("192.0.2.1") == ""


def test_nobody_listens(port: int) -> None:
    with pytest.raises(UserError, match="rank 1 of 2 cannot reach rank 0 at 127.0.0.1: .*; is it started"):
        World(Place(1, 2, 1, 2, "127.0.0.1", port), seconds=0.2)


@pytest.mark.parametrize(("environment", "wanted"), [
    ({}, Place()), ({"WORLD_SIZE": "1", "RANK": "0"}, Place()),
    ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "host",
      "MASTER_PORT": "1234", "TORCHELASTIC_RUN_ID": "x"}, Place(1, 4, 1, 2, "host", 1234, "x")),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "2",
      "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, Place(2, 3, 2, 3)),
    ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_NTASKS_PER_NODE": "2(x2)",
      "MASTER_ADDR": "node0", "SLURM_JOB_ID": "9", "XCC_JOB_SECRET": "s"},
     Place(3, 4, 1, 2, "node0", 29500, "9", "s"))])
def test_what_launchers_say(environment: dict[str, str], wanted: Place) -> None:
    assert place(environment) == wanted


@pytest.mark.parametrize(("environment", "message"), [
    ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2, and RANK or OMPI_COMM_WORLD_RANK does not say"),
    ({"WORLD_SIZE": "2", "RANK": "2"}, "does not say which rank this is"),
    ({"WORLD_SIZE": "two", "RANK": "0"}, "WORLD_SIZE is 'two', which is no number"),
    ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "h"}, "LOCAL_RANK is not set"),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
      "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "MASTER_ADDR is not set: ranks are on several machines")])
def test_launchers_that_say_too_little(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        place(environment)


def test_this_process_is_alone() -> None:
    assert place({k: v for k, v in os.environ.items() if "RANK" not in k and "SIZE" not in k}).size == 1
