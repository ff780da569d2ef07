"""Which kernels share a launch: small ones that do not depend on each other, whatever ops they hold.

A launch costs about a microsecond of a GPU beside what it does, and a small kernel leaves most of the chip idle. Units
(kernels, and what stays in the block) get a level: one more than the highest of the kernels that they depend on; a size
that a run counts depends on the kernel that counts it. Two kernels of one level cannot depend on each other, and
however many of a level are put together, dependences still go up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc import symbolic
from xcc.dialects import xt
from xcc.passes.xt.fusion_cost import FusionCost
from xcc.passes.xt.fusion_group import FusionGroup
from xcc.passes.xt.op_graph import Graph, Node, element_bytes

__all__ = ["beside"]

KINDS = ("map", "reduce")
"""What shares a launch: kernels whose workgroups need little shared memory and few barriers."""

LONG_ROW = 16384
"""Elements of a row that one workgroup reduces; longer ones take several launches."""


def beside(graph: Graph, groups: Sequence[FusionGroup], copies: Mapping[int, Sequence[Node]], cost: FusionCost,
           most_bytes: float, known: set[str]) -> list[list[FusionGroup]]:
    """The groups, those that share a launch in one list.

    most_bytes: what a kernel that shares may move; known: symbols that have a value before the first launch.
    """
    levels = _levels(graph, groups, copies, _counting(graph, known))
    out: list[list[FusionGroup]] = []
    open_at: dict[int, tuple[list[FusionGroup], set[Any]]] = {}
    for g in sorted(groups, key=lambda g: min(g.indices)):
        buffers = _buffers(g, copies.get(id(g), ()))
        if g.kind not in KINDS or _row(g, cost) > LONG_ROW or _bytes(buffers, cost) > most_bytes \
                or not _symbols(g) <= known:
            out.append([g])
            continue
        level = levels[id(g)]
        if level in open_at and len(open_at[level][1] | buffers) <= cost.limits.max_buffers:
            open_at[level][0].append(g)
            open_at[level][1].update(buffers)
            continue
        open_at[level] = ([g], buffers)
        out.append(open_at[level][0])
    return out


def _row(g: FusionGroup, cost: FusionCost) -> int:
    """Elements that a result of the reductions of `g` is made of."""
    return cost.count(g.domain) // max(1, cost.count(g.rows or ())) if g.kind == "reduce" else 1


def _counting(graph: Graph, known: set[str]) -> dict[int, list[Node]]:
    """The nodes that make the sizes that each node computes with, by its index: those that a run counts."""
    makers: dict[str, Node] = {}
    out: dict[int, list[Node]] = {}
    for n in graph.nodes:
        out[n.index] = [makers[s] for s in sorted(_computed_with(n.op)) if s in makers]
        for s in {s for v in n.results for d in xt.shape_of(v) for s in symbolic.symbols_of(d)} - known:
            makers.setdefault(s, n)
    return out


def _computed_with(op: Any) -> set[str]:
    """The symbols in the attributes of `op`."""
    if xt.op_class(op) is None:
        return set()
    values = [v for v in vars(xt.attrs_of(op)).values() if isinstance(v, tuple)]
    return {s for v in values for d in v if isinstance(d, symbolic.Expr) for s in symbolic.symbols_of(d)}


def _levels(graph: Graph, groups: Sequence[FusionGroup], copies: Mapping[int, Sequence[Node]],
            counting: Mapping[int, Sequence[Node]]) -> dict[int, int]:
    """The level of each group, by its id."""
    unit_of: dict[int, FusionGroup] = {n.index: g for g in groups for n in g.nodes}
    level: dict[int, int] = {}
    waits: dict[int, int] = {}

    def needed(n: Node) -> list[Node]:
        return [*(p for p in n.producers if p is not None), *counting.get(n.index, ())]

    def behind(n: Node) -> int:
        """The level from which what `n` makes can be read."""
        g = unit_of.get(n.index)
        if g is not None:
            return group_level(g) + 1
        if n.index not in waits:
            waits[n.index] = max(map(behind, needed(n)), default=0)
        return waits[n.index]

    def group_level(g: FusionGroup) -> int:
        if id(g) not in level:
            inside = {n.index for n in (*g.nodes, *copies.get(id(g), ()))}
            level[id(g)] = max((behind(p) for n in (*g.nodes, *copies.get(id(g), ())) for p in needed(n)
                                if p.index not in inside), default=0)
        return level[id(g)]

    for n in graph.nodes:       # in order, so that no chain of calls is long
        behind(n)
    return level


def _buffers(g: FusionGroup, copied: Sequence[Node]) -> set[Any]:
    """The values that the kernel of `g` reads and writes."""
    nodes = (*g.nodes, *copied)
    made = {v for n in nodes for v in n.results}
    inside = {n.index for n in nodes}
    read = {v for n in nodes for v, p in zip(n.operands, n.producers, strict=True)
            if v not in made and not (p is not None and p.kind == "source")}
    written = {v for n in g.nodes for v in n.results
               if any(u.index not in inside and v in u.operands for u in n.users)}
    return read | written


def _bytes(buffers: set[Any], cost: FusionCost) -> int:
    return sum(cost.count(xt.shape_of(v)) * element_bytes(v) for v in buffers)


def _symbols(g: FusionGroup) -> set[str]:
    return {s for n in g.nodes for v in (*n.operands, *n.results) for d in xt.shape_of(v)
            for s in symbolic.symbols_of(d)}
