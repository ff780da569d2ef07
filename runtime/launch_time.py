"""What an executor's ``profile`` says about one launch."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LaunchTime"]


class LaunchTime(NamedTuple):
    """The device function `kernel` took `seconds` (median) with these values of its symbols."""

    kernel: str
    seconds: float
    symbols: tuple[int, ...]
