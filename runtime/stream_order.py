"""Runs on several streams one after the other, where what they share does not know streams."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["StreamOrder"]


class StreamOrder:
    """A run on another stream than the one before begins when that has ended."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._done: Any = None                      # an event behind the last run, and its stream
        self._stream: int | None = None

    @contextlib.contextmanager
    def run(self, stream: int | None) -> Iterator[None]:
        """What is enqueued in here on the driver's stream, which is `stream`."""
        if self._done is not None and stream != self._stream:
            self._driver.wait_event(self._done)
        yield
        self._done, self._stream = self._driver.mark(self._done), stream

    def close(self) -> None:
        """Nothing of it is running."""
        if self._done is not None:
            with contextlib.suppress(RuntimeError):
                self._driver.forget_event(self._done)
            self._done = None
