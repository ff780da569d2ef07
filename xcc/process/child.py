"""Processes that compile: Python programs that take frames on standard input and answer with frames.

A frame is a length and a pickle (:func:`xcc.process.worker.write_frame`). What such a process writes to standard error
goes into a file: :meth:`Child.relay` passes it on after a piece of work, and when the process dies its last line says
why.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from xcc.process.forked import Forked
from xcc.process.worker import read_frame, write_frame

__all__ = ["Child"]

TAIL = 1 << 14
"""Bytes of a dead process's standard error that are kept."""


class Child:
    """A process that runs ``serve()`` of the module `module`, with `environment` beside that of this process.

    fork: it is a fork of this process, and starts with all that this one has imported.
    """

    def __init__(self, module: str, environment: Mapping[str, str] = MappingProxyType({}), own_session: bool = False,
                 fork: bool = False) -> None:
        self._own_session = own_session
        self._errors = tempfile.TemporaryFile()
        self._relayed = 0
        if fork:
            self._process: subprocess.Popen[bytes] | Forked = Forked(
                importlib.import_module(module).serve, self._errors.fileno(), environment)
            return
        start = f"import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {module} import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", start, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, bufsize=0, env={**os.environ, **environment}, start_new_session=own_session)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, value: Any) -> None:
        """Raises BrokenPipeError when the process is dead."""
        assert self._process.stdin
        write_frame(self._process.stdin, value)  # type: ignore[arg-type]

    def receive(self, seconds: float | None = None) -> Any:
        """The next frame. EOFError when the process is dead, TimeoutError when it takes longer."""
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            raise TimeoutError
        return read_frame(self._process.stdout)  # type: ignore[arg-type]

    def relay(self) -> None:
        """Writes to this process's standard error what the process has written to its own."""
        text = self._written(self._relayed)
        self._relayed += len(text)
        if text:
            sys.stderr.write(text.decode(errors="replace"))

    def death(self) -> tuple[str, str]:
        """Waits for the end of a process that does not answer. What it ended of, and the last that it wrote."""
        self.end(0.5)
        code = self._process.returncode or 0
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        size = os.fstat(self._errors.fileno()).st_size
        text = self._written(max(self._relayed, size - TAIL)).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"the compiler process {how}" + (f": {lines[-1]}" if lines else ""), text

    def kill(self) -> None:
        """Ends the process now, with those that it has started where it has a session of its own."""
        if self._own_session:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def end(self, patience: float) -> None:
        """Lets the process end when it finds no more work; kills it after `patience` seconds."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def _written(self, begin: int) -> bytes:
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), max(0, size - begin), begin)
