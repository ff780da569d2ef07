"""A fork of this process that works for it, and what a process does once for all its forks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from xcc.options import CompileOptions
from xcc.process.fork_guard import end_with_parent

__all__ = ["Forked", "converters", "prepare"]

_PREPARED: set[str] = set()
MODEL = """func.func @main(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %y = "xt.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def converters(frontend: str) -> Mapping[Any, Any]:
    """What converts the ops of the frontend for files of this suffix, by their names."""
    from xcc.driver.sources import FRONTENDS

    table: Mapping[Any, Any] = importlib.import_module(FRONTENDS[frontend].replace("importer", "registry")).table()
    return table


def prepare(target: str, frontend: str) -> None:
    """Imports what compiling for `target` needs, and the frontend ``onnx`` or ``torch``: forks have it then.

    It compiles a model of one op, since much is imported where it is used. What goes wrong here does so again later,
    where it is reported.
    """
    from xcc.driver.sources import FRONTENDS
    from xcc.driver.versions import compile_versions

    try:
        if frontend and frontend not in _PREPARED:
            importlib.import_module(FRONTENDS[frontend])
            converters(frontend)
        if target not in _PREPARED:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "small.mlir")
                path.write_text(MODEL)
                compile_versions(path, CompileOptions.make(target, cache=False, isolate=False))
    except Exception:
        return
    finally:
        _PREPARED.update((target, frontend))


class Forked:
    """A fork that runs `serve`, which reads standard input and writes standard output; see :class:`subprocess.Popen`.

    It has nothing open but these and `errors`, its standard error, and ends with the thread that forked it.
    """

    def __init__(self, serve: Callable[[], None], errors: int, environment: Mapping[str, str]) -> None:
        requests, to = os.pipe()
        back, answers = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        here = os.getpid()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _serve(serve, here, (requests, answers, errors), environment)
        os.close(requests)
        os.close(answers)
        self.stdin: Any = os.fdopen(to, "wb", 0)
        self.stdout: Any = os.fdopen(back, "rb", 0)

    def poll(self) -> int | None:
        """The status that it ended with, negative for a signal; None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; TimeoutExpired after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            time.sleep(0.001)
        return status

    def kill(self) -> None:
        """Ends it now."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _serve(serve: Callable[[], None], parent: int, ends: tuple[int, int, int], environment: Mapping[str, str]) -> None:
    """The fork's life."""
    status = 1
    try:
        gc.freeze()     # what is closed here by number is never closed again by an object
        end_with_parent(parent)
        for standard, end in enumerate(os.dup(e) for e in ends):
            os.dup2(end, standard)
        for opened in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                os.close(opened if opened > 2 else -1)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        os.environ.update(environment)
        serve()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
