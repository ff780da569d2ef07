"""A line on the terminal that says what is going on; nothing in a pipe."""

from __future__ import annotations

import shutil
import sys

__all__ = ["Progress"]


class Progress:
    """Shows ``what done/all`` on one line of standard error when that is a terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.shown:
            count = f" {done}/{total}" if total > 1 else ""
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{f'{what}{count}'[:width]}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
