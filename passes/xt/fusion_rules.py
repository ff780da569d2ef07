"""When two groups of ops may become one kernel, and what it would cost.

A kernel is evaluated tile by tile, on demand from its outputs, so a group is described by the coordinates its ops
share: `domain`, the iteration space, and for groups around reductions `rows`, the part of it that is left when the
reduced axes are gone. Shapes are compared without dims of size 1, which reshapes inside a kernel may add or drop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xcc.dialects import xt
from xcc.passes.xt.op_graph import Graph, Node, dims_without_ones, element_bytes, is_inline, nominal_count
from xcc.symbolic import Dim

__all__ = ["FLOPS", "FusionGroup", "FusionLimits", "FusionRules", "is_stored_pad", "singleton"]

FLOPS: dict[str, int] = {
    name: 16 for name in ("exp exp2 expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
                          "erf sigmoid pow atan2 cbrt next_after random_uniform random_normal").split()
} | {name: 4 for name in "div rem mod sqrt rsqrt reciprocal quantize".split()}
"""Cost of a pointwise op for one element, in additions; 1 where absent. Movement ops cost 0 or a select."""

AROUND = ("transpose", "slice")
"""Ops that a composite's kernel does by reading or writing at other coordinates."""

SHORT_SUM = 256
"""Terms of a product's sums up to which tiles of whole rows are as fast as others (measured on an H100)."""

ROOT_KINDS = ("contract", "window", "reduce")


@dataclass(frozen=True)
class FusionLimits:
    """Bounds that a target sets (see FormKernels)."""

    max_ops: int = 256
    max_buffers: int = 28
    max_row: int = 65536
    flops_per_byte: int = 8
    prologue: tuple[str, ...] = ("broadcast", "convert")
    tile_row: int = 0


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
    kind = kinds.get(n.kind, "alone") if len(n.results) == 1 else "alone"
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


def _is_widening(n: Node) -> bool:
    """Whether a convert makes no narrower elements."""
    return n.name == "convert" and element_bytes(n.operands[0]) <= element_bytes(n.results[0])


def _widens_scalars(n: Node, readers: list[Node]) -> bool:
    """Whether a convert of 16-bit floats makes the first operand of a contraction."""
    return n.name == "convert" and xt.TensorType.of(n.operands[0]).dtype in ("f16", "bf16") \
        and any(u.kind == "contraction" and u.operands[0] in n.results for u in readers)


def _interpolates(n: Node) -> bool:
    """Whether each result element reads several elements around a point."""
    return n.name == "grid_sample" or (n.name == "resize" and xt.attrs_of(n.op).mode != "nearest")


