"""Keeps the promise that a crash of MLIR is a report: the work goes on in a fork, this process watches."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from xcc.diagnostics import EXIT_BUG, CompilerBug

__all__ = ["end_with_parent", "fork_guard", "may_fork", "signal_name", "wait"]

PR_SET_PDEATHSIG = 1
_GUARDED: list[int] = []        # the process that a guard left to go on


def fork_guard(describe: Callable[[], CompilerBug], report: Callable[[CompilerBug], None] | None = None) -> None:
    """Returns in a child process. The parent waits, ends with the child's status, and reports when it was killed.

    The parent's memory is as it was here, so `describe` can still save what the child worked on. `report` gets what it
    says (by default it is written to standard error).
    """
    if not hasattr(os, "fork"):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    here = os.getpid()
    interruptible = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    early: list[int] = []       # interrupts that come before both processes know what to do about one
    if interruptible:
        signal.signal(signal.SIGINT, lambda number, _: early.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})    # Python forgets what comes while it forks
    child = os.fork()
    if interruptible:
        signal.signal(signal.SIGINT, (lambda *_: os.kill(child, signal.SIGINT)) if child else _interrupted_once)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if child == 0:
        end_with_parent(here)
        _GUARDED[:] = [os.getpid()]
        if early:
            _interrupted_once()
        return
    if early:
        os.kill(child, signal.SIGINT)
    status = wait(child)
    if status < 0:
        bug = describe()
        bug.message += f" ({signal_name(status)})"
        (report or _to_stderr)(bug)
        status = EXIT_BUG
    sys.stderr.flush()
    os._exit(status)


def may_fork() -> bool:
    """Whether this process is there for one compilation and has one thread, so that a fork of it can go on with it."""
    return _GUARDED == [os.getpid()] and sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


def _interrupted_once(*_: Any) -> None:
    """The terminal tells every process of a chain, and each passes it on: all but the first are the same."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_with_parent(parent: int) -> None:
    """Linux: this process is killed when the thread that forked it ends, whatever that ends of."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:      # it ended before the call
            os._exit(EXIT_BUG)


def wait(child: int) -> int:
    """The status that a child process ends with, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def signal_name(status: int) -> str:
    """"SIGSEGV" for -11."""
    return signal.Signals(-status).name


def _to_stderr(bug: CompilerBug) -> None:
    sys.stderr.write(f"xcc: compiler bug: {bug}\n")
