"""What a kernel of a group of ops costs: operations, bytes, and what is computed more than once."""

from __future__ import annotations

from dataclasses import dataclass

from xcc.dialects import xt
from xcc.passes.xt.fusion_group import FusionGroup
from xcc.passes.xt.op_graph import Node, element_bytes, is_inline, nominal_count
from xcc.symbolic import Dim

__all__ = ["FLOPS", "FusionCost", "FusionLimits", "is_widening"]

FLOPS: dict[str, int] = {
    name: 16 for name in ("exp exp2 expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
                          "erf sigmoid pow atan2 cbrt next_after random_uniform random_normal").split()
} | {name: 4 for name in "div rem mod sqrt rsqrt reciprocal quantize".split()}
"""Cost of a pointwise op for one element, in additions; 1 where absent. Movement ops cost 0 or a select."""


@dataclass(frozen=True)
class FusionLimits:
    """Bounds that a target sets (see FormKernels)."""

    max_ops: int = 256
    max_buffers: int = 28
    max_row: int = 65536
    flops_per_byte: int = 8
    prologue: tuple[str, ...] = ("broadcast", "convert")
    tile_row: int = 0


class FusionCost:
    """Estimates for symbolic dims within `bounds`."""

    def __init__(self, limits: FusionLimits, bounds: dict[str, tuple[int, int]]) -> None:
        self.limits, self.bounds = limits, bounds

    def count(self, shape: tuple[Dim, ...]) -> int:
        return nominal_count(shape, self.bounds)

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

    def recompute_fault(self, p: FusionGroup, c: FusionGroup) -> str:
        """Why computing `p` where `c` needs it costs more than writing and reading its results; "" when it does not."""
        if c.domain[:len(p.domain)] == p.domain or _only_widens(p):
            return ""
        times = self.count(c.domain) / max(self.count(p.domain), 1)
        extra = (times - 1) * self.flops(p)
        written = sum(self.count(n.shape) * element_bytes(n.results[0]) for n in p.nodes if n.index in p.aligned)
        if extra > 2 * written * self.limits.flops_per_byte:
            return f"it would be computed {times:.0f} times"
        return ""

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
        return "" if copied <= stored else f"{consumers} copies would move {copied - stored:.0f} bytes more"


def is_widening(n: Node) -> bool:
    """Whether a convert makes no narrower elements."""
    return n.name == "convert" and element_bytes(n.operands[0]) <= element_bytes(n.results[0])


def _only_widens(p: FusionGroup) -> bool:
    """Whether `p` only converts to wider elements: reading its narrow input again is cheaper than a kernel."""
    return all(n.kind == "unit_view" or is_widening(n) for n in p.nodes)