class FusionRules:
    """Merges groups where it is legal and pays. `merge` returns the merged group or, as text, why not."""

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

    def merge(self, p: FusionGroup, c: FusionGroup, *, duplicate: bool = False) -> FusionGroup | str:
        """The group of producer `p` and consumer `c`. With `duplicate`, `p` also stays as it is elsewhere."""
        if "alone" in (p.kind, c.kind):
            return "it is a kernel of its own"
        if len(p.nodes) + len(c.nodes) > self.limits.max_ops:
            return f"the kernel would have more than {self.limits.max_ops} ops"
        edges = [(n, u) for n in p.nodes for u in n.users if u.index in c.indices]
        if any(is_stored_pad(n) for n, _ in edges):
            return "the padded value is only stored"
        if "composite" in (p.kind, c.kind):
            return self._around(p, c, duplicate)
        if p.kind == "map":
            out = self._prologue(p, c, edges)
        elif c.kind == "map":
            out = self._epilogue(p, c, edges)
        else:
            out = self._reductions(p, c, edges)
        if isinstance(out, str):
            return out
        return out if duplicate else self._checked(out)

    def _around(self, p: FusionGroup, c: FusionGroup, duplicate: bool) -> FusionGroup | str:
        """A composite reads and writes through maps of its operands' coordinates, which transposes and slices are."""
        other = c if p.kind == "composite" else p
        if p.kind == c.kind or not all(n.name in AROUND or n.kind == "unit_view" for n in other.nodes):
            return "a composite takes only transposes and slices"
        if other is c and any(n.name == "slice" for n in c.nodes):
            return "only a part of the composite would be used"
        if other is p:
            out = FusionGroup(sorted((*p.nodes, *c.nodes), key=lambda n: n.index), c.kind, c.domain, c.aligned)
        else:
            last = max(c.indices)
            out = FusionGroup(sorted((*p.nodes, *c.nodes), key=lambda n: n.index), p.kind, c.domain, {last: "full"})
        return out if duplicate else self._checked(out)

    def _checked(self, g: FusionGroup) -> FusionGroup | str:
        inside = g.indices
        for n in g.nodes:
            if n.index not in g.aligned and any(u.index not in inside for u in n.users):
                return f"{n} has other users and other coordinates than the kernel"
        values = {v for n in g.nodes for v in n.operands} - {v for n in g.nodes for v in n.results}
        outputs = [n for n in g.nodes if any(u.index not in inside for u in n.users)]
        if len(values) + len(outputs) > self.limits.max_buffers:
            return f"the kernel would have more than {self.limits.max_buffers} buffers"
        return g

    def _reductions(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        if p.kind == "contract" and c.kind == "reduce":
            return self._reduced_product(p, c, edges)
        if p.kind != "reduce" or c.kind != "reduce":
            return f"a kernel has one root, and these are a {p.kind} and a {c.kind}"
        if (p.domain, p.axes) != (c.domain, c.axes):
            return "the reductions are over other axes"
        if any(u.index not in c.aligned or not _same_row(p, n, c, u) for n, u in edges):
            return "the consumer needs the results of other rows than its own"
        if fault := self._row_fault(p):
            return fault
        return _joined(p, c, c.aligned | p.aligned, p)

    def _reduced_product(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        """A product and the reductions of its rows, where a row is one tile's and the sums are short.

        Tiles as wide as a row read more through the L2 cache than square ones: long sums lose more than a kernel that
        reads the product again costs.
        """
        if p.domain != c.domain or not c.trailing or len(c.axes) != 1:
            return "the reductions are not over the product's rows"
        row, product = c.domain[-1], p.root()
        if not isinstance(row, int) or row > self.limits.tile_row:
            return f"a row has {row} elements"
        depth = _summed(product)
        if depth is None:
            return "it is no product of two matrices"
        if self.count(depth) > SHORT_SUM:
            return f"the product sums {self.count(depth)} terms, which tiles of whole rows read more often"
        if any(n.index not in p.aligned for n, _ in edges) or any(u.index not in c.aligned for _, u in edges) \
                or any(not (is_pointwise(u) or u.kind == "reduction") for _, u in edges):
            return "the consumer reads at other coordinates"
        aligned = p.aligned | {n: a for n, a in c.aligned.items() if a == "full"}
        return _joined(p, c, aligned, p)

    def _row_fault(self, g: FusionGroup) -> str:
        if not g.trailing:
            return "the reduced axes are not the last ones"
        row = self.count(g.domain) // max(self.count(g.rows or ()), 1)
        return f"a row has {row} elements" if row > self.limits.max_row else ""

    def _epilogue(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        if any(not is_pointwise(u) for _, u in edges):
            return "the consumer reads at other coordinates"
        if any(u.index not in c.aligned for _, u in edges):
            return "the consumer evaluates it at other coordinates than its result"
        if any(n.index not in p.aligned for n, _ in edges):
            return "the producer evaluates it at other coordinates than its result"
        if p.kind == "reduce" and c.domain == p.rows and all(p.aligned[n.index] == "row" for n, _ in edges):
            return _joined(p, c, p.aligned | dict.fromkeys(c.aligned, "row"), p)
        if c.domain != p.domain:
            return "the consumer has another shape"
        if any(not _same_row(p, n, c, u) for n, u in edges):
            return "the consumer needs the results of other rows than its own"
        if p.kind == "reduce" and (fault := self._row_fault(p)):
            return fault
        return _joined(p, c, p.aligned | c.aligned, p)

    def _prologue(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        readers = _downstream(c, [u for _, u in edges])
        if fault := self._prologue_fault(p, c, readers):
            return fault
        same = p.domain == c.domain and all(
            n.index in p.aligned and c.aligned.get(u.index) and (is_pointwise(u) or u.kind == "reduction")
            for n, u in edges)
        if c.kind == "reduce" and same:
            same = all(c.aligned[u.index] == "full" or u.kind == "reduction" for _, u in edges)
        if any(u.kind in ("contraction", "window") for u in readers):
            same = False
        return _joined(p, c, c.aligned | p.aligned if same else c.aligned, c)

    def _prologue_fault(self, p: FusionGroup, c: FusionGroup, readers: list[Node]) -> str:
        """Why the ops of `c` that read `p`, directly or through others, should not compute it themselves."""
        if any(u.kind == "contraction" for u in readers):
            heavy = [n for n in p.nodes if not self._in_prologue(n, readers)]
            return f"{heavy[0].name} would be computed again for each tile of the contraction" if heavy else ""
        if any(u.kind == "window" or _interpolates(u) for u in readers):
            if any(n.kind != "unit_view" and (n.kind != "pointwise" or FLOPS.get(n.name, 1) > 1) for n in p.nodes):
                return "it would be computed again for each window or point between elements"
        if any(u.name == "concatenate" and len(u.operands) > 2 for u in readers) and self.flops(p) > 0:
            return "every piece of a concatenation would be computed everywhere"
        return self._recompute_fault(p, c)

    def _in_prologue(self, n: Node, readers: list[Node]) -> bool:
        """Whether a contraction of `readers` may compute `n` for each of its tiles."""
        allowed = self.limits.prologue
        return n.name in allowed or n.kind == "unit_view" \
            or ("widen" in allowed and _is_widening(n) and not _widens_scalars(n, readers))

    def _recompute_fault(self, p: FusionGroup, c: FusionGroup) -> str:
        """Computing `p` where `c` needs it must cost less than writing and reading its results."""
        if c.domain[:len(p.domain)] == p.domain or self._widens(p):
            return ""
        times = self.count(c.domain) / max(self.count(p.domain), 1)
        extra = (times - 1) * self.flops(p)
        written = sum(self.count(n.shape) * element_bytes(n.results[0]) for n in p.nodes if n.index in p.aligned)
        if extra > 2 * written * self.limits.flops_per_byte:
            return f"it would be computed {times:.0f} times"
        return ""

    def _widens(self, p: FusionGroup) -> bool:
        """Whether `p` only converts to wider elements: reading its narrow input again is cheaper than a kernel."""
        return all(n.kind == "unit_view" or _is_widening(n) for n in p.nodes)

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


def _summed(n: Node) -> tuple[Dim, ...] | None:
    """The dims that a product of two matrices sums over; None for anything else."""
    if n.name != "dot_general":
        return None
    a = xt.attrs_of(n.op)
    shapes = [xt.shape_of(v) for v in n.operands]
    for shape, batch, summed in zip(shapes, (a.lhs_batch, a.rhs_batch), (a.lhs_contract, a.rhs_contract), strict=True):
        if all(size == 1 or d in (*batch, *summed) for d, size in enumerate(shape)):
            return None
    return tuple(shapes[0][d] for d in a.lhs_contract)


def _same_row(p: FusionGroup, n: Node, c: FusionGroup, u: Node) -> bool:
    """Whether the op `u` of `c`, of the same domain as `p`, reads at each place what `n` of `p` gives for that row.

    A row of sizes (s,) in a domain (s, s) may line up with either dim: ``add(x, reduce(x))`` reads a column's.
    """
    if p.aligned.get(n.index) != "row" or c.aligned[u.index] != "full":
        return True
    out, shape = xt.shape_of(u.results[0]), n.shape
    places = [d for d, size in enumerate(out) if size != 1]
    used = {len(out) - len(shape) + d for d, size in enumerate(shape) if size != 1}
    return used == {d for i, d in enumerate(places) if i not in p.axes}


def _downstream(g: FusionGroup, start: list[Node]) -> list[Node]:
    """The nodes `start` of `g` and those of `g` that depend on them."""
    inside, stack = g.indices, list(start)
    found: dict[int, Node] = {}
    while stack:
        n = stack.pop()
        if n.index not in found:
            found[n.index] = n
            stack += [u for u in n.users if u.index in inside]
    return list(found.values())


def _joined(p: FusionGroup, c: FusionGroup, aligned: dict[int, str], like: FusionGroup) -> FusionGroup:
    nodes = sorted((*p.nodes, *c.nodes), key=lambda n: n.index)
    return FusionGroup(nodes, like.kind, like.domain, aligned, like.rows, like.axes, like.trailing)


def reaches(graph: Graph, group_of: dict[int, Any], p: FusionGroup, c: FusionGroup) -> bool:
    """Whether something outside both depends on `p` and feeds `c`: merging would make a cycle."""
    last = max(c.indices)
    inside = p.indices | c.indices
    seen: set[int] = set()
    stack = [u for n in p.nodes for u in n.users if u.index not in inside]
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
            stack += [u for m in members for u in m.users]
    return False
