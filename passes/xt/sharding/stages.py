"""Pipeline stages: the ops of a function in as many runs of neighbours as there are ranks, of about equal seconds.

    rank 0: %h = f(%x); permute %h to place 1; %y = broadcast from place 1
    rank 1: %h = permute from place 0; %y = g(%h); broadcast %y from place 1

All ranks of a group reach the same exchanges in the same order. Who sends nothing gives zeros, and who gets nothing
does not look at what it gets. Of a batch in parts (micro_batches.py) each has the ops once; all are cut alike, and a
stage sends on what it has made of one part before it begins the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from xcc._mlir import Value
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.passes.xt.graph.rewrite import at
from xcc.passes.xt.sharding.cost import Costs
from xcc.passes.xt.sharding.moves import Mover
from xcc.passes.xt.sharding.report import AxisReport, Report, exchanges, head, named
from xcc.passes.xt.sharding.sites import Site, Sites
from xcc.symbolic import symbols_of

MOST = 300          # places between ops that are looked at: those that the fewest bytes cross

Cuts = tuple[float, int, tuple[int, ...]]
"""The seconds of the slowest stage but the last, the bytes between stages, where stages begin."""


class Stages:
    """`cuts` are the numbers of the ops, of those of a part that are not free, with which stages after the first
    begin."""

    def __init__(self, sites: Sites, costs: Costs, mover: Mover, parts: int = 1,
                 joins: int = 0) -> None:
        """`parts`: how many times the ops are there; behind them stand `joins` that put their results together."""
        self.sites, self.costs, self.mover, self.parts = sites, costs, mover, parts
        self.work = [s for s in sites.all if not s.free]
        self.each = (len(self.work) - joins) // parts
        self._check()
        self.made = {v: n for n, s in enumerate(self.work) for v in s.results}
        self.used: dict[Value, int] = {}
        for n, s in enumerate(self.work):
            self.used.update(dict.fromkeys(s.operands, n))
        self.ends = list(accumulate((s.seconds(costs) for s in self.work), initial=0.0))
        self.cuts = self._cut()
        self.seconds = self._seconds()
        self.reports: list[Report] = []
        self.forms: dict[Value, Value] = {}

    def _check(self) -> None:
        known = {s for v in self.sites.block.arguments for d in xt.shape_of(v) for s in symbols_of(d)}
        known |= {s for v in self.sites.block.arguments for s in xt.value_symbols(v)}
        for site in self.work:
            for v in site.results:
                new = {s for d in xt.shape_of(v) for s in symbols_of(d)} - known
                if new:
                    raise UserError(f"axis {self.mover.axis}: {named(v)} gives a size, '{min(new)}', that one stage "
                                    "alone would know: a pipeline needs sizes that inputs give")

    def _crossing(self, place: int) -> list[Value]:
        """The values of a part that are made before the op of this number and used from it on, in order."""
        begin = (place - 1) // self.each * self.each
        return [v for v, n in self.made.items() if begin <= n < place <= self.used.get(v, -1)]

    def _bytes(self, values: Sequence[Value]) -> int:
        return sum(self.costs.nbytes(TensorType.of(v)) for v in values)

    def _cut(self) -> list[int]:
        """The places whose slowest stage is the fastest, of these those that the fewest bytes cross."""
        sizes = self._crossing_bytes()
        places = sorted(sorted(range(1, self.each), key=lambda p: (sizes[p], p))[:MOST])
        stages = self.mover.ranks
        if len(places) < stages - 1:
            raise UserError(f"axis {self.mover.axis}: {self.each} ops do not make {stages} stages")
        best: list[dict[int, Cuts]] = [{p: (self.ends[p], sizes[p], (p,)) for p in places}]
        for _ in range(stages - 2):
            step: dict[int, Cuts] = {}
            for p in places:
                ways = [(max(slowest, self._stage(q, p, sizes[q])), total + sizes[p], (*cuts, p))
                        for q, (slowest, total, cuts) in best[-1].items() if q < p]
                if ways:
                    step[p] = min(ways)
            best.append(step)
        last = self.each
        return list(min((max(slowest, self._stage(p, last, sizes[p])), total, cuts)
                        for p, (slowest, total, cuts) in best[-1].items())[2])

    def _stage(self, begin: int, end: int, nbytes: int) -> float:
        """The seconds of a stage, with the bytes that come in: their latency a pipeline hides."""
        return self.ends[end] - self.ends[begin] + nbytes / self.costs.link

    def _crossing_bytes(self) -> list[int]:
        """The bytes that cross each place of the first part."""
        change = [0] * (self.each + 2)
        for v, n in self.made.items():
            last = min(self.used.get(v, -1), self.each)
            if n < self.each and last > n:
                size = self._bytes([v])
                change[n + 1] += size
                change[last + 1] -= size
        return list(accumulate(change))

    def stage_of(self, site: int) -> int:
        """Of the op of this number; what joins results belongs to the last one."""
        return bisect_right(self.cuts, site % self.each) if site < self.each * self.parts else len(self.cuts)

    def run(self) -> None:
        """Leaves the ops of this rank's stage, and the exchanges."""
        own = self.mover.place
        gone: list[Site] = []
        for n, site in enumerate(self.work):
            part, place = divmod(n, self.each)
            for boundary in (b for b, cut in enumerate(self.cuts) if cut == place and part < self.parts):
                with at(site.op):
                    self._exchange(boundary, n)
            if self.stage_of(n) == own or site.view.name == "require":
                site.reads({v: self.forms[v] for v in site.operands if v in self.forms})
            else:
                gone.append(site)
        self._end()
        for site in reversed(gone):
            site.op.erase()

    def _exchange(self, boundary: int, place: int) -> None:
        """Sends on what later stages use of what is made before the op of number `place`."""
        own = self.mover.place
        for v in self._crossing(place):
            source = self.forms.get(v, v) if own == boundary else _zeros(v)
            got = xt.permute(source, axes=(self.mover.axis,), pairs=(boundary, boundary + 1))
            self.reports.append(Report(named(v), "permute", f"stage {boundary} -> {boundary + 1}", self._bytes([v])))
            if own == boundary + 1:
                self.forms[v] = got

    def _end(self) -> None:
        """Gives each result to all ranks; what the model holds stays where it is used."""
        end = list(self.sites.block.operations)[-1].operation
        main = self.sites.block.owner.operation
        held, updated = xt.initial_weights(main), xt.updated_arguments(main)
        values: dict[Value, Value] = {}
        for n, v in enumerate(self.sites.returned):
            if v not in self.made:
                continue
            root = self.stage_of(self.made[v])
            argument = updated[n]
            if argument is not None and argument in held:
                end.operands[n] = v if root == self.mover.place else self.sites.block.arguments[argument]
                continue
            if v not in values:
                with at(end):
                    source = v if root == self.mover.place else _zeros(v)
                    values[v] = xt.collective_broadcast(source, axes=(self.mover.axis,), root=root)
                self.reports.append(Report(named(v), "collective_broadcast", f"stage {root} -> all", self._bytes([v])))
            end.operands[n] = values[v]

    def report(self) -> AxisReport:
        """What the stages are."""
        ends = [*self.cuts, self.each]
        parts = [self.ends[b] - self.ends[a] for a, b in zip([0, *self.cuts], ends, strict=True)]
        stages = ", ".join(f"{s * 1e6:.0f}" for s in parts)
        turns = f", {self.parts} micro-batches" if self.parts > 1 else ""
        lines = [f"{head(self.mover, self.reports)}, stages of {stages} us predicted{turns}", *exchanges(self.reports)]
        return AxisReport(tuple(lines), tuple(self.reports), seconds=self.seconds)

    def _seconds(self) -> float:
        """Of a run: a part goes through all stages, and each of the others comes behind it by the slowest one."""
        ends = [0, *self.cuts, self.each]
        parts = [self._stage(a, b, self._bytes(self._crossing(a)) if a else 0)
                 for a, b in zip(ends[:-1], ends[1:], strict=True)]
        latency = self.costs.collective("permute", 0)
        return sum(parts) + latency * len(self.cuts) + (self.parts - 1) * (max(parts) + latency)


def _zeros(v: Value) -> Value:
    t = TensorType.of(v)
    zero = xt.constant(np.zeros((), numpy_dtype(t.dtype)))
    return zero if not t.rank else xt.broadcast(zero, shape=t.shape)

