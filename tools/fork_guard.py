"""Keeps the command line's promise that a crash of MLIR is a report: the work goes on in a fork, the parent watches."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from xcc.diagnostics import EXIT_BUG, CompilerBug

__all__ = ["fork_guard"]


def fork_guard(describe: Callable[[], CompilerBug]) -> None:
    """Returns in a child process. The parent waits, ends with the child's status, and reports when it was killed.

    The parent's memory is as it was here, so `describe` can still save what the child worked on.
    """
    if not hasattr(os, "fork"):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        bug = describe()
        bug.message += f" ({signal.Signals(-status).name})"
        sys.stderr.write(f"xcc: compiler bug: {bug}\n")
        status = EXIT_BUG
    sys.stderr.flush()
    os._exit(status)
