"""Runs the tools that lit tests call as forks of one process, which has imported what they need.

To start Python and to import the compiler takes a third of a second, more than most tests' work, and there are hundreds
of calls. lit.cfg.py starts ``server.py LISTENER ENDING``, a socket and a pipe by number: it ends when lit does, which
closes the pipe. A request of client.py has its standard input, output and errors, its folder, environment and
arguments; the answer is the status to exit with.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import sys
import traceback
from typing import Any

TOOLS = {"filecheck": "filecheck.main", **{t: f"xcc.tools.{t}" for t in ("xcc_bench", "xcc_cli", "xcc_opt", "xcc_run")}}
TARGETS = ("cpu", "nvptx", "amdgcn")


def serve(listener: socket.socket, ending: int) -> None:
    """Forks for each request until lit ends."""
    from xcc.process.forked import prepare

    for module in TOOLS.values():
        importlib.import_module(module)
    for target in TARGETS:
        prepare(target, "")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)       # nobody waits for the forks
    while True:
        ready, _, _ = select.select([listener, ending], [], [])
        if ending in ready:
            path = listener.getsockname()
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os.close(ending)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_answer(connection))
        connection.close()


def _answer(connection: socket.socket) -> int:
    """A fork's work: a request, and its answer."""
    header, files, _, _ = socket.recv_fds(connection, 8, 3)
    size, request = int.from_bytes(header, "little"), b""
    while len(request) < size:
        request += connection.recv(size - len(request))
    tool, folder, count, *rest = request.decode("utf-8", "surrogateescape").split("\0")
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)        # those of the server may be files, which can seek
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(v.split("=", 1) for v in rest[int(count):])
    status = _status(tool, rest[:int(count)])
    connection.sendall(str(status).encode())
    return status


def _status(tool: str, arguments: list[str]) -> int:
    """What a program of the tool alone would exit with."""
    sys.argv = [tool, *arguments]
    try:
        status: Any = importlib.import_module(TOOLS[tool]).main()
    except SystemExit as e:
        status = e.code
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            status = status or 1
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
