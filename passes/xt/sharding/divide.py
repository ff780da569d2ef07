"""Makes the program of one rank of a block, as it was chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xcc._mlir import Operation, Value
from xcc.diagnostics import CompilerBug
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.types import TensorType
from xcc.passes.xt.graph.rewrite import at
from xcc.passes.xt.sharding.choose import Choice, Have, moved
from xcc.passes.xt.sharding.cost import Costs, best_move
from xcc.passes.xt.sharding.factors import Strategy
from xcc.passes.xt.sharding.free_values import FreeValues
from xcc.passes.xt.sharding.moves import Mover, part_of
from xcc.passes.xt.sharding.placement import WHOLE, Placement, local_shape
from xcc.passes.xt.sharding.report import Report, named
from xcc.passes.xt.sharding.sites import Site, Sites
from xcc.weights import WeightStore

SHAPED = ("broadcast", "iota", "reshape", "resize")
"""Ops whose attribute `shape` is that of their result."""


class Divider:
    """`forms` has for each value its arrays on this rank, `have` the placements that the search knew of."""

    def __init__(self, sites: Sites, choice: Choice, free: FreeValues, costs: Costs, mover: Mover,
                 weights: WeightStore) -> None:
        self.sites, self.choice, self.free, self.costs = sites, choice, free, costs
        self.mover, self.weights = mover, weights
        self.forms: dict[Value, dict[Placement, Value]] = {}
        self.have: Have = {}
        self.parts: dict[tuple[str, Placement], str] = {}
        self.replaced: list[Operation] = []
        self.reports: list[Report] = []
        self.types = {v: TensorType.of(v) for v in (*sites.block.arguments, *sites.maker)}

    def run(self) -> None:
        """Rewrites the block; its last op gets what is returned."""
        for v in self.sites.block.arguments:
            p = self.choice.arguments[v]
            self.forms[v], self.have[v] = {p: v}, (p,)
            if p != WHOLE:
                v.set_type(self._local_type(v, p).mlir())
        for site in self.sites.all:
            if not site.free:
                self._site(site, self.choice.strategies[site.op])
        end = list(self.sites.block.operations)[-1].operation
        with at(end):
            values = [self.form(v, p) for v, p in zip(self.sites.returned, self.choice.results, strict=True)]
        for n, v in enumerate(values):
            end.operands[n] = v
        for op in reversed(self.replaced):
            op.erase()

    def _local_type(self, value: Value, p: Placement) -> TensorType:
        t = self.types[value]
        return t.with_shape(local_shape(t.shape, p, self.mover.ranks))

    def _site(self, site: Site, s: Strategy) -> None:
        with at(site.op):
            operands = [self.form(v, p) for v, p in zip(site.operands, s.operands, strict=True)]
            if s.is_whole:
                site.reads(dict(zip(site.operands, operands, strict=True)))
                results = site.results
            else:
                results = self._built(site, s, operands)
                self.replaced.append(site.op)
        for v, new, p in zip(site.results, results, s.results, strict=True):
            self.forms[v], self.have[v] = {p: new}, (p,)

    def _built(self, site: Site, s: Strategy, operands: Sequence[Value]) -> tuple[Value, ...]:
        """The op on this rank's parts."""
        cls, a = xt.op_class(site.op), Attrs(**vars(xt.attrs_of(site.op)))
        assert cls is not None
        if site.view.name in SHAPED:
            a.shape = local_shape(site.view.results[0].shape, s.results[0], self.mover.ranks)
        if site.rule.local is not None:
            site.rule.local(a, site.view, s, self.mover.ranks)
        rest, groups = list(operands), []
        for group in xt.grouped_operands(site.op):
            size = len(group) if isinstance(group, tuple) else int(group is not None)
            own, rest = rest[:size], rest[size:]
            groups.append(tuple(own) if isinstance(group, tuple) else own[0] if own else None)
        out = xt.build(cls, *groups, **vars(a))
        out = out if isinstance(out, tuple) else (out,)
        for old, new, p in zip(site.results, out, s.results, strict=True):
            want, got = self._local_type(old, p), TensorType.of(new)
            if not xt.agree(want, got):
                raise CompilerBug(f"shard: {site.op.name} at {site.op.location}: a rank's part is {got}, not {want}")
        for name in list(site.op.attributes):
            if name not in cls.attribute_fields and name != "operandSegmentSizes":
                out[0].owner.operation.attributes[name] = site.op.attributes[name]
        return tuple(out)

    def form(self, value: Value, p: Placement) -> Value:
        """`value` in placement `p`, built here where it is not there yet."""
        if self.sites.is_free(value):
            return self._free(value, p)
        forms = self.forms[value]
        if p not in forms:
            t = self.types[value]
            move = best_move(self.costs, self.have[value], p, self.costs.nbytes(t))
            forms[p] = self.mover.moved(move.kind, forms[move.source], move.source, p, t.shape)
            if move.kind != "slice":
                self.reports.append(Report(named(value), move.kind, f"{move.source} -> {p}", self.costs.nbytes(t)))
        self.have[value] = moved(self.have[value], p)
        return forms[p]

    def _free(self, value: Value, p: Placement) -> Value:
        """A value of weights and constants."""
        if p == WHOLE:
            return value
        forms = self.forms.setdefault(value, {})
        if p not in forms:
            site, way = self.sites.maker[value], self.free.best(value, p)[1]
            if way is None:
                forms[p] = self.mover.part(value, p)
            elif not site.operands:
                forms[p] = self._source(site, p, way)
            else:
                operands = [self._free(v, q) for v, q in zip(site.operands, way.operands, strict=True)]
                forms[p] = self._built(site, way, operands)[site.results.index(value)]
        return forms[p]

    def _source(self, site: Site, p: Placement, way: Strategy) -> Value:
        """This rank's part of a weight or a constant."""
        name, t = site.view.name, self._local_type(site.results[0], p)
        if name == "constant":
            whole = np.asarray(xt.attrs_of(site.op).value)
            return xt.constant(np.ascontiguousarray(part_of(whole, p, self.mover.ranks, self.mover.place)), t.dtype)
        if name != "weight":
            return self._built(site, way, ())[0]
        key = xt.attrs_of(site.op).name
        if (key, p) not in self.parts:
            store, ranks, place = self.weights, self.mover.ranks, self.mover.place
            self.parts[key, p] = store.add(f"{key}.{self.mover.axis}", lambda: part_of(store[key], p, ranks, place))
        return xt.weight(self.parts[key, p], t.shape, t.dtype)
