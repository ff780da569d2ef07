"""Horizontal fusion: which small kernels share a launch, as they do not depend on each other, whatever ops they hold.

A launch costs about a microsecond of a GPU beside what it does, and a small kernel leaves most of the chip idle. Units
(kernels, and what stays in the block) get a level: one more than the highest of the kernels that they depend on; a size
that a run counts depends on the kernel that counts it. Two kernels of one level cannot depend on each other, and
however many of a level are put together, dependences still go up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.passes.xt.fusion.fusion_cost import FusionCost
from xcc.passes.xt.fusion.fusion_group import FusionGroup
from xcc.passes.xt.graph.op_graph import Graph, Node, element_bytes

KINDS = ("map", "reduce")
"""What shares a launch: kernels whose workgroups need little shared memory and few barriers."""

LONG_ROW = 16384
"""Elements of a row that one workgroup reduces; longer ones take several launches."""


def beside(graph: Graph, groups: Sequence[FusionGroup], copies: Mapping[int, Sequence[Node]], cost: FusionCost,
           most_bytes: float, known: set[str]) -> list[list[FusionGroup]]:
    """The groups, those that share a launch in one list.

    most_bytes: what a kernel that shares may move; known: symbols that have a value before the first launch.
    """
    levels = _levels(graph, groups, copies)
    out: list[list[FusionGroup]] = []
    open_at: dict[int, tuple[list[FusionGroup], set[Value]]] = {}
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


def _levels(graph: Graph, groups: Sequence[FusionGroup], copies: Mapping[int, Sequence[Node]]) -> dict[int, int]:
    """The level of each group, by its id."""
    unit_of = {n.index: g for g in groups for n in g.nodes}
    level: dict[int, int] = {}      # of groups, and of what stays in the block: that of the kernels it is read with

    def producers(unit: Node | FusionGroup) -> list[Node | FusionGroup]:
        nodes = [unit] if isinstance(unit, Node) else [*unit.nodes, *copies.get(id(unit), ())]
        inside = {n.index for n in nodes}
        return [unit_of.get(p.index, p) for n in nodes for p in n.needed if p.index not in inside]

    for n in graph.nodes:
        stack: list[tuple[Node | FusionGroup, bool]] = [(unit_of.get(n.index, n), False)]
        while stack:
            unit, ready = stack.pop()
            if id(unit) in level:
                continue
            before = producers(unit)
            if ready:
                level[id(unit)] = max((level[id(p)] + isinstance(p, FusionGroup) for p in before), default=0)
                continue
            stack.append((unit, True))
            stack += [(p, False) for p in before if id(p) not in level]
    return level


def _buffers(g: FusionGroup, copied: Sequence[Node]) -> set[Value]:
    """The values that the kernel of `g` reads and writes."""
    nodes = (*g.nodes, *copied)
    made = {v for n in nodes for v in n.results}
    inside = {n.index for n in nodes}
    read = {v for n in nodes for v, p in zip(n.operands, n.producers, strict=True)
            if v not in made and not (p is not None and p.kind == "source")}
    written = {v for n in g.nodes for v in n.results
               if any(u.index not in inside and v in u.operands for u in n.users)}
    return read | written


def _bytes(buffers: set[Value], cost: FusionCost) -> int:
    return sum(cost.count(xt.shape_of(v)) * element_bytes(v) for v in buffers)


def _symbols(g: FusionGroup) -> set[str]:
    return {s for n in g.nodes for v in (*n.operands, *n.results) for d in xt.shape_of(v)
            for s in symbolic.symbols_of(d)}
