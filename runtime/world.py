"""All ranks of a job, as one of them sees it: rank 0 is asked (:mod:`xcc.runtime.hub`), and failures are heard of.

Sockets and JSON alone: nothing of another library is needed, nothing that comes in is run, and the end of a process is
seen at once, as the end of its connection.
"""

from __future__ import annotations

import atexit
import contextlib
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.handshake import ask
from xcc.runtime.hub import Connection, Hub, candidates
from xcc.runtime.launcher import Place, place

__all__ = ["World", "own_host", "world"]

JOIN_SECONDS = 120          # for all to start
LOAD_SECONDS = 600          # for all to come to the same place, as a model is read


class World:
    """The ranks of a job. `runs` counts those of models of several ranks, `meetings` the calls of :meth:`exchange`:
    both are the same on all ranks."""

    def __init__(self, place: Place, seconds: float = JOIN_SECONDS) -> None:
        """Meets the others; UserError where they do not come."""
        self.place, self.runs = place, 0
        self._state = threading.Condition()
        self._answers: dict[str, list[Any]] = {}
        self._left: dict[int, int] = {}
        self._failure = ""
        self._listeners: list[Callable[[str], None]] = []
        self._hearers: dict[str, weakref.WeakMethod[Callable[[int, Any], None]]] = {}
        self._unheard: list[tuple[str, int, Any]] = []
        self.meetings = 0
        facts = [place.job, place.address, place.port, place.size]
        if place.rank == 0:
            host = own_host(place.address) if place.local_size < place.size else "127.0.0.1"
            try:
                Hub(place.size, facts, place.secret, candidates(place.port), host).start()
            except OSError as e:
                raise UserError(f"rank 0 can listen on none of the ports {candidates(place.port)[0]} on: {e.strerror}; "
                                "set another MASTER_PORT") from None
        self._connection = _joined(place, facts, seconds)
        threading.Thread(target=self._watch, name="xcc ranks", daemon=True).start()
        self.exchange("all ranks to start", "", seconds)

    def exchange(self, what: str, value: Any, seconds: float = LOAD_SECONDS) -> list[Any]:
        """The values (JSON) that all ranks give here, by rank. `what` they wait for is said where one does not come."""
        self.meetings += 1
        key = f"{what} (meeting {self.meetings})"
        self._send({"put": key, "value": value, "seconds": seconds})
        with self._state:
            self._state.wait_for(lambda: key in self._answers or self._failure != "")
            if key in self._answers:
                return self._answers.pop(key)
        raise self.error()

    def tell(self, subject: str, value: Any) -> None:
        """Tells all others who hear of `subject`."""
        self._send({"tell": subject, "value": value})

    def hear(self, subject: str, hearer: Callable[[int, Any], None]) -> None:
        """The method `hearer` is called with the rank and the value, in another thread, of what is told, as long as its
        object is there; what was told before, too."""
        with self._state:
            self._hearers[subject] = weakref.WeakMethod(hearer)
            early = [(rank, value) for s, rank, value in self._unheard if s == subject]
            self._unheard = [u for u in self._unheard if u[0] != subject]
        for rank, value in early:
            hearer(rank, value)

    def begin_run(self) -> None:
        """UserError where another rank has failed or is not there any more."""
        self.runs += 1
        self.check()

    def check(self, seconds: float = 0) -> None:
        """UserError where another rank has failed, or left before the present run, or does so within `seconds`."""
        end = time.monotonic() + seconds
        while True:
            with self._state:
                self._leave_behind()
                failed = self._failure
            if failed:
                raise self.error()
            if time.monotonic() >= end:
                return
            time.sleep(0.01)

    def error(self) -> UserError:
        """What is to be said of the failure."""
        return UserError(f"rank {self.place.rank} of {self.place.size}: {self._failure}")

    def on_failure(self, listener: Callable[[str], None]) -> None:
        """`listener` is called, in another thread, when a rank fails: it is to end what waits for that rank."""
        with self._state:
            self._listeners.append(listener)

    def forget(self, listener: Callable[[str], None]) -> None:
        """It is not called any more."""
        with self._state:
            self._listeners = [x for x in self._listeners if x != listener]

    def fail(self, text: str) -> None:
        """Tells the others that this rank has failed, and cannot go on with them."""
        self.end(f"rank {self.place.rank} failed: {text}")

    def end(self, text: str) -> None:
        """Has all ranks fail for this reason."""
        with contextlib.suppress(UserError):
            self._send({"fail": text})
        self._fail(text)

    def leave(self) -> None:
        """This rank is done; what others still do without it goes on."""
        with contextlib.suppress(UserError):
            self._send({"bye": self.runs})

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._connection.send(message)
        except OSError:
            self._fail("rank 0 has ended")
            raise self.error() from None

    def _fail(self, text: str) -> None:
        with self._state:
            if self._failure:
                return
            self._failure = text
            listeners = list(self._listeners)
            self._state.notify_all()
        for listener in listeners:
            listener(text)

    def _leave_behind(self) -> None:
        early = [rank for rank, runs in self._left.items() if runs < self.runs]
        if early and not self._failure:
            self._failure = f"rank {early[0]} has left after {self._left[early[0]]} runs"

    def _watch(self) -> None:
        while True:
            try:
                message = self._connection.receive()
            except (OSError, EOFError, ValueError):
                break
            if "all" in message:
                with self._state:
                    self._answers[message["all"]] = message["values"]
                    self._state.notify_all()
            elif "fail" in message:
                self._fail(str(message["fail"]))
            elif "tell" in message:
                self._hear(str(message["tell"]), int(message["from"]), message["value"])
            elif "left" in message:
                self._has_left(int(message["left"]), int(message["runs"]))
        if 0 not in self._left:
            self._fail("rank 0 has ended")

    def _hear(self, subject: str, rank: int, value: Any) -> None:
        with self._state:
            known = self._hearers.get(subject)
            if known is None:
                self._unheard.append((subject, rank, value))
        hearer = known() if known is not None else None
        if hearer is not None:
            hearer(rank, value)

    def _has_left(self, rank: int, runs: int) -> None:
        with self._state:
            self._left[rank] = runs
            late = runs < self.runs and rank != self.place.rank
        if late:
            self._fail(f"rank {rank} has left after {runs} runs")


