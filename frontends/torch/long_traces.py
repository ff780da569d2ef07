"""A line on the terminal while a model with free sizes takes long to compile, as the command line has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from xcc.progress import Progress

__all__ = ["told_when_long"]

_LONG = 30.0        # seconds


@contextmanager
def told_when_long(seconds: float = _LONG) -> Iterator[None]:
    """Once what is done in here has taken so many seconds; nothing in a pipe."""
    progress = Progress()
    if not progress.shown:
        yield
        return
    said = f"compiling for all sizes: {seconds:.0f} s; quicker after torch._dynamo.mark_static(x, dim)"
    timer = Timer(seconds, progress, (said, 0, 1))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.clear()
