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
POINTS: dict[str, int] = {"grid_sample": 4}
"""Elements, at places of their own, that an element of a movement op is made of; 1 where absent."""
COMPUTED = ("concatenate", "dynamic_slice", "gather", "gather_nd", "gather_elements", "grid_sample", "pad")
"""Movement ops that compute the places they read: a tile across their last dim is read one element after the other."""


@dataclass(frozen=True)
class FusionLimits:
    """Bounds that a target sets (see FormKernels)."""

    max_ops: int = 256
    max_buffers: int = 28
    max_row: int = 65536
    flops_per_byte: int = 8
    prologue: tuple[str, ...] = ("broadcast", "convert")
    tile_row: int = 0
    single: int = 4


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

    def part_fault(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> str:
        """Why `p` evaluated where `c` needs it, by `edges`, costs more than `p` stored, and then read by `c`.

        A concatenation evaluates its operands for each element of its result; elements that are picked, or rows that
        become columns, are evaluated one by one.
        """
        readers = _readers(c, edges) if not all(self.decodes(n) for n in p.nodes) else []
        inside = sum(self.count(u.shape) * n.uses_in(u) * self._element(p, u) for n, u in readers)
        made = {n.index: n for n, _ in edges}.values() if readers else ()
        stored = sum(self.count(n.shape) * (self._element(p, None) + 2 * self.limits.flops_per_byte
                                            * element_bytes(n.results[0])) for n in made)
        stored += sum(self.count(u.shape) * n.uses_in(u) * (self.limits.single if _picks(u) else 1) for n, u in readers)
        if inside <= stored or stored == 0:
            return ""
        return f"inside it would cost {inside / stored:.1f} times as much as stored and read"

    def _element(self, p: FusionGroup, reader: Node | None) -> int:
        """Operations for one element of `p`, those of a vector's lanes counted each, where `reader` needs it.

        None: row by row, in a kernel of its own.
        """
        whole, inside = max(self.count(n.shape) for n in p.nodes), {v for n in p.nodes for v in n.results}
        total = 0
        for n in p.nodes:
            total += FLOPS.get(n.name, 1) if n.kind == "pointwise" else 0
            if n.kind == "unit_view":
                continue
            single = n.name in POINTS or (reader is not None and (
                _picks(reader) or _turns(reader) and n.name in COMPUTED))
            reads = sum(v not in inside and 16 * self.count(xt.shape_of(v)) >= whole for v in n.operands)
            total += POINTS.get(n.name, 1) * reads * (self.limits.single if single else 1)
        return total

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


def _readers(c: FusionGroup, edges: list[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """The ops of `c` that take `edges` to other places, with what they read: directly or behind pointwise ops."""
    found, left, seen = list[tuple[Node, Node]](), list(edges), set[int]()
    while left:
        n, u = left.pop()
        if u.name == "concatenate" or _picks(u) or _turns(u):
            found.append((n, u))
        elif u.kind in ("pointwise", "unit_view") and u.index not in seen:
            seen.add(u.index)
            left += [(u, v) for v in u.users if v.index in c.indices]
    return found


def _picks(u: Node) -> bool:
    """Whether neighbours of the result are made of any elements: an element at a time is read."""
    if u.name == "gather":
        a = xt.attrs_of(u.op)
        return a.axis == len(xt.shape_of(u.operands[0])) - 1
    return u.name in ("gather_nd", "gather_elements")


def _turns(u: Node) -> bool:
    """Whether neighbours of the result are made of elements of different rows."""
    return u.name == "transpose" and xt.attrs_of(u.op).perm[-1] != len(u.shape) - 1


def is_widening(n: Node) -> bool:
    """Whether a convert makes no narrower elements."""
    return n.name == "convert" and element_bytes(n.operands[0]) <= element_bytes(n.results[0])


def _only_widens(p: FusionGroup) -> bool:
    """Whether `p` only converts to wider elements: reading its narrow input again is cheaper than a kernel."""
    return all(n.kind == "unit_view" or is_widening(n) for n in p.nodes)