def _joined(place: Place, facts: Any, seconds: float) -> Connection:
    """A connection to rank 0's hub."""
    end, said, met = time.monotonic() + seconds, "nobody listens", ""
    while True:         # once at least
        for port in candidates(place.port):
            try:
                connection = Connection(socket.create_connection((place.address, port), timeout=5))
            except OSError as e:
                said = e.strerror or str(e)
                continue
            try:
                ask(connection, place.secret, facts, place.rank)
            except (OSError, EOFError, ValueError):     # a hub of another job
                connection.close()
                met = "who listens is of another job, or does not know its secret"
                continue
            connection.socket.settimeout(None)
            return connection
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    raise UserError(f"rank {place.rank} of {place.size} cannot reach rank 0 at {place.address}: {met or said}; is it "
                    "started, with the same MASTER_ADDR, MASTER_PORT and XCC_JOB_SECRET?")


def own_host(address: str) -> str:
    """The address of this machine that `address`, which other machines know it by, stands for; "" for all of them,
    where it is not known to be one of this machine's that others reach."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        host = socket.gethostbyname(address)
        if not host.startswith("127."):
            sock.bind((host, 0))
            return host
    return ""


_made: list[World] = []
_making = threading.Lock()


def world() -> World:
    """The job that this process is part of, met at the first call."""
    with _making:
        if not _made:
            _made.append(World(place()))
            atexit.register(_made[0].leave)
        return _made[0]
