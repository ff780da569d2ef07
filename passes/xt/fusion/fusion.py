"""Groups the ops of one block into kernels, in the order in which fusion pays.

1. Contractions and windows take the pointwise ops behind them (bias, activation, residual), composites a transpose;
   whatever makes the input of a stored pad takes the pad.
2. Reductions over the same rows come together with the pointwise ops between and behind them: a softmax or a layer
   norm is one kernel. All give back what at their end only makes the result larger (a conversion to wider elements)
   and what the readers can compute themselves. Short rows of a product's result are reduced in its kernel.
3. What is left joins its consumers, as producer of a reduction or in a pointwise kernel, several outputs allowed.
4. A cheap producer with several consumers is copied into each of them when that moves fewer bytes than storing it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from xcc.passes.xt.fusion.fusion_cost import ByCost, Estimated
from xcc.passes.xt.fusion.fusion_group import FusionGroup, is_pointwise, is_stored_pad, places_fault, reaches, singleton
from xcc.passes.xt.fusion.fusion_rules import FusionRules
from xcc.passes.xt.graph.op_graph import Graph, Node

Copied = dict[int, dict[int, FusionGroup]]
"""By the index of a node that was copied, the groups that need their copy, by identity."""


@dataclass
class Fusion:
    """The result: groups, and for each the nodes copied into it from groups that are gone."""

    groups: list[FusionGroup]
    copies: dict[int, list[Node]] = field(default_factory=dict)
    reasons: list[tuple[Node, Node, str]] = field(default_factory=list)

    def copied_into(self, g: FusionGroup) -> list[Node]:
        return self.copies.get(id(g), [])


def fuse(graph: Graph, rules: FusionRules, *, explain: bool = False) -> Fusion:
    """The kernels of `graph`; with `explain`, also why each pair of dependent kernels was not made one."""
    f = _Fuser(graph, rules)
    f.epilogues()
    if rules.limits.launch:
        f.columns()
    f.rows()
    f.reduced_products()
    f.retreat()
    f.producers(most=1)
    f.producers()
    f.producers()
    out = Fusion([])
    f.duplicates(out)
    f.release_views(out)
    out.groups = f.groups()
    if explain:
        f.explain(out)
    return out


class _Fuser:
    def __init__(self, graph: Graph, rules: FusionRules) -> None:
        self.graph, self.rules = graph, rules
        self.group_of: dict[int, FusionGroup] = {
            n.index: singleton(n) for n in graph.nodes if n.kind not in ("host", "source", "view")}

    def groups(self) -> list[FusionGroup]:
        return list({id(g): g for g in self.group_of.values()}.values())

    def _join(self, p: FusionGroup, c: FusionGroup) -> bool:
        if p is c:
            return True
        merged = self.rules.merge(p, c)
        if isinstance(merged, Estimated):
            merged = self._with_producers(p, c) or merged
        if isinstance(merged, str) or reaches(self.group_of, p, c):
            return False
        self.group_of.update(dict.fromkeys(merged.indices, merged))
        return True

    def _with_producers(self, p: FusionGroup, c: FusionGroup) -> FusionGroup | None:
        """The kernel of `p`, `c` and all that only `p` needs, where that costs less than its parts.

        With transposes on both sides of a gather, say, rows are read as they lie, and with one of them they are not.
        """
        parts, inside = [p.nodes], {id(p)}
        left = self._producers_of(p)
        while left:
            q = left.pop()
            if id(q) in inside or q.kind != "map" or any(id(g) not in inside for g in self._consumers(q)):
                continue
            joined = self.rules.joined(q, p)
            if not isinstance(joined, str):
                p = joined
                inside.add(id(q))
                parts.append(q.nodes)
                left += self._producers_of(q)
        merged = self.rules.joined(p, c) if len(parts) > 1 else ""
        return None if isinstance(merged, str) or self.rules.cost.fault([*parts, c.nodes]) else merged

    def _producers(self, n: Node) -> list[FusionGroup]:
        """The groups that `n` reads, the latest first."""
        found = {p.index: self.group_of[p.index] for p in n.producers if p is not None and p.index in self.group_of}
        groups = {id(found[i]): found[i] for i in sorted(found, reverse=True)}
        return [g for g in groups.values() if g is not self.group_of.get(n.index)]

    def _consumers(self, g: FusionGroup) -> list[FusionGroup]:
        """The groups that read `g`, in order."""
        users = sorted(u.index for n in g.nodes for u in n.users)
        groups = {id(self.group_of[i]): self.group_of[i] for i in users if i in self.group_of}
        return [c for c in groups.values() if c is not g]

    def epilogues(self) -> None:
        for n in self.graph.nodes:
            if n.index in self.group_of and (is_pointwise(n) or n.name == "transpose"):
                for p in self._producers(n):
                    roots = ("contract", "window", "composite")
                    if (p.kind in roots or is_stored_pad(n)) and self._join(p, self.group_of[n.index]):
                        break

    def retreat(self) -> None:
        """Ops at the end of an epilogue leave it when fewer bytes are stored without them."""
        for g in self.groups():
            if g.kind not in ("contract", "window", "reduce"):
                continue
            rest, gone, best, least = g, None, [g], self.rules.cost.stored_bytes(g)
            for n in reversed(g.nodes):
                if n.kind != "pointwise" or any(u.index in rest.indices for u in n.users):
                    continue
                tail = singleton(n) if gone is None else self._with(n, gone)
                if tail is None or not self._is_read(tail):
                    break
                gone = tail
                rest = replace(rest, nodes=[m for m in rest.nodes if m is not n],
                               aligned={i: a for i, a in rest.aligned.items() if i != n.index})
                if self.rules.cost.stored_bytes(rest) < least:
                    best, least = [rest, gone], self.rules.cost.stored_bytes(rest)
            for part in best:
                self.group_of.update(dict.fromkeys(part.indices, part))

    def _with(self, n: Node, tail: FusionGroup) -> FusionGroup | None:
        """`tail` with `n` in front; None when they are not one kernel."""
        merged = self.rules.merge(singleton(n), tail, duplicate=True)
        return None if isinstance(merged, str) else merged

    def _is_read(self, tail: FusionGroup) -> bool:
        """Whether every reader of `tail` can compute it."""
        users = [u.index for n in tail.nodes for u in n.users if u.index not in tail.indices]
        readers = {id(c): c for i in users if (c := self.group_of.get(i)) is not None}
        return all(i in self.group_of for i in users) and not any(
            isinstance(self.rules.merge(tail, c, duplicate=True), str) for c in readers.values())

    def rows(self) -> None:
        for n in self.graph.nodes:
            if n.index in self.group_of:
                for p in self._producers(n):
                    if p.kind == "reduce":
                        self._join(p, self.group_of[n.index])

    def reduced_products(self) -> None:
        for n in self.graph.nodes:
            g = self.group_of.get(n.index)
            if g is not None and g.kind == "reduce":
                for p in self._producers_of(g):
                    if p.kind == "contract" and self._join(p, g):
                        break

    def columns(self) -> None:
        """Joins reductions of the same columns that do not need each other."""
        sums = [g.root().index for g in self.groups() if g.kind == "reduce" and not g.trailing]
        for first, second in itertools.combinations(sums, 2):
            p, c = self.group_of[first], self.group_of[second]
            merged = "" if p is c else self.rules.columns(p, c)
            if not isinstance(merged, str) and not self._needs_other(p, c) and not self._needs_other(c, p):
                self.group_of.update(dict.fromkeys(merged.indices, merged))

    def _needs_other(self, p: FusionGroup, c: FusionGroup) -> bool:
        """Whether `c` needs a result of `p`."""
        return any(u.index in c.indices for n in p.nodes for u in n.users) or reaches(self.group_of, p, c)

    def _producers_of(self, g: FusionGroup) -> list[FusionGroup]:
        """The groups that `g` reads."""
        found = {id(p): p for n in g.nodes for p in self._producers(n)}
        return [p for p in found.values() if p is not g]

    def producers(self, most: int = 1 << 30) -> None:
        """Joins pointwise groups that have at most `most` consumers to these."""
        for n in reversed(self.graph.nodes):
            if n.index not in self.group_of or self.group_of[n.index].kind != "map":
                continue
            group = self.group_of[n.index]
            consumers = self._consumers(group)
            if len(consumers) > most:
                continue
            if len(consumers) > 1 and not self.rules.cost.copy_pays(group, len(consumers), joined=True):
                continue
            for c in consumers:
                if self.group_of.get(c.nodes[0].index) is c:
                    self._join(self.group_of[n.index], c)

    def duplicates(self, out: Fusion) -> None:
        """Pointwise groups that are cheaper to compute in each group that reads them, or, where launches have a price,
        in which a copy reads them."""
        copied: Copied = {}
        for n in reversed(self.graph.nodes):
            p = self.group_of.get(n.index)
            if p is None or p.kind != "map" or n is not p.nodes[-1] or p.nodes[0].kind == "host":
                continue
            consumers = self._readers(p, copied)
            if not consumers or self.rules.cost.copy_pays(p, len(consumers)):
                continue
            if any(self._copy_fault(p, c, out) for c in consumers):
                continue
            for c in consumers:
                out.copies.setdefault(id(c), []).extend([*p.nodes, *out.copied_into(p)])
            for groups in copied.values():
                if groups.pop(id(p), None):
                    groups |= {id(c): c for c in consumers}
            if self.rules.cost.limits.launch:       # cores of a CPU rather read what one kernel has stored
                copied |= {m.index: {id(c): c for c in consumers if self._needs(c, m, copied)} for m in p.nodes}
            for m in p.nodes:
                del self.group_of[m.index]

    def _readers(self, p: FusionGroup, copied: Copied) -> list[FusionGroup]:
        """The groups that read `p`, by what they have copied, too, in order; none where something else reads it."""
        found: dict[int, FusionGroup] = {}
        for i in sorted(u.index for m in p.nodes for u in m.users):
            if i not in self.group_of and i not in copied:
                return []
            found |= {id(g): g for g in [self.group_of[i]]} if i in self.group_of else copied[i]
        return [c for c in found.values() if c is not p]

    def _needs(self, c: FusionGroup, m: Node, copied: Copied) -> bool:
        """Whether `c` reads `m`, by what lies between them in the group of `m` or by what it has copied."""
        group = self.group_of[m.index]
        return any(u.index in c.indices or id(c) in copied.get(u.index, ())
                   or (self.group_of.get(u.index) is group and self._needs(c, u, copied)) for u in m.users)

    def _copy_fault(self, p: FusionGroup, c: FusionGroup, out: Fusion) -> str:
        """Why `c` should not compute `p` itself, with what each has copied already."""
        whole = c
        if not any(u.index in c.indices for m in p.nodes for u in m.users):     # its copies read it
            if not all(m.kind in ("pointwise", "unit_view") for m in p.nodes):
                return "what a copied op reads would be read in another order by each copy"
            nodes = {m.index: m for m in (*c.nodes, *out.copied_into(c))}
            whole = replace(c, nodes=[nodes[i] for i in sorted(nodes)])
        joined = self.rules.joined(p, whole, duplicate=True)
        if isinstance(joined, str):
            return joined
        parts = [[*g.nodes, *out.copied_into(g)] for g in (p, c)]
        own = {n.index for n in c.nodes}
        copied = {n.index for nodes in parts for n in nodes} - own
        return places_fault([n for nodes in parts for n in nodes]) or self.rules.cost.fault(parts, copied)

    def release_views(self, out: Fusion) -> None:
        """Unit reshapes at the edge of a kernel become views in the block; those behind a copied op stay."""
        changed = True
        while changed:
            changed = False
            for g in self.groups():
                inside = g.indices
                copied = {m.index for m in out.copied_into(g)}
                for n in [n for n in g.nodes if n.kind == "unit_view"]:
                    if any(p is not None and p.index in copied for p in n.producers):
                        continue
                    first = all(p is None or p.index not in inside for p in n.producers)
                    last = all(u.index not in inside for u in n.users)
                    if (first or last) and not self._crosses(n, g, first):
                        g.nodes.remove(n)
                        del self.group_of[n.index]
                        changed = True

    def _crosses(self, n: Node, g: FusionGroup, first: bool) -> bool:
        """Whether `n` cannot leave `g`: its input would become a further output."""
        if first:
            return False
        inside = g.indices
        p = n.producers[0]
        assert p is not None
        return p.index not in g.aligned or any(u.index in inside and u is not n for u in p.users)

    def explain(self, out: Fusion) -> None:
        for n in self.graph.nodes:
            c = self.group_of.get(n.index)
            if c is None:
                continue
            for p in self._producers(n):
                out.reasons.append((p.nodes[-1], n, self._why(p, c, out)))

    def _why(self, p: FusionGroup, c: FusionGroup, out: Fusion) -> str:
        """Why `p` is not in the kernel of `c`: a reason of cost where there is one."""
        merged = self.rules.merge(p, c)
        if not isinstance(merged, str):
            return "a third kernel is between them"
        if isinstance(merged, ByCost) or p.kind != "map":
            return merged
        copy = self._copy_fault(p, c, out) or self.rules.cost.copy_pays(p, len(self._consumers(p)))
        return copy if isinstance(copy, ByCost) else merged
