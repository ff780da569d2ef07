"""Whether kernels cost less together than apart: by what each is estimated to cost, and by the bytes of copies."""

from __future__ import annotations

from collections.abc import Sequence, Set

from xcc.dialects import xt
from xcc.passes.xt.fusion.fusion_group import FusionGroup
from xcc.passes.xt.fusion.kernel_cost import FLOPS, FusionLimits, KernelCost
from xcc.passes.xt.graph.op_graph import Node, element_bytes, is_inline
from xcc.symbolic import Dim

EXACT = 1 + 1e-9
"""Sums of the same numbers in another order."""
WORSE = 3
"""So many times as much as its parts no kernel costs, by its estimate, whatever its sizes turn out to be."""


class ByCost(str):
    """Why kernels are not one, where they might be: other reasons say what a kernel cannot be."""


class Estimated(ByCost):
    """By an estimate, which may be another with more ops."""


class FusionCost:
    """Estimates for symbolic dims within `bounds`."""

    def __init__(self, limits: FusionLimits, bounds: dict[str, tuple[int, int]]) -> None:
        self.limits, self.kernel = limits, KernelCost(limits, bounds)

    def count(self, shape: tuple[Dim, ...]) -> int:
        return self.kernel.count(shape)

    def flops(self, g: FusionGroup) -> int:
        """Operations to compute every pointwise node of `g` once."""
        return sum(FLOPS.get(n.name, 1) * self.count(n.shape) for n in g.nodes if n.kind == "pointwise")

    def stored_bytes(self, g: FusionGroup) -> int:
        """Bytes of the results of `g` that something outside reads."""
        return sum(self.count(n.shape) * element_bytes(v) for n in g.nodes for v in n.results
                   if any(v in u.operands for u in n.users if u.index not in g.indices))

    def decodes(self, n: Node) -> bool:
        """Whether `n` is cheap to make of weights that take fewer bytes: they are read so wherever it is needed."""
        if n.sources is None or FLOPS.get(n.name, 1) > 1:
            return False
        read = sum(self.count(xt.shape_of(v)) * element_bytes(v) for v in n.sources)
        return read < self.count(n.shape) * element_bytes(n.results[0])

    def fault(self, parts: Sequence[Sequence[Node]], copied: Set[int] = frozenset()) -> str:
        """Why one kernel costs more than `parts`, each of which stores what the next reads; "" if it does not.

        What kernels take to start is saved, except by work that may grow to `WORSE` times that of the parts with sizes
        that are not known. The first part is a producer; one that decodes weights is never stored. copied: ops that
        other kernels store or compute, too.
        """
        if all(self.decodes(n) for n in parts[0]):
            return ""
        whole, saved = [n for nodes in parts for n in nodes], self.limits.launch * (len(parts) - 1)
        together = self.kernel.of(whole, copied)
        apart = sum(self.kernel.of(nodes) for nodes in parts)
        if together <= apart * EXACT or together <= apart + saved and (
                together < apart * WORSE or self.kernel.known(whole)):
            return ""
        return Estimated(f"it is estimated to take {together / max(apart, 1):.2f} times as long as apart")

    def copy_pays(self, p: FusionGroup, consumers: int, *, joined: bool = False) -> str:
        """"" when computing `p` in each of its consumers moves fewer bytes than storing it once, else why not.

        With `joined`, the alternative is that `p` is computed in one consumer and stored for the others.
        """
        inside = {v for n in p.nodes for v in n.results}
        used = dict.fromkeys(v for n in p.nodes for v, m in zip(n.operands, n.producers, strict=True)
                             if v not in inside and not (m is not None and is_inline(m)))
        read = sum(self.count(xt.shape_of(v)) * element_bytes(v) for v in used)
        made = sum(self.count(n.shape) * element_bytes(n.results[0]) for n in p.nodes
                   if any(u.index not in p.indices for u in n.users))
        stored = read + made + (consumers - joined) * made
        copied = consumers * read + (consumers - 1) * self.flops(p) / self.limits.flops_per_byte
        return "" if copied <= stored else ByCost(f"{consumers} copies would move {copied - stored:.0f} bytes more")
