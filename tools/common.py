"""What the command-line tools share: errors as one line and an exit status, and how arguments are read."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from xcc.diagnostics import EXIT_BUG, EXIT_USER, CompilerBug, UserError

__all__ = ["ArgumentParser", "guarded"]


class ArgumentParser(argparse.ArgumentParser):
    """Prints usage errors as one line and exits with 1, like every other user error."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: error: {message} (see {self.prog} --help)\n")
        raise SystemExit(EXIT_USER)


def guarded(prog: str, body: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """Runs `body` and turns errors into a message on stderr and an exit status."""
    try:
        return body(sys.argv[1:] if argv is None else argv)
    except UserError as e:
        return _report(prog, "error", str(e), EXIT_USER)
    except CompilerBug as e:
        if e.details and os.environ.get("XCC_TRACEBACK"):
            sys.stderr.write(e.details)
        return _report(prog, "compiler bug", str(e), EXIT_BUG)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_USER
    except Exception as e:
        return _report(prog, "compiler bug", _save_traceback(e), EXIT_BUG)
    except KeyboardInterrupt:
        return _report(prog, "stopped", "interrupted", 130)


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
    sys.stdout.flush()
    sys.stderr.write(f"{prog}: {kind}: {message}\n")
    return status
