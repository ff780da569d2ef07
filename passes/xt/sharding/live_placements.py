"""Which placements live values have, as bits of one number: two states that have the same are equal numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcc.passes.xt.sharding.placement import Placement


class LivePlacements:
    """Numbers for tuples of placements, and a bit for each that a live value may have.

    slots: of values, by number; those that are never live at the same time may share one, and so its bits, that a state
    is as long as what is live. Negative numbers of values are slots of their own.
    """

    def __init__(self, slots: Sequence[int]) -> None:
        self.placements: list[tuple[Placement, ...]] = []
        self._slots = slots
        self._numbers: dict[tuple[Placement, ...], int] = {}
        self._bits: dict[tuple[int, int], int] = {}     # of a slot and the number of placements

    def number(self, placements: tuple[Placement, ...]) -> int:
        """The index of `placements` in the list of that name."""
        if placements not in self._numbers:
            self._numbers[placements] = len(self.placements)
            self.placements.append(placements)
        return self._numbers[placements]

    def bits(self, have: Mapping[int, int]) -> int:
        """Those of a state in which values have these placements."""
        found = 0
        for v, p in have.items():
            key = (v if v < 0 else self._slots[v], p)
            if key not in self._bits:
                self._bits[key] = 1 << len(self._bits)
            found |= self._bits[key]
        return found
