"""What a rule says of an op: its loop indices, and which dims of operands and results each of them runs over.

A *factor* is such an index (Shardy calls it so, too). Ranks that share it have a part of each operand and result that
has it, and the whole of those that have not; where no result has it, it is summed over (or its maximum is taken, ...),
and results are partial. A dim may be several factors, the major one first: of the dim 12 * 64 that a reshape makes of
heads and features, the features are one index within `outer` = 12 segments.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from xcc._mlir import Operation
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.types import TensorType
from xcc.passes.shared.registering import registering
from xcc.passes.xt.graph.rewrite import name_of
from xcc.passes.xt.sharding.placement import WHOLE, Placement, divides, exact, partial, split
from xcc.symbolic import Dim

FAMILIES = ("pointwise", "moves", "indexed", "rows", "products")


@dataclass(frozen=True)
class Side:
    """A factor's place in a value: the dim, and how many segments the factors before it in this dim make of it."""

    dim: int
    outer: Dim = 1


@dataclass(frozen=True)
class Factor:
    """`size` indices. combine: how results that do not have the factor are put together: "add", "max", "min", "mul"."""

    size: Dim
    operands: tuple[Side | None, ...]
    results: tuple[Side | None, ...]
    combine: str = ""


@dataclass(frozen=True)
class Strategy:
    """What an op wants of its operands, and what it makes of them, on every rank."""

    operands: tuple[Placement, ...]
    results: tuple[Placement, ...]
    factor: Factor | None = None

    @property
    def is_whole(self) -> bool:
        return all(p == WHOLE for p in (*self.operands, *self.results))


@dataclass(frozen=True)
class Rule:
    """linear: sets of operands; partial sums of all of a set, the others whole, give partial sums.
    keeps: the one operand is moved only, so that results are as partial as it is, whatever the combination.
    local: changes the attributes to those of a rank's part; by default `shape` is the shape of the first result's part.
    """

    factors: tuple[Factor, ...]
    linear: tuple[tuple[int, ...], ...] = ()
    keeps: bool = False
    local: Callable[[Attrs, OpView, Strategy, int], None] | None = None


@dataclass(frozen=True)
class OpView:
    """An op as rules see it: its attributes, and the types of its operands, those of lists one after the other, and of
    its results. `at` has the number of each operand field, of a list that of its first."""

    name: str
    access: str
    a: Attrs
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    at: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(op: Operation) -> OpView:
        cls = xt.op_class(op)
        assert cls is not None
        at, count = {}, 0
        for name, group in zip(cls.operand_fields, xt.grouped_operands(op), strict=True):
            size = len(group) if isinstance(group, tuple) else group is not None
            if size:
                at[name] = count
            count += size
        return OpView(name_of(op), cls.access, xt.attrs_of(op), tuple(map(TensorType.of, op.operands)),
                      tuple(map(TensorType.of, op.results)), at)

    def factor(self, operands: Mapping[int, Side | int], results: Mapping[int, Side | int], combine: str = "",
               size: Dim | None = None) -> list[Factor]:
        """The factor with these sides, a number being a dim that it is alone; none where sizes are not known to be
        equal."""
        sides = [[_side(given.get(n)) for n in range(len(types))]
                 for given, types in ((operands, self.operands), (results, self.results))]
        if size is None:
            dims = [t.shape[s.dim] for types, own in ((self.operands, sides[0]), (self.results, sides[1]))
                    for t, s in zip(types, own, strict=True) if s is not None]
            if any(d - dims[0] != 0 for d in dims):
                return []
            size = dims[0]
        return [Factor(size, tuple(sides[0]), tuple(sides[1]), combine)]

    def same(self, skip: Sequence[int] = ()) -> list[Factor]:
        """A factor for each dim of the first result but `skip`, which first operand and all results have alike."""
        rank = self.results[0].rank
        return [f for d in range(rank) if d not in skip
                for f in self.factor({0: d}, dict.fromkeys(range(len(self.results)), d))]


def _side(given: Side | int | None) -> Side | None:
    return Side(given) if isinstance(given, int) else given


RULES: dict[str, Callable[[OpView], Rule]] = {}


def rule(*names: str) -> Callable[[Callable[[OpView], Rule]], Callable[[OpView], Rule]]:
    """Registers a function from an op to its rule; a name with two rules is an error."""
    return registering(RULES, names, "rules")


@cache
def _loaded() -> dict[str, Callable[[OpView], Rule]]:
    for family in FAMILIES:
        importlib.import_module(f"xcc.passes.xt.sharding.rules_{family}")
    return RULES


def rule_of(view: OpView) -> Rule:
    """The rule of an op; one without factors for an op that has none: it needs whole operands."""
    rules = _loaded()
    make = rules.get(view.name) or (rules["pointwise"] if view.access == "pointwise" else None)
    return Rule(()) if make is None or not view.results else make(view)


def strategy_of(factor: Factor, times: Dim, ranks: int) -> Strategy | None:
    """What ranks that share `factor`, in `times` segments of it, have of the op; None where it does not divide."""
    if not divides(factor.size, times, ranks):
        return None
    operands = tuple(WHOLE if s is None else split(s.dim, s.outer * times) for s in factor.operands)
    none = partial(factor.combine) if factor.combine else WHOLE
    results = tuple(none if s is None else split(s.dim, s.outer * times) for s in factor.results)
    return Strategy(operands, results, factor)


def same_factor(a: Side | None, placement: Placement) -> Dim | None:
    """In how many segments of a factor at `a` a value that is placed so is split; None where it is not."""
    if a is None or placement.kind != "split" or a.dim != placement.dim:
        return None
    return exact(placement.segments, a.outer)
