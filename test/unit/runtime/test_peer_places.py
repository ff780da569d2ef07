"""Where exchanged buffers lie: nothing is written before what lay there has been read."""

from __future__ import annotations

import random

import pytest

from xcc.runtime.peer_places import SWAP, Areas, areas_for, exchanges, merged, places
from xcc.runtime.program import Buffer, Collective, Copy, If, Launch, Program

Facts = list[tuple[int, int, bool]]


def drawn(rng: random.Random) -> tuple[Facts, list[int]]:
    """What exchanges are like, which are written at most two ahead, and read up to three later."""
    count = rng.randint(1, 12)
    facts = [(max(0, n - rng.choice((0, 0, 0, 1, 2))), min(count, n + 1 + rng.choice((0, 0, 0, 1, 3))),
              rng.random() < 0.8) for n in range(count)]
    return facts, [rng.choice((0, 20, 512, 4096, 100_000)) for _ in range(count)]


def check(facts: Facts, sizes: list[int], found: dict[int, int], areas: Areas) -> None:
    order = sorted(found)
    counted = {n: tuple(sum(o < moment for o in order) for moment in facts[n][:2]) for n in order}
    for n in order:
        assert sizes[n] and not found[n] % 256 and found[n] + sizes[n] <= areas.first + areas.rest
        assert (counted[n][0] == 0) == (found[n] < areas.first)
        if counted[n][0] == 0:
            assert counted[n][1] < len(order)           # read before the last exchange of the run
    for a in order:
        for b in order:
            apart = found[a] + sizes[a] <= found[b] or found[b] + sizes[b] <= found[a]
            if a < b and not apart:
                assert counted[a][1] < counted[b][0]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_overwritten_that_is_read(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        facts, sizes = drawn(rng)
        areas = rng.choice((areas_for(facts, sizes, 1 << 20), Areas(1024, 8192), Areas()))
        check(facts, sizes, places(facts, sizes, areas), areas)


def test_a_chain_takes_turns_in_two_places() -> None:
    """Besides what is written ahead of the first exchange."""
    facts = [(n, n + 1, True) for n in range(8)]
    found = places(facts, [512] * 8, areas_for(facts, [512] * 8, 1 << 20))
    assert len(found) == 8 and len(set(found.values())) == 3


def program(*body: object) -> Program:
    buffers = (Buffer("input", (4,), "f32", "x"), *(Buffer("temp", (4,), "f32") for _ in range(6)),
               Buffer("alias", (2, 2), "f32", base=2), Buffer("output", (4,), "f32", "y"))
    return Program(buffers, body, (0,), (8,))  # type: ignore[arg-type]


SENT = Collective("permute", 2, 3, ("tp",), pairs=SWAP)


@pytest.mark.parametrize(("body", "facts"), [
    ((Launch("k", (0, 1, 2), ()), SENT, Launch("k", (1, 3, 8), ())), [(0, 1, True)]),
    ((Launch("k", (0, 1, 2), ()), Collective("permute", 7, 3, ("tp",), pairs=SWAP), Launch("k", (3, 8), ())),
     [(0, 1, True)]),
    ((Launch("k", (0, 2), ()), SENT, Launch("k", (2, 3, 8), ())), [(0, 1, False)]),     # its source is read
    ((Copy(0, 2), SENT, Copy(3, 8)), [(0, 1, False)]),                                  # no kernel writes it
    ((Launch("k", (0, 3, 2), ()), SENT, Copy(3, 8)), []),                               # its target is used before
    ((Launch("k", (0, 2), ()), Collective("permute", 2, 8, ("tp",), pairs=SWAP)), []),  # it is an output
    ((Launch("k", (0, 2), ()), Collective("permute", 2, 3, ("tp",), pairs=((0, 1),)), Copy(3, 8)), []),
    ((Launch("k", (0, 2), ()), SENT, Launch("k", (0, 4), ()), Collective("permute", 4, 5, ("tp",), pairs=SWAP),
      Launch("k", (3, 5, 8), ())), [(0, 2, True), (1, 2, True)]),
    ((If(0, (Copy(0, 1),), ()), Launch("k", (0, 2), ()), SENT, Copy(3, 8)), []),
])
def test_what_is_known_of_exchanges(body: tuple[object, ...], facts: Facts) -> None:
    assert [e.facts for e in exchanges(program(*body), ("tp",))] == facts
    assert exchanges(program(*body), ("dp",)) == []


def test_what_holds_of_both_ranks() -> None:
    assert merged([[(0, 1, True), (1, 2, True)], [(0, 2, True), (0, 2, False)]]) == [(0, 2, True), (0, 2, False)]
    assert merged([[(0, 1, True)], []]) == []
