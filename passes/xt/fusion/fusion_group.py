"""Groups of ops that will be one kernel, by the coordinates that their ops share.

A kernel is evaluated tile by tile, on demand from its outputs, so a group is described by `domain`, the iteration
space, and for groups around reductions by `rows`, the part of it that is left when the reduced axes are gone. Shapes
are compared without dims of size 1, which reshapes inside a kernel may add or drop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xcc.dialects import xt
from xcc.passes.xt.graph.op_graph import Node, dims_without_ones
from xcc.symbolic import Dim

PLACES = 64
"""Coordinates at which a kernel evaluates one of its ops for one element of its result."""


@dataclass
class FusionGroup:
    """Ops that will be one kernel.

    kind: "map" (pointwise and movement only), "reduce", "contract", "window", "composite" (an op that a target keeps
        whole, with the views around it), or "alone".
    domain: iteration space without unit dims; rows: what reductions leave of it; trailing: reduced axes come last.
    aligned: nodes that are evaluated at the group's own coordinates ("full": domain, "row": rows) and so may be
        outputs; the others are evaluated where the aligned ones need them.
    """

    nodes: list[Node]
    kind: str
    domain: tuple[Dim, ...]
    aligned: dict[int, str]
    rows: tuple[Dim, ...] | None = None
    axes: tuple[int, ...] = ()
    trailing: bool = True

    @property
    def indices(self) -> set[int]:
        return {n.index for n in self.nodes}

    def root(self) -> Node:
        """The op that gives the kernel its name: the contraction, window or first reduction, else the last op."""
        roots = [n for n in self.nodes if n.kind in ("contraction", "window", "reduction", "composite")]
        return roots[0] if roots else self.nodes[-1]


def singleton(n: Node) -> FusionGroup:
    """The group of one op."""
    if n.kind == "reduction":
        return _reduction(n)
    kinds = {"pointwise": "map", "movement": "map", "unit_view": "map", "contraction": "contract", "window": "window",
             "composite": "composite"}
    kind = kinds.get(n.kind, "alone") if len(n.results) == 1 or n.kind == "composite" else "alone"
    shape = xt.shape_of(n.operands[0]) if is_stored_pad(n) else n.shape
    return FusionGroup([n], kind, dims_without_ones(shape), {n.index: "full"})


def _reduction(n: Node) -> FusionGroup:
    shape = xt.shape_of(n.operands[0])
    a = xt.attrs_of(n.op)
    reduced = {d % len(shape) for d in (a.axes if hasattr(a, "axes") else (a.axis,))}
    kept = [d for d, size in enumerate(shape) if size != 1]
    axes = tuple(i for i, d in enumerate(kept) if d in reduced)
    rows = tuple(shape[d] for d in kept if d not in reduced)
    trailing = axes == tuple(range(len(kept) - len(axes), len(kept)))
    return FusionGroup([n], "reduce", dims_without_ones(shape), {n.index: "row"}, rows, axes, trailing)


def is_pointwise(n: Node) -> bool:
    """Whether each result element reads its operands at its own coordinates, numpy broadcasting included."""
    return n.kind in ("pointwise", "unit_view") or n.name == "broadcast" or is_stored_pad(n)


def is_stored_pad(n: Node) -> bool:
    """A pad that is no op of its own: its kernel computes the operand and stores it with a border around."""
    return n.name == "pad" and "xcc.stored" in n.op.attributes


def same_row(p: FusionGroup, n: Node, c: FusionGroup, u: Node) -> bool:
    """Whether the op `u` of `c`, of the same domain as `p`, reads at each place what `n` of `p` gives for that row.

    A row of sizes (s,) in a domain (s, s) may line up with either dim: ``add(x, reduce(x))`` reads a column's.
    """
    if p.aligned.get(n.index) != "row" or c.aligned[u.index] != "full":
        return True
    out, shape = xt.shape_of(u.results[0]), n.shape
    places = [d for d, size in enumerate(out) if size != 1]
    used = {len(out) - len(shape) + d for d, size in enumerate(shape) if size != 1}
    return used == {d for i, d in enumerate(places) if i not in p.axes}


def places_fault(ops: Iterable[Node]) -> str:
    """Why an op of a kernel would be evaluated too often: it is evaluated at each place where another op needs it.

    Two ops that move the same value read it at two places, and so does a concatenation with itself: a chain of them
    reads the first value at 2 to the power of its length.
    """
    nodes = {n.index: n for n in ops}
    moves = [n for n in nodes.values() if n.kind == "movement" and not is_pointwise(n)]
    if 1 << len(moves) <= PLACES:
        return ""
    places: dict[int, set[int]] = {}
    for _, n in sorted(nodes.items(), reverse=True):
        mine = {0} if any(u.index not in nodes for u in n.users) else set()
        for u in {u.index: u for u in n.users if u.index in nodes}.values():
            own = u.kind == "movement" and not is_pointwise(u)
            mine |= {hash((u.index, i, at)) for at in places[u.index]
                     for i, v in enumerate(u.operands) if v in n.results} if own else places[u.index]
        if len(mine) > PLACES:
            return f"{n.name} would be evaluated at more than {PLACES} places"
        places[n.index] = mine
    return ""


def downstream(g: FusionGroup, start: list[Node]) -> list[Node]:
    """The nodes `start` of `g` and those of `g` that depend on them."""
    inside, stack = g.indices, list(start)
    found: dict[int, Node] = {}
    while stack:
        n = stack.pop()
        if n.index not in found:
            found[n.index] = n
            stack += [u for u in n.users if u.index in inside]
    return list(found.values())


def joined(p: FusionGroup, c: FusionGroup, aligned: dict[int, str], like: FusionGroup) -> FusionGroup:
    """The ops of `p` and `c`, with the coordinates of `like`."""
    nodes = sorted((*p.nodes, *c.nodes), key=lambda n: n.index)
    return FusionGroup(nodes, like.kind, like.domain, aligned, like.rows, like.axes, like.trailing)


def reaches(group_of: dict[int, FusionGroup], p: FusionGroup, c: FusionGroup) -> bool:
    """Whether something outside both depends on `p` and feeds `c`: merging would make a cycle."""
    last = max(c.indices)
    inside = p.indices | c.indices
    seen: set[int] = set()
    stack = [u for n in p.nodes for u in n.followers if u.index not in inside]
    while stack:
        n = stack.pop()
        if n.index in c.indices:
            return True
        if n.index in seen or n.index in p.indices:
            continue
        unit = group_of.get(n.index)
        members = unit.nodes if unit is not None else [n]
        seen |= {m.index for m in members}
        if members[0].index < last:
            stack += [u for m in members for u in m.followers]
    return False
