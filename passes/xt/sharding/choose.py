"""Which way each op is divided: the cheapest, in seconds, found by a beam search in the order of the program.

A state of the search is which placements the values have that are still read. Two ways to the same state are one from
there on, the cheaper. Values made of weights and constants alone are in no state: each reader takes the part that it
wants, and pays for the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from xcc.dialects.xt.types import TensorType
from xcc.passes.xt.sharding.cost import Costs, best_move
from xcc.passes.xt.sharding.factors import Strategy
from xcc.passes.xt.sharding.free_values import FreeValues, Wanted
from xcc.passes.xt.sharding.placement import ANY, WHOLE, Placement, partial
from xcc.passes.xt.sharding.sites import Site, Sites

__all__ = ["Choice", "Have", "choose", "moved"]

WIDTH = 48          # states that go on
LIGHT = 1e-3        # of all seconds, or of all bytes of weights: an op below it, of whole operands, stays whole

Have = dict[Any, tuple[Placement, ...]]


@dataclass(frozen=True)
class Choice:
    """A strategy for each op that is not free, the placement of each result, the seconds that a run takes, and the
    bytes of each part of a weight that a rank holds."""

    strategies: Mapping[Any, Strategy]
    results: tuple[Placement, ...]
    seconds: float
    arguments: Mapping[Any, Placement] = field(default_factory=dict)
    parts: Mapping[tuple[str, Placement], int] = field(default_factory=dict)

    @property
    def weights(self) -> int:
        """The bytes of weights that a rank holds."""
        return sum(self.parts.values())


@dataclass(eq=False)
class _State:
    """`have` is by the numbers of values."""

    seconds: float
    have: dict[int, tuple[Placement, ...]]
    before: _State | None = None
    chosen: tuple[Site, Strategy] | None = None


@dataclass(frozen=True)
class _Way:
    """A strategy of a site: what it wants of which values, what it makes, and what it takes by itself."""

    strategy: Strategy
    wanted: tuple[tuple[int, Placement], ...]
    made: tuple[tuple[int, tuple[Placement, ...]], ...]
    seconds: float


def choose(sites: Sites, costs: Costs, wanted: Wanted) -> Choice:
    """The cheapest of what the search finds; the same on every machine and for every rank."""
    return _Search(sites, costs, wanted).run()


class _Search:
    def __init__(self, sites: Sites, costs: Costs, wanted: Wanted) -> None:
        self.sites, self.costs, self.wanted = sites, costs, wanted
        self.free = FreeValues(sites, costs, wanted)
        self.work = [s for s in sites.all if not s.free]
        self.seconds = {s: costs.seconds(s.view) for s in self.work}
        self.numbers = {v: n for n, v in enumerate((*sites.block.arguments, *sites.maker))}
        self.sizes = [costs.nbytes(TensorType.of(v)) for v in self.numbers]
        self.last: dict[Any, int] = {}
        for n, site in enumerate(self.work):
            self.last.update(dict.fromkeys(site.operands, n))
        self.last.update(dict.fromkeys(sites.returned, len(self.work)))
        self.light = LIGHT * sum(self.seconds.values()), LIGHT * sites.nbytes_of_weights(costs.nbytes)
        self.partial = self._partials()
        self.moves: dict[Any, tuple[float, tuple[Placement, ...]]] = {}

    def run(self) -> Choice:
        begin: dict[int, tuple[Placement, ...]] = {
            self.numbers[v]: (p,) for v, p in self.wanted.arguments.items() if v in self.last}
        states = [_State(0.0, begin)]
        for n, site in enumerate(self.work):
            states = self._step(n, site, states)
        ends = [self._end(s) for s in states]
        state, results = min(ends, key=lambda e: e[0].seconds)
        strategies: dict[Any, Strategy] = {}
        end: _State | None = state.before
        while end is not None and end.chosen is not None:
            strategies[end.chosen[0].op] = end.chosen[1]
            end = end.before
        paid = sum(self._free_seconds(site, strategies[site.op]) for site in self.work)
        return Choice(strategies, results, state.seconds - paid, self._arguments(state.have),
                      self._parts(strategies, results))

    def _step(self, n: int, site: Site, states: list[_State]) -> list[_State]:
        ways = [self._way(site, s) for s in (*site.strategies, *self._linear(site))]
        heavy = self.seconds[site] > self.light[0] or self._reads_weights(site)
        gone = [self.numbers[v] for v in dict.fromkeys((*site.operands, *site.results)) if self.last.get(v, -1) <= n]
        best: dict[Any, _State] = {}
        for state in states:
            light = not heavy and all(WHOLE in state.have[v] for v, _ in ways[0].wanted)
            for way in ways[:1] if light else ways:
                new = self._applied(site, way, state)
                if new is None:
                    continue
                for v in gone:
                    new.have.pop(v, None)
                key = frozenset(new.have.items())
                if key not in best or new.seconds < best[key].seconds:
                    best[key] = new
        return sorted(best.values(), key=lambda s: s.seconds)[:WIDTH]

    def _way(self, site: Site, s: Strategy) -> _Way:
        ranks = 1 if s.factor is None or s.is_whole else self.costs.ranks
        wanted = tuple((self.numbers[v], p) for v, p in zip(site.operands, s.operands, strict=True)
                       if not self.sites.is_free(v))
        made = tuple((self.numbers[v], (p,)) for v, p in zip(site.results, s.results, strict=True))
        return _Way(s, wanted, made, self.seconds[site] / ranks + self._free_seconds(site, s))

    def _free_seconds(self, site: Site, s: Strategy) -> float:
        return sum(self.free.seconds(v, p) for v, p in zip(site.operands, s.operands, strict=True)
                   if self.sites.is_free(v))

    def _applied(self, site: Site, way: _Way, state: _State) -> _State | None:
        """The state behind `site`, divided so; None where there is no way to what that wants."""
        have, total = dict(state.have), state.seconds + way.seconds
        for v, p in way.wanted:
            total += self._brought(have, v, p)
        if total == inf:
            return None
        have.update(way.made)
        return _State(total, have, state, (site, way.strategy))

    def _brought(self, have: dict[int, tuple[Placement, ...]], v: int, p: Placement) -> float:
        """The seconds to bring a value to `p`, which it has then. What the model holds lies from then on so."""
        if have[v] == (ANY,):
            have[v] = have[_held(v)] = (p,)
            if p.kind == "partial":
                return inf
            return self.wanted.price * self.sizes[v] / (self.costs.ranks if p.kind == "split" else 1)
        seconds, have[v] = self._move(v, have[v], p)
        return seconds

    def _move(self, v: int, have: tuple[Placement, ...], p: Placement) -> tuple[float, tuple[Placement, ...]]:
        """The seconds to bring a value to `p`, and what it has then."""
        key = (v, have, p)
        if key not in self.moves:
            self.moves[key] = best_move(self.costs, have, p, self.sizes[v]).seconds, moved(have, p)
        return self.moves[key]

    def _end(self, state: _State) -> tuple[_State, tuple[Placement, ...]]:
        """The results brought to where they are wanted."""
        have, total, results = dict(state.have), state.seconds, []
        for number, (v, wanted) in enumerate(zip(self.sites.returned, self.wanted.results, strict=True)):
            if number in self.wanted.updates:
                wanted = have.get(_held(self.numbers[self.wanted.updates[number]]), wanted)
            if self.sites.is_free(v):
                p = min(wanted, key=lambda p: self.free.seconds(v, p))
                total += self.free.seconds(v, p)
            else:
                n = self.numbers[v]
                p = min(wanted, key=lambda p: self._brought(dict(have), n, p))
                total += self._brought(have, n, p)
            results.append(p)
        return _State(total, have, state), tuple(results)

    def _arguments(self, have: dict[int, tuple[Placement, ...]]) -> dict[Any, Placement]:
        """Where arguments lie; what nothing uses of what the model holds is whole."""
        return {v: have.get(_held(self.numbers[v]), (WHOLE,))[0] if p == ANY else p
                for v, p in self.wanted.arguments.items()}

    def _reads_weights(self, site: Site) -> bool:
        return any(self.sites.is_free(v) and self.sizes[self.numbers[v]] > self.light[1] for v in site.operands)

    def _partials(self) -> dict[Any, set[str]]:
        """How values may be partial."""
        out: dict[Any, set[str]] = {}
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

    def _parts(self, strategies: Mapping[Any, Strategy], results: Sequence[Placement],
               ) -> dict[tuple[str, Placement], int]:
        """The parts of weights that a rank holds, and their bytes."""
        parts: dict[tuple[str, Placement], int] = {}

        def visit(value: Any, p: Placement) -> None:
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
