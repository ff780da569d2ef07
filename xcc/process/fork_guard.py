"""Keeps the promise that a crash of MLIR is a report: the work is done in a fork, this process watches."""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from xcc.diagnostics import EXIT_BUG, CompilerBug

__all__ = ["Steps", "end_with_parent", "fork_guard", "may_fork", "signal_name", "wait"]

PR_SET_PDEATHSIG = 1
_GUARDED: list[int] = []        # the process that compiles while another waits for it


class Steps:
    """What a compiling process is told before each step, so that who waits for it can say what it died of.

    That step's number is in memory which both see. When the process is killed, a second one (:meth:`again`) goes the
    same way up to there, where the module is as it was, and reports what the step describes. So nothing is copied or
    kept for a case that is rare.
    """

    def __init__(self, report: Callable[[CompilerBug], None]) -> None:
        self._report = report
        self._reached = mmap.mmap(-1, 8)
        self._taken = self._last = 0
        self._how = ""
        self._errors = 2

    def begin(self) -> None:
        """Called in the new process; what is said before the step in question was said before."""
        _GUARDED[:] = [os.getpid()]
        if self._last:
            self._errors = os.dup(2)
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)

    def __call__(self, describe: Callable[[], CompilerBug]) -> None:
        """`describe` says what to report if this process does not get to the next call."""
        self._taken += 1
        if self._taken == self._last:
            self._say(describe())
            os._exit(EXIT_BUG)
        self._reached[:] = self._taken.to_bytes(8, "little")

    def again(self, status: int) -> bool:
        """Whether to start a process once more, `status` being what the last ended with; if not, all is reported."""
        if status >= 0:
            return False
        reached, self._how = int.from_bytes(self._reached[:], "little"), signal_name(status)
        if reached and not self._last:
            self._last = reached
            return True
        self._say(CompilerBug("the compiler died" if reached else "the compiler died while importing the model"))
        return False

    def _say(self, bug: CompilerBug) -> None:
        bug.message += f" ({self._how})"
        sys.stderr.flush()
        os.dup2(self._errors, 2)
        self._report(bug)
        sys.stderr.flush()


def fork_guard() -> Steps:
    """Returns in a child process. The parent waits, ends with the child's status, and says what it was killed by."""
    steps = Steps(_to_stderr)
    if not hasattr(os, "fork"):
        return steps
    while (status := _forked()) is not None:
        if not steps.again(status):
            sys.stderr.flush()
            os._exit(EXIT_BUG if status < 0 else status)
    steps.begin()
    return steps


def _forked() -> int | None:
    """None in the child; in the parent what the child ended with."""
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
        if early:
            _interrupted_once()
        return None
    if early:
        os.kill(child, signal.SIGINT)
    return wait(child)


def may_fork() -> bool:
    """Whether this process is there for one compilation and has one thread, so that a fork of it can go on with it."""
    if _GUARDED != [os.getpid()] or sys.platform != "linux":
        return False
    if _threads() > 1:      # OpenBLAS ends its own at a fork, and starts them when it needs them again
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return _threads() == 1


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


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
