"""What rank 0 serves to all ranks of a job: values exchanged, and word of ranks that fail, leave or die.

Messages are JSON objects with their length before them. A rank joins first (xcc.runtime.handshake), then sends ``put``
(key, value), ``tell`` (a subject and a value, for all others), ``fail`` (a text) and ``bye`` (its runs so far). It
receives ``all`` (the values of a key by rank, once all are there), ``tell``, ``fail`` and ``left`` (a rank, its runs).
"""

from __future__ import annotations

import contextlib
import json
import queue
import selectors
import socket
import struct
import threading
import time
from typing import Any

from xcc.runtime.handshake import greet

__all__ = ["Connection", "Hub", "candidates"]

_LENGTH = struct.Struct("<I")
_MOST_BYTES = 1 << 24
_PORTS = 16
TICK = 0.5          # seconds between looks at what is awaited
_GREETING = 5       # seconds that one who comes has to say who it is


def candidates(port: int) -> list[int]:
    """Ports that rank 0 tries, for a launcher's `port`, where its own store may listen."""
    first = 20000 + port * 7919 % 11984
    return [first + n for n in range(_PORTS)]


class Connection:
    """Messages over a socket. Threads may send; one receives."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._lock = threading.Lock()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 3), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 2)):   # a machine that is gone
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def send(self, message: dict[str, Any]) -> None:
        """OSError where nobody is there any more."""
        data = json.dumps(message).encode()
        with self._lock:
            self.socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> dict[str, Any]:
        """The next one; EOFError at the end, ValueError for what is none, OSError where the connection is lost."""
        size, = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if size > _MOST_BYTES:
            raise ValueError(f"a message of {size} bytes")
        message = json.loads(self._exactly(size))
        if not isinstance(message, dict):
            raise ValueError("a message that is no object")
        return message

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def close(self) -> None:
        """Wakes who receives."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Hub(threading.Thread):
    """Serves `size` ranks of the job with these `facts`, in a thread, until all have left. Ranks know the `secret`, and
    connect to `host`."""

    def __init__(self, size: int, facts: Any, secret: str, ports: list[int], host: str) -> None:
        super().__init__(name="xcc hub", daemon=True)
        self.size, self.facts, self.secret = size, facts, secret
        self._selector = selectors.DefaultSelector()
        self._listener = _listening(ports, host)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._greeted: queue.SimpleQueue[tuple[int, Connection]] = queue.SimpleQueue()
        self._bell, self._ringer = socket.socketpair()
        self._selector.register(self._bell, selectors.EVENT_READ, self._join)
        self._ranks: dict[int, Connection] = {}
        self._left: set[int] = set()
        self._puts: dict[str, dict[int, Any]] = {}
        self._limits: dict[str, float] = {}

    def run(self) -> None:
        """Until every rank has left, or the process ends."""
        while len(self._left) < self.size:
            for event, _ in self._selector.select(TICK):
                if isinstance(event.data, int):
                    self._serve(event.data)
                else:
                    event.data()
            self._end_what_is_late()
        for sock in (self._listener, self._bell, self._ringer):
            sock.close()

    def _accept(self) -> None:
        """Who comes is asked in a thread: it may keep silent."""
        connection = Connection(self._listener.accept()[0])
        connection.socket.settimeout(_GREETING)
        threading.Thread(target=self._greet, args=(connection,), daemon=True, name="xcc hub greets").start()

    def _greet(self, connection: Connection) -> None:
        try:
            rank = greet(connection, self.secret, self.facts, self.size)
            self._greeted.put((rank, connection))
            self._ringer.send(b"!")
        except (OSError, EOFError, ValueError):     # of another job, or none
            connection.close()

    def _join(self) -> None:
        """One that was greeted is a rank from now on, if it is the first."""
        self._bell.recv(1)
        rank, connection = self._greeted.get()
        if rank in self._ranks or rank in self._left:
            connection.close()
            return
        connection.socket.settimeout(None)
        self._ranks[rank] = connection
        self._selector.register(connection.socket, selectors.EVENT_READ, rank)

    def _serve(self, rank: int) -> None:
        try:
            message = self._ranks[rank].receive()
        except (OSError, EOFError, ValueError):
            self._gone(rank)
            if rank not in self._left:
                self._left.add(rank)
                self._tell({"fail": f"rank {rank} has ended"})
            return
        if "put" in message:
            self._put(rank, message)
        elif "bye" in message:
            self._left.add(rank)
            self._tell({"left": rank, "runs": message["bye"]})
        else:
            self._tell(message | {"from": rank}, besides=rank)

    def _put(self, rank: int, message: dict[str, Any]) -> None:
        key = message["put"]
        values = self._puts.setdefault(key, {})
        values[rank] = message["value"]
        self._limits.setdefault(key, time.monotonic() + message["seconds"])
        if len(values) == self.size:
            self._tell({"all": key, "values": [values[r] for r in range(self.size)]})
            del self._puts[key], self._limits[key]

    def _end_what_is_late(self) -> None:
        for key, values in list(self._puts.items()):
            missing = sorted(set(range(self.size)) - values.keys())
            gone = self._left & set(missing)
            if gone or time.monotonic() > self._limits[key]:
                names = ", ".join(map(str, sorted(gone) or missing[:8]))
                self._tell({"fail": f"rank {names} {'has left' if gone else 'did not come'}: {key}"})
                del self._puts[key], self._limits[key]

    def _tell(self, message: dict[str, Any], besides: int = -1) -> None:
        """Rank 0 is told last: its process, which is this one, may end when it hears."""
        for rank, connection in sorted(self._ranks.items(), reverse=True):
            if rank != besides:
                with contextlib.suppress(OSError):      # its end is seen when it is read from
                    connection.send(message)

    def _gone(self, rank: int) -> None:
        connection = self._ranks.pop(rank)
        self._selector.unregister(connection.socket)
        connection.close()


def _listening(ports: list[int], host: str) -> socket.socket:
    """A socket on the first of `ports` that is free; OSError where none is."""
    for port in ports:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind((host, port))
            sock.listen(128)
            return sock
        except OSError as e:
            sock.close()
            error = e
    raise error
