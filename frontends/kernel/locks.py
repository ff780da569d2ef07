"""Which locks an instance of a checked program holds, and what instances before it have signalled.

Both are words that atomic updates of one element change. An instance holds a lock as long as a word is not what it
found there. A word that is something else at its end is a signal: what the instance did ahead of its last update of the
word is done for those that update it afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Locks"]

Array = np.ndarray[Any, Any]


class Locks:
    """Of one run. Sets of locks have numbers, 0 that of none. `now`: how many updates of words there were."""

    def __init__(self) -> None:
        self.now = 0
        self._sets: list[frozenset[int]] = [frozenset()]
        self._numbers = {self._sets[0]: 0}
        self._signals: list[dict[int, int]] = []        # of each instance: the time of its last update, by address
        self._words: dict[int, tuple[Array, object, int]] = {}   # of this: the word, what it was, the time
        self._held: int | None = 0

    def begin(self) -> None:
        """The next instance starts."""
        self._signals.append({a: t for a, (word, was, t) in self._words.items() if word.item() != was})
        self._words, self._held = {}, 0

    def update(self, buffer: Array, at: tuple[int, ...]) -> None:
        """The instance is about to update an element."""
        word = buffer[tuple(slice(i, i + 1) for i in at)]
        address = word.__array_interface__["data"][0]
        was = self._words[address][1] if address in self._words else word.item()
        self.now += 1
        self._words[address], self._held = (word, was, self.now), None

    @property
    def held(self) -> int:
        """The set of locks that the instance holds."""
        if self._held is None:
            self._held = self._number(frozenset(a for a, (word, was, _) in self._words.items() if word.item() != was))
        return self._held

    def common(self, sets: Array) -> Array:
        """What of each of the sets the instance holds."""
        if not self.held:
            return np.zeros_like(sets)
        found, where = np.unique(sets, return_inverse=True)
        mine = self._sets[self.held]
        return np.asarray([self._number(self._sets[n] & mine) for n in found], sets.dtype)[where]

    def signalled(self, instances: Array, times: Array) -> NDArray[np.bool_]:
        """Whether what each of some instances did at a time is ahead of what this one does from now on."""
        if not self._words:
            return np.zeros(np.shape(instances), np.bool_)
        found, where = np.unique(instances, return_inverse=True)
        ends = [max((self._signals[n].get(a, 0) for a in self._words), default=0) if 0 < n < len(self._signals) else 0
                for n in found]
        return np.asarray(times < np.asarray(ends)[where])

    def _number(self, locks: frozenset[int]) -> int:
        if locks not in self._numbers:
            self._numbers[locks] = len(self._sets)
            self._sets.append(locks)
        return self._numbers[locks]
