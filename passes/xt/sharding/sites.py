"""The ops of a block with their rules, and the ways in which ranks may share each: found by propagation.

What one op can do with a dim, its neighbours' rules carry on, forwards and backwards, until nothing new is found: so a
product knows of the three segments in which a slice far behind it wants its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from xcc._mlir import Block, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.types import TensorType
from xcc.passes.walk import ops_where
from xcc.passes.xt.graph.rewrite import name_of, read_others
from xcc.passes.xt.sharding.cost import Costs
from xcc.passes.xt.sharding.factors import OpView, Rule, Strategy, rule_of, same_factor, strategy_of
from xcc.passes.xt.sharding.placement import WHOLE, Placement

MOST = 12           # ways to split a value that are looked at
MOST_OF_DIM = 4


@dataclass(eq=False)
class Site:
    """An op. `operands` has what its regions use from outside, too, which must be whole. free: made of weights and
    constants alone, so that each rank makes what it wants of it."""

    op: Operation
    view: OpView
    rule: Rule
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    free: bool
    strategies: dict[Strategy, None] = field(default_factory=dict)

    @property
    def whole(self) -> Strategy:
        return Strategy((WHOLE,) * len(self.operands), (WHOLE,) * len(self.results))

    def seconds(self, costs: Costs) -> float:
        """Of the op, not divided. A slice is what its readers read, and attention reads the parts of its keys."""
        if self.view.name == "concatenate" and {name_of(u.owner) for u in self.results[0].uses} == {"attention"}:
            return 0.0
        given = dict.fromkeys(v for v in self.op.operands if isinstance(v.owner, Block) and self.view.name != "slice")
        return costs.seconds(self.view, [TensorType.of(v) for v in given])

    def reads(self, values: Mapping[Value, Value]) -> None:
        """The op reads these values in the place of others, inside its regions, too."""
        changed = {old: new for old, new in values.items() if old != new}
        if changed:
            read_others(self.op, changed)


class Sites:
    """The ops of `block` but its last, in order, and what is known of its values."""

    def __init__(self, block: Block, ranks: int) -> None:
        self.block, self.ranks = block, ranks
        self.all: list[Site] = []
        self.maker: dict[Value, Site] = {}
        self.users: dict[Value, list[Site]] = {}
        self.ways: dict[Value, dict[Placement, None]] = {}
        for op in list(block.operations)[:-1]:
            self._add(op.operation)
        self.returned = list(list(block.operations)[-1].operation.operands)

    def _add(self, op: Operation) -> None:
        view = OpView.of(op)
        inner = captured(op)
        operands = (*op.operands, *(v for v in inner if not self.is_free(v)))
        rule = Rule(()) if inner or len(op.regions) else rule_of(view)
        cls = xt.op_class(op)
        assert cls is not None
        free = not len(op.regions) and not cls.effects and "symbol" not in cls.attribute_fields and \
            cls.access != "control" and all(map(self.is_free, op.operands))
        site = Site(op, view, rule, operands, tuple(op.results), free)
        self.all.append(site)
        for v in site.results:
            self.maker[v] = site
        for v in dict.fromkeys(operands):
            self.users.setdefault(v, []).append(site)

    def is_free(self, value: Value) -> bool:
        return value in self.maker and self.maker[value].free

    def propagate(self, more: Iterable[tuple[Value, Placement]] = ()) -> None:
        """Fills in the sites' strategies, from what each op can do by itself, and the placements `more` of values."""
        work: list[tuple[Value, Placement]] = []
        for site in self.all:
            for factor in site.rule.factors:
                s = strategy_of(factor, 1, self.ranks)
                if s is not None:
                    self._enter(site, s, work)
        for value, placement in more:
            self._note(value, placement, work)
        while work:
            value, placement = work.pop()
            sites = self.users.get(value, []) + ([self.maker[value]] if value in self.maker else [])
            for site in sites:
                for s in self._carried(site, value, placement):
                    self._enter(site, s, work)
        for site in self.all:
            site.strategies = {site.whole: None, **site.strategies}

    def _carried(self, site: Site, value: Value, placement: Placement) -> list[Strategy]:
        """What `site` can do when `value` is split so."""
        out = []
        for factor in site.rule.factors:
            sides = [s for v, s in zip((*site.operands, *site.results), (*factor.operands, *factor.results),
                                       strict=False) if v == value]
            for side in sides:
                times = same_factor(side, placement)
                s = None if times is None else strategy_of(factor, times, self.ranks)
                if s is not None:
                    out.append(s)
        return out

    def _enter(self, site: Site, s: Strategy, work: list[tuple[Value, Placement]]) -> None:
        pairs = list(zip((*site.operands, *site.results), (*s.operands, *s.results), strict=True))
        if s in site.strategies or not all(self._room(v, p) for v, p in pairs):
            return
        site.strategies[s] = None
        for v, p in pairs:
            self._note(v, p, work)

    def _room(self, value: Value, p: Placement) -> bool:
        """Whether `p` is known of `value`, or may be looked at, too."""
        known = self.ways.get(value, {})
        return p.kind != "split" or p in known or p.segments == 1 or \
            len(known) < MOST and sum(k.dim == p.dim for k in known) < MOST_OF_DIM

    def _note(self, value: Value, p: Placement, work: list[tuple[Value, Placement]]) -> None:
        known = self.ways.setdefault(value, {})
        if p.kind == "split" and p not in known:
            known[p] = None
            work.append((value, p))

    def nbytes_of_weights(self, nbytes: Callable[[TensorType], int]) -> int:
        """The bytes of all weights that are read by the ops themselves."""
        return sum({s.view.a.name: nbytes(s.view.results[0]) for s in self.all if s.view.name == "weight"}.values())

    def nbytes_inside(self, nbytes: Callable[[TensorType], int]) -> int:
        """Those of weights that regions alone read, which each rank holds whole."""
        return sum(map(nbytes, self.inside().values()))

    def inside(self) -> dict[str, TensorType]:
        """The weights that are read in regions of ops alone."""
        found = [op for s in self.all for op in ops_where(s.op, lambda x: x.name == "xt.weight") if op != s.op]
        own = {s.view.a.name for s in self.all if s.view.name == "weight"}
        return {name: TensorType.of(op.results[0]) for op in found if (name := xt.attrs_of(op).name) not in own}


def captured(op: Operation) -> list[Value]:
    """The values from outside that the regions of `op` use."""
    inside: set[Value] = set()
    used: dict[Value, None] = {}

    def visit(block: Block) -> None:
        inside.update(block.arguments)
        for inner in block.operations:
            used.update(dict.fromkeys(inner.operation.operands))
            inside.update(inner.operation.results)
            for region in inner.operation.regions:
                for b in region.blocks:
                    visit(b)

    for region in op.regions:
        for block in region.blocks:
            visit(block)
    return [v for v in used if v not in inside]
