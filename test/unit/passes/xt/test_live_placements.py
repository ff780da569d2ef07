"""States of the search for placements, as numbers."""

from __future__ import annotations

import itertools

from xcc.passes.xt.sharding.live_placements import LivePlacements
from xcc.passes.xt.sharding.placement import WHOLE, partial, split


def test_states_are_equal_numbers_where_all_live_values_lie_alike() -> None:
    live = LivePlacements([0, 1, 0])                # value 2 lives when value 0 is gone
    kinds = [live.number(p) for p in ((WHOLE,), (split(0),), (split(0), WHOLE), (partial("add"),))]
    assert [live.number(live.placements[k]) for k in kinds] == kinds
    states = [{v: k for v, k in zip((0, 1, -1), some, strict=True) if k is not None}
              for some in itertools.product((None, *kinds), repeat=3)]
    numbers = [live.bits(s) for s in states]
    assert len(set(numbers)) == len(states)
    for state, number in zip(states, numbers, strict=True):
        for v, k in state.items():                  # a value that is gone takes its bit with it
            assert number ^ live.bits({v: k}) == live.bits({w: p for w, p in state.items() if w != v})


def test_values_that_never_live_together_share_bits() -> None:
    live = LivePlacements([0, 1, 0])
    whole = live.number((WHOLE,))
    assert live.bits({0: whole}) == live.bits({2: whole}) != live.bits({1: whole})
