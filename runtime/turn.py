"""Turns of threads that share a model."""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["Turn"]


class Turn:
    """`lock` is held by the thread whose turn it is, which may take it again: what the collector of cycles ends in the
    middle of a run may run the model once more."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _TURNS.add(self)


_TURNS: weakref.WeakSet[Turn] = weakref.WeakSet()


def _after_fork() -> None:
    """A thread that has its turn is not in a fork's child."""
    for turn in _TURNS:
        turn.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
