"""Which way each op is divided: the cheapest, in seconds, found by a beam search in the order of the program.

A state of the search is which placements the values have that are still read. Two ways to the same state are one from
there on, the cheaper. What a state has is a number with a bit for each placement (live_placements.py): a step looks
only at what an op changes, and copies only the states that go on. Values made of weights and constants alone are in no
state: each reader takes the part that it wants, and pays for the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from xcc._mlir import Operation, Value
from xcc.dialects.xt.types import TensorType
from xcc.passes.xt.sharding.cost import Costs, best_move
from xcc.passes.xt.sharding.factors import Strategy
from xcc.passes.xt.sharding.free_values import FreeValues, Wanted
from xcc.passes.xt.sharding.live_placements import LivePlacements
from xcc.passes.xt.sharding.placement import ANY, WHOLE, Placement, partial
from xcc.passes.xt.sharding.sites import Site, Sites

WIDTH = 48          # states that go on
LIGHT = 1e-3        # of all seconds, or of all bytes of weights: an op below it, of whole operands, stays whole

Have = dict[Value, tuple[Placement, ...]]


@dataclass(frozen=True)
class Choice:
    """A strategy for each op that is not free, the placement of each result, the seconds that a run takes, and the
    bytes of each part of a weight that a rank holds."""

    strategies: Mapping[Operation, Strategy]
    results: tuple[Placement, ...]
    seconds: float
    arguments: Mapping[Value, Placement] = field(default_factory=dict)
    parts: Mapping[tuple[str, Placement], int] = field(default_factory=dict)

    @property
    def weights(self) -> int:
        """The bytes of weights that a rank holds."""
        return sum(self.parts.values())


@dataclass(eq=False)
class _State:
    """`have` is by the numbers of values, `bits` says the same."""

    seconds: float
    have: dict[int, int]
    bits: int = 0
    before: _State | None = None
    chosen: tuple[Site, Strategy] | None = None


@dataclass(frozen=True)
class _Effect:
    """What it takes to bring operands to where a way wants them, move by move, what has changed behind it, and the bits
    of a state that are others then."""

    moves: tuple[float, ...]
    changed: dict[int, int]
    flipped: int


@dataclass(frozen=True)
class _Way:
    """A strategy of a site: what it wants of which values, and what it makes. `effects` are by what the operands have;
    None where there is no way to what it wants."""

    strategy: Strategy
    wanted: tuple[tuple[int, Placement], ...]
    made: tuple[tuple[int, int], ...]
    effects: dict[tuple[int, ...], _Effect | None] = field(default_factory=dict)


_Next = tuple[float, _State, _Way, dict[int, int]]
"""A state that may go on: its seconds, the one before, and the way that is gone, with what that changes."""


class Search:
    """Of ways to divide the ops of `sites`. What does not hang on what is wanted is found out once."""

    def __init__(self, sites: Sites, costs: Costs) -> None:
        self.sites, self.costs = sites, costs
        self.work = [s for s in sites.all if not s.free]
        self.seconds = {s: s.seconds(costs) for s in self.work}
        self.numbers = {v: n for n, v in enumerate((*sites.block.arguments, *sites.maker))}
        self.given = len(sites.block.arguments)
        self.sizes = [costs.nbytes(TensorType.of(v)) for v in self.numbers]
        self.last: dict[Value, int] = {}
        for n, site in enumerate(self.work):
            self.last.update(dict.fromkeys(site.operands, n))
        self.last.update(dict.fromkeys(sites.returned, len(self.work)))
        self.light = LIGHT * sum(self.seconds.values()), LIGHT * sites.nbytes_of_weights(costs.nbytes)
        self.partial = self._partials()
        self.gone = [[self.numbers[v] for v in dict.fromkeys((*s.operands, *s.results)) if self.last.get(v, -1) <= n]
                     for n, s in enumerate(self.work)]
        self.live = LivePlacements(self._slots())
        self.moves: dict[tuple[int, int, Placement], tuple[float, int]] = {}
        self.ways = [[self._way(s, way) for way in (*s.strategies, *self._linear(s))] for s in self.work]

    def choose(self, wanted: Wanted) -> Choice:
        """The cheapest of what the search finds; the same on every machine and for every rank."""
        self.wanted, self.free = wanted, FreeValues(self.sites, self.costs, wanted)
        begin = {self.numbers[v]: self.live.number((p,)) for v, p in self.wanted.arguments.items() if v in self.last}
        states = [_State(0.0, begin, self.live.bits(begin))]
        for n, site in enumerate(self.work):
            states = self._step(n, site, states)
        ends = [self._end(s) for s in states]
        state, results = min(ends, key=lambda e: e[0].seconds)
        strategies: dict[Operation, Strategy] = {}
        end: _State | None = state.before
        while end is not None and end.chosen is not None:
            strategies[end.chosen[0].op] = end.chosen[1]
            end = end.before
        paid = sum(self._free_seconds(site, strategies[site.op]) for site in self.work)
        return Choice(strategies, results, state.seconds - paid, self._arguments(state.have),
                      self._parts(strategies, results))

    def _step(self, n: int, site: Site, states: list[_State]) -> list[_State]:
        ways = [(way, self._own_seconds(site, way.strategy)) for way in self.ways[n]]
        wanted, undecided = [v for v, _ in ways[0][0].wanted], self.live.number((ANY,))
        heavy = self.seconds[site] > self.light[0] or self._reads_weights(site)
        gone = self.gone[n]
        best: dict[int, _Next] = {}
        for state in states:
            operands = tuple([state.have[v] for v in wanted])
            light = not heavy and all(WHOLE in self.live.placements[p] for p in operands)
            for way, own_seconds in ways[:1] if light else ways:
                if operands not in way.effects or undecided in operands:    # the price decides, too
                    way.effects[operands] = self._effect(way, operands, gone)
                effect = way.effects[operands]
                if effect is None or own_seconds == inf:
                    continue
                seconds = state.seconds + own_seconds
                for move in effect.moves:       # one by one: sum() rounds in another way in newer versions of Python
                    seconds += move
                bits = state.bits ^ effect.flipped
                if bits not in best or seconds < best[bits][0]:
                    best[bits] = seconds, state, way, effect.changed
        going = sorted(best.items(), key=lambda b: b[1][0])[:WIDTH]
        return [self._state(site, bits, new, gone) for bits, new in going]

    def _slots(self) -> list[int]:
        """A number for each value; one that is read no more leaves its to others."""
        slots, unused = list(range(len(self.numbers))), list[int]()
        for site, gone in zip(self.work, self.gone, strict=True):
            unused += [slots[v] for v in gone]
            for v in site.results:
                if unused and self.numbers[v] not in gone:
                    slots[self.numbers[v]] = unused.pop()
        return slots

    @staticmethod
    def _state(site: Site, bits: int, new: _Next, gone: Sequence[int]) -> _State:
        seconds, before, way, changed = new
        have = before.have | changed
        for v in gone:
            have.pop(v, None)
        return _State(seconds, have, bits, before, (site, way.strategy))

    def _way(self, site: Site, s: Strategy) -> _Way:
        wanted = tuple((self.numbers[v], p) for v, p in zip(site.operands, s.operands, strict=True)
                       if not self.sites.is_free(v))
        made = tuple((self.numbers[v], self.live.number((p,))) for v, p in zip(site.results, s.results, strict=True))
        return _Way(s, wanted, made)

    def _own_seconds(self, site: Site, s: Strategy) -> float:
        ranks = 1 if s.factor is None or s.is_whole else self.costs.ranks
        return self.seconds[site] / ranks + self._free_seconds(site, s)

    def _free_seconds(self, site: Site, s: Strategy) -> float:
        return sum(self.free.seconds(v, p) for v, p in zip(site.operands, s.operands, strict=True)
                   if self.sites.is_free(v))

    def _effect(self, way: _Way, operands: tuple[int, ...], gone: Sequence[int]) -> _Effect | None:
        """Of dividing a site so where its operands lie so; the values that are `gone` nobody reads any more."""
        before = {v: had for (v, _), had in zip(way.wanted, operands, strict=True)}
        have = dict(before)
        moves = tuple(self._brought(have, v, p) for v, p in way.wanted)
        if inf in moves:
            return None
        have |= dict(way.made)
        left = {v: p for v, p in have.items() if v not in gone}
        return _Effect(moves, have, self.live.bits(before) ^ self.live.bits(left))

    def _brought(self, have: dict[int, int], v: int, p: Placement) -> float:
        """The seconds to bring a value to `p`, which it has then. What the model holds lies from then on so."""
        placements = self.live.placements[have[v]]
        if placements == (ANY,):
            have[v] = have[_held(v)] = self.live.number((p,))
            if p.kind == "partial":
                return inf
            return self.wanted.price * self.sizes[v] / (self.costs.ranks if p.kind == "split" else 1)
        key = (v, have[v], p)
        if key not in self.moves:
            move = best_move(self.costs, placements, p, self.sizes[v])
            read_so = move.kind == "slice" and v < self.given       # by what reads it from memory anyway
            self.moves[key] = (0.0 if read_so else move.seconds, self.live.number(moved(placements, p)))
        seconds, have[v] = self.moves[key]
        return seconds

    def _end(self, state: _State) -> tuple[_State, tuple[Placement, ...]]:
        """The results brought to where they are wanted."""
        have, total, results = dict(state.have), state.seconds, []
        for number, (v, wanted) in enumerate(zip(self.sites.returned, self.wanted.results, strict=True)):
            if number in self.wanted.updates:
                held = have.get(_held(self.numbers[self.wanted.updates[number]]))
                wanted = wanted if held is None else self.live.placements[held]
            if self.sites.is_free(v):
                p = min(wanted, key=lambda p: self.free.seconds(v, p))
                total += self.free.seconds(v, p)
            else:
                n = self.numbers[v]
                p = min(wanted, key=lambda p: self._brought(dict(have), n, p))
                total += self._brought(have, n, p)
            results.append(p)
        return _State(total, have, before=state), tuple(results)

    def _arguments(self, have: dict[int, int]) -> dict[Value, Placement]:
        """Where arguments lie; what nothing uses of what the model holds is whole."""
        whole = self.live.number((WHOLE,))
        return {v: self.live.placements[have.get(_held(self.numbers[v]), whole)][0] if p == ANY else p
                for v, p in self.wanted.arguments.items()}

    def _reads_weights(self, site: Site) -> bool:
        return any(self.sites.is_free(v) and self.sizes[self.numbers[v]] > self.light[1] for v in site.operands)

    def _partials(self) -> dict[Value, set[str]]:
        """How values may be partial."""
        out: dict[Value, set[str]] = {}
        for site in self.work:
            made = {c for s in site.strategies for p in s.results if (c := p.combine)}
            if site.rule.keeps and site.operands:
                made |= out.get(site.operands[0], set())
            elif any("add" in out.get(site.operands[n], ()) for group in site.rule.linear for n in group):
                made |= {"add"}
            for v in site.results:
                out[v] = made
        return out

    def _linear(self, site: Site) -> list[Strategy]:
        """Ways in which partial operands give partial results."""
        out: list[Strategy] = []
        for group in site.rule.linear:
            kinds = [self.partial.get(site.operands[n], set()) for n in group]
            common = sorted(set.intersection(*kinds)) if kinds else []
            for combine in common if site.rule.keeps else [c for c in common if c == "add"]:
                operands = tuple(partial(combine) if n in group else WHOLE for n in range(len(site.operands)))
                out.append(Strategy(operands, (partial(combine),) * len(site.results)))
        return out

    def _parts(self, strategies: Mapping[Operation, Strategy], results: Sequence[Placement],
               ) -> dict[tuple[str, Placement], int]:
        """The parts of weights that a rank holds, and their bytes."""
        parts: dict[tuple[str, Placement], int] = {}

        def visit(value: Value, p: Placement) -> None:
            site = self.sites.maker[value]
            way = self.free.best(value, p)[1]
            if way is None:
                return visit(value, WHOLE) if site.view.name != "weight" else note(site, WHOLE)
            if site.view.name == "weight":
                return note(site, p)
            for v, q in zip(site.operands, way.operands, strict=True):
                visit(v, q)

        def note(site: Site, p: Placement) -> None:
            size = self.costs.nbytes(site.view.results[0])
            parts[site.view.a.name, p] = size if p == WHOLE else size // self.costs.ranks

        for site in self.work:
            for v, p in zip(site.operands, strategies[site.op].operands, strict=True):
                if self.sites.is_free(v):
                    visit(v, p)
        for v, p in zip(self.sites.returned, results, strict=True):
            if self.sites.is_free(v):
                visit(v, p)
        return parts


def _held(number: int) -> int:
    """The key, in what a state has, of where an argument lies that the model holds."""
    return -1 - number


def moved(have: tuple[Placement, ...], p: Placement) -> tuple[Placement, ...]:
    """The placements of a value that was brought to `p`, too; of a whole one each rank has all parts."""
    if p in have or (WHOLE in have and p.kind == "split"):
        return have
    return (p,) if p == WHOLE else tuple(sorted((*have, p), key=lambda q: (q.kind, q.dim, str(q.segments), q.combine)))
