"""What the command-line tools share: errors as one line and an exit status, and how arguments are read."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from xcc.diagnostics import EXIT_BUG, EXIT_USER, CompilerBug, SourceError, UserError
from xcc.runtime.output_file import output_file

__all__ = ["ArgumentParser", "check_writable", "guarded", "write_output"]


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ArgumentParser(argparse.ArgumentParser):
    """Prints usage errors as one line and exits with 1, like every other user error."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: error: {message} (see {self.prog} --help)\n")
        raise SystemExit(EXIT_USER)


def guarded(prog: str, body: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """Runs `body` and turns errors into a message on stderr and an exit status."""
    _open_standard_files()
    try:
        status = body(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return status
    except UserError as e:
        source = e.shown if isinstance(e, SourceError) else ""
        line = " ".join(e.message.splitlines())     # names may have line breaks
        return _report(prog, "error", line + source, EXIT_USER)
    except CompilerBug as e:
        if e.details and os.environ.get("XCC_TRACEBACK"):
            sys.stderr.write(e.details)
        return _report(prog, "compiler bug", str(e), EXIT_BUG)
    except BrokenPipeError:
        _drop_output()
        return EXIT_USER
    except MemoryError as e:
        return _report(prog, "error", str(e) or "the memory does not suffice", EXIT_USER)
    except OSError as e:
        if e.errno not in FULL:
            return _report(prog, "compiler bug", _save_traceback(e), EXIT_BUG)
        _drop_output()
        return _report(prog, "error", str(e), EXIT_USER)
    except ImportError as e:
        if (e.name or "").startswith("xcc"):
            return _report(prog, "compiler bug", _save_traceback(e), EXIT_BUG)
        return _report(prog, "error", f"xcc is not installed whole: {e}", EXIT_USER)
    except Exception as e:
        return _report(prog, "compiler bug", _save_traceback(e), EXIT_BUG)
    except KeyboardInterrupt:
        return _report(prog, "stopped", "interrupted", 130)


def write_output(path: str, data: str | bytes) -> None:
    """Writes to the file `path`, all or nothing, or to standard output for "-"; UserError when that fails."""
    raw = data.encode() if isinstance(data, str) else data
    try:
        if path == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(raw)
            sys.stdout.flush()
        else:
            with output_file(path) as f:
                f.write(raw)
    except BrokenPipeError:
        raise
    except OSError as e:
        if path == "-":
            _drop_output()
        raise UserError(f"{'standard output' if path == '-' else path}: cannot be written: {e.strerror}") from None


def check_writable(path: str) -> None:
    """UserError where it is known before any work that the file `path` cannot be written."""
    folder = Path(path).parent
    reason = 0 if os.access(path if os.path.exists(path) else folder, os.W_OK) else errno.EACCES
    if not folder.is_dir():
        reason = errno.ENOTDIR if folder.exists() else errno.ENOENT
    elif os.path.isdir(path):
        reason = errno.EISDIR
    if reason:
        raise UserError(f"{path}: cannot be written: {os.strerror(reason)}")


def _open_standard_files() -> None:
    """What the caller closed becomes the null device: another file would take its number, and get what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while os.open(os.devnull, os.O_RDWR) < number:
                pass
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))


def _drop_output() -> None:
    """Sends what is still to be printed to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _save_traceback(error: Exception) -> str:
    """Saves what nobody expected; the one line that says where."""
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    if os.environ.get("XCC_TRACEBACK"):
        sys.stderr.write(text)
    with tempfile.NamedTemporaryFile("w", prefix="xcc-bug-", suffix=".txt", delete=False) as f:
        f.write(f"{sys.argv}\n{text}")
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno}); details are in {f.name}"


def _report(prog: str, kind: str, message: str, status: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:         # nobody reads it, or the disk is full
        _drop_output()
    sys.stderr.write(f"{prog}: {kind}: {message}\n")
    return status
