"""What is given of a function that is divided, and what values cost that are made of weights and constants alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from xcc._mlir import Value
from xcc.passes.xt.sharding.cost import Costs
from xcc.passes.xt.sharding.factors import Strategy
from xcc.passes.xt.sharding.placement import WHOLE, Placement
from xcc.passes.xt.sharding.sites import Site, Sites


@dataclass(frozen=True)
class Wanted:
    """What is given: placements of arguments, those from which results may be returned, and those weights may have.

    price: seconds for a byte of a weight, and of what the model holds from run to run, on a rank. updates: for results,
    by number, the argument where they lie.
    """

    arguments: Mapping[Value, Placement]
    results: Sequence[Sequence[Placement]]
    weights: Mapping[str, Placement] = field(default_factory=dict)
    price: float = 0.0
    updates: Mapping[int, Value] = field(default_factory=dict)


class FreeValues:
    """What it costs that a rank has a value, in a placement, that is made of weights and constants alone."""

    def __init__(self, sites: Sites, costs: Costs, wanted: Wanted) -> None:
        self.sites, self.costs, self.wanted = sites, costs, wanted
        self.known: dict[tuple[Value, Placement], tuple[float, Strategy | None]] = {}

    def seconds(self, value: Value, p: Placement) -> float:
        return self.best(value, p)[0]

    def best(self, value: Value, p: Placement) -> tuple[float, Strategy | None]:
        """The cost, and the way in which the op that makes `value` makes it so; None where it makes the whole, of
        which each rank takes its part."""
        key = (value, p)
        if key not in self.known:
            self.known[key] = (inf, None) if p.kind == "partial" else self._best(self.sites.maker[value], value, p)
        return self.known[key]

    def _best(self, site: Site, value: Value, p: Placement) -> tuple[float, Strategy | None]:
        number = site.results.index(value)
        if site.view.name == "weight":
            return self._weight(site, p)
        found: list[tuple[float, Strategy | None]] = []
        for s in site.strategies:
            if s.results[number] == p:
                found.append((sum(self.seconds(v, q) for v, q in zip(site.operands, s.operands, strict=True)), s))
        if p != WHOLE:
            found.append((self.seconds(value, WHOLE), None))
        return min(found, key=lambda f: f[0])

    def _weight(self, site: Site, p: Placement) -> tuple[float, Strategy | None]:
        nbytes = self.costs.nbytes(site.view.results[0])
        fixed = self.wanted.weights.get(site.view.a.name)
        against = 1e3 if fixed is not None and fixed != p else 0.0
        whole = self.wanted.price * nbytes + against
        ways = [s for s in site.strategies if s.results[0] == p]
        if p == WHOLE or not ways:
            return whole, site.whole if p == WHOLE else None
        return self.wanted.price * nbytes / self.costs.ranks + against, ways[0]
