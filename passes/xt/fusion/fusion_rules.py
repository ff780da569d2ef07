"""When two groups of ops may become one kernel."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.passes.xt.fusion.fusion_cost import ByCost, FusionCost
from xcc.passes.xt.fusion.fusion_group import (
    FusionGroup,
    downstream,
    is_pointwise,
    is_stored_pad,
    joined,
    places_fault,
    same_row,
)
from xcc.passes.xt.fusion.kernel_cost import FLOPS, FusionLimits, is_widening
from xcc.passes.xt.fusion.kernel_summary import picks_matrices
from xcc.passes.xt.fusion.lanes import last_dim
from xcc.passes.xt.graph.op_graph import Node, dims_without_ones
from xcc.symbolic import Dim

AROUND = ("transpose", "slice")
"""Ops that a composite's kernel does by reading or writing at other coordinates."""

SHORT_SUM = 256
"""Terms of a product's sums up to which tiles of whole rows are as fast as others (measured on an H100)."""


class FusionRules:
    """Merges groups where it is legal and pays. `merge` returns the merged group or, as text, why not."""

    def __init__(self, limits: FusionLimits, bounds: dict[str, tuple[int, int]]) -> None:
        self.limits = limits
        self.cost = FusionCost(limits, bounds)

    def merge(self, p: FusionGroup, c: FusionGroup, *, duplicate: bool = False) -> FusionGroup | str:
        """The group of producer `p` and consumer `c`. With `duplicate`, `p` also stays as it is elsewhere."""
        out = self.joined(p, c, duplicate=duplicate)
        if isinstance(out, str):
            return out
        return self.cost.fault([p.nodes, c.nodes], p.indices if duplicate else frozenset()) or out

    def joined(self, p: FusionGroup, c: FusionGroup, *, duplicate: bool = False) -> FusionGroup | str:
        """As `merge`, whatever the kernel is estimated to cost."""
        if "alone" in (p.kind, c.kind):
            return "it is a kernel of its own"
        if len(p.nodes) + len(c.nodes) > self.limits.max_ops:
            return f"the kernel would have more than {self.limits.max_ops} ops"
        edges = [(n, u) for n in p.nodes for u in n.users if u.index in c.indices]
        if any(is_stored_pad(n) for n, _ in edges):
            return "the padded value is only stored"
        if "composite" in (p.kind, c.kind):
            out = self._around(p, c)
        elif p.kind == "map":
            out = self._prologue(p, c, edges)
        elif c.kind == "map":
            out = self._epilogue(p, c, edges)
        else:
            out = self._reductions(p, c, edges)
        return out if duplicate or isinstance(out, str) else self._checked(out)

    def columns(self, p: FusionGroup, c: FusionGroup) -> FusionGroup | str:
        """The group of two reductions of columns, neither of which needs the other: a loop reads what both do once."""
        if p.kind != "reduce" or (p.kind, p.domain, p.axes) != (c.kind, c.domain, c.axes) or \
                len(p.domain) - 1 in p.axes:
            return "they are no reductions of the same columns"
        if not all(isinstance(d, int) for d in p.domain) or not self._read(p) & self._read(c):
            return "they read nothing of all rows alike"
        return self._checked(joined(p, c, c.aligned | p.aligned, p))

    def _read(self, g: FusionGroup) -> set[Value]:
        """The values of all of the rows of `g` that its reductions read or make by elements for themselves."""
        found: set[Value] = set()
        left = [n for n in g.nodes if n.kind == "reduction"]
        while left:
            n = left.pop()
            for v, made in zip(n.operands, n.producers, strict=True):
                if v not in found and dims_without_ones(xt.shape_of(v)) == g.domain:
                    found.add(v)
                    own = made is not None and is_pointwise(made) and (made.name == "convert" or len(made.users) == 1)
                    left += [made] if made is not None and own else []
        return found

    def _around(self, p: FusionGroup, c: FusionGroup) -> FusionGroup | str:
        """A composite reads and writes through maps of its operands' coordinates, which transposes and slices are.

        Attention reads each part of keys and of values that are put together where it lies.
        """
        other = c if p.kind == "composite" else p
        if p.kind == c.kind or not all(n.name in AROUND or n.kind == "unit_view" or (
                other is p and n.name == "concatenate" and _joins_keys(n, p, c)) for n in other.nodes):
            return "a composite takes only transposes and slices, and parts of keys and values"
        if other is c and any(n.name == "slice" for n in c.nodes):
            return "only a part of the composite would be used"
        if other is p:
            return FusionGroup(sorted((*p.nodes, *c.nodes), key=lambda n: n.index), c.kind, c.domain, c.aligned)
        aligned = {max(c.indices): "full"} | (p.aligned if _all_turned(p.root()) else {})
        return FusionGroup(sorted((*p.nodes, *c.nodes), key=lambda n: n.index), p.kind, c.domain, aligned)

    def _checked(self, g: FusionGroup) -> FusionGroup | str:
        inside = g.indices
        for n in g.nodes:
            if n.index not in g.aligned and any(u.index not in inside for u in n.users):
                return f"{n} has other users and other coordinates than the kernel"
        values = {v for n in g.nodes for v in n.operands} - {v for n in g.nodes for v in n.results}
        outputs = [n for n in g.nodes if any(u.index not in inside for u in n.users)]
        if len(values) + len(outputs) > self.limits.max_buffers:
            return f"the kernel would have more than {self.limits.max_buffers} buffers"
        return places_fault(g.nodes) or g

    def _reductions(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        if p.kind == "contract" and c.kind == "reduce":
            return self._summed_batches(p, c, edges) or self._reduced_product(p, c, edges)
        if p.kind != "reduce" or c.kind != "reduce":
            return f"a kernel has one root, and these are a {p.kind} and a {c.kind}"
        if (p.domain, p.axes) != (c.domain, c.axes):
            return "the reductions are over other axes"
        if any(u.index not in c.aligned or not same_row(p, n, c, u) for n, u in edges):
            return "the consumer needs the results of other rows than its own"
        if fault := self._row_fault(p):
            return fault
        return joined(p, c, c.aligned | p.aligned, p)

    def _summed_batches(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | None:
        """A product with packed constants and the sum of all its batches: a tile of it adds up those of the batches."""
        product, sums = p.root(), [n for n in c.nodes if n.kind == "reduction"]
        if product.name != "packed_matmul" or p.domain != c.domain or len(sums) != 1 or c.rows is None \
                or c.axes != tuple(range(xt.attrs_of(product.op).batch)) or any(n.kind == "reduction" for n in p.nodes):
            return None
        if any(n.index not in p.aligned or not (is_pointwise(u) or u in sums) for n, u in edges):
            return None
        nodes = sorted((*p.nodes, *c.nodes), key=lambda n: n.index)
        return FusionGroup(nodes, "contract", c.rows, {n: "full" for n, a in c.aligned.items() if a == "row"})

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
        if self.cost.count(depth) > SHORT_SUM:
            return ByCost(f"the product sums {self.cost.count(depth)} terms, which tiles of whole rows read more often")
        if any(n.index not in p.aligned for n, _ in edges) or any(u.index not in c.aligned for _, u in edges) \
                or any(not (is_pointwise(u) or u.kind == "reduction") for _, u in edges):
            return "the consumer reads at other coordinates"
        aligned = p.aligned | {n: a for n, a in c.aligned.items() if a == "full"}
        return joined(p, c, aligned, p)

    def _row_fault(self, g: FusionGroup) -> str:
        if not g.trailing:
            return "the reduced axes are not the last ones"
        row = self.cost.count(g.domain) // max(self.cost.count(g.rows or ()), 1)
        return f"a row has {row} elements" if row > self.limits.max_row else ""

    def _epilogue(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        if any(not is_pointwise(u) for _, u in edges):
            return "the consumer reads at other coordinates"
        if any(u.index not in c.aligned for _, u in edges):
            return "the consumer evaluates it at other coordinates than its result"
        if any(n.index not in p.aligned for n, _ in edges):
            return "the producer evaluates it at other coordinates than its result"
        if p.kind == "reduce" and c.domain == p.rows and all(p.aligned[n.index] == "row" for n, _ in edges):
            return joined(p, c, p.aligned | dict.fromkeys(c.aligned, "row"), p)
        if c.domain != p.domain:
            return "the consumer has another shape"
        if any(not same_row(p, n, c, u) for n, u in edges):
            return "the consumer needs the results of other rows than its own"
        if p.kind == "reduce" and (fault := self._row_fault(p)):
            return fault
        return joined(p, c, p.aligned | c.aligned, p)

    def _prologue(self, p: FusionGroup, c: FusionGroup, edges: list[tuple[Node, Node]]) -> FusionGroup | str:
        readers = downstream(c, [u for _, u in edges])
        if fault := self._prologue_fault(p, readers):
            return fault
        same = p.domain == c.domain and all(
            n.index in p.aligned and c.aligned.get(u.index) and (is_pointwise(u) or u.kind == "reduction")
            for n, u in edges)
        if c.kind == "reduce" and same:
            same = all(c.aligned[u.index] == "full" or u.kind == "reduction" for _, u in edges)
        if any(u.kind in ("contraction", "window") for u in readers):
            same = False
        return joined(p, c, c.aligned | p.aligned if same else c.aligned, c)

    def _prologue_fault(self, p: FusionGroup, readers: list[Node]) -> str:
        """Why the ops of `c` that read `p`, directly or through others, should not compute it themselves."""
        if any(u.kind == "contraction" for u in readers):
            once = "once" in self.limits.prologue and _read_once(p, readers)
            heavy = [n for n in p.nodes if not (once and _in_order(n)) and not picks_matrices(n, readers)
                     and not self._in_prologue(n, readers)]
            return ByCost(f"{heavy[0].name} would be computed again for each tile of the contraction") if heavy else ""
        if any(u.kind == "window" or _interpolates(u) for u in readers):
            if any(n.kind != "unit_view" and (n.kind != "pointwise" or FLOPS.get(n.name, 1) > 1) for n in p.nodes):
                return ByCost("it would be computed again for each window or point between elements")
        if any(u.name == "concatenate" and self.cost.kernel.mixed(u, last_dim(u.shape)) * (len(u.operands) - 1) > 1
               for u in readers) and self.cost.flops(p) > 0:
            return ByCost("every piece of a concatenation would be computed everywhere")
        return ""

    def _in_prologue(self, n: Node, readers: list[Node]) -> bool:
        """Whether a contraction of `readers` may compute `n` for each of its tiles."""
        allowed = self.limits.prologue
        if n.name in allowed and (n.name != "slice" or _is_part(n, readers)) or n.kind == "unit_view":
            return True
        return self.cost.decodes(n) or ("widen" in allowed and is_widening(n) and not _widens_scalars(n, readers))


def _is_part(n: Node, readers: list[Node]) -> bool:
    """Whether the slice `n` is a box of its operand, at a known place, that is the left side of products with panels:
    these read it in rows, from an address that is a constant further."""
    a = xt.attrs_of(n.op)
    return all(isinstance(start, int) for start in a.starts) and set(a.strides) <= {1} and all(
        u in readers and u.name == "packed_matmul" and u.operands[1] not in n.results for u in n.users)


def _in_order(n: Node) -> bool:
    """Whether neighbours of the result are made of neighbours: elements on their own, whole rows picked by index."""
    if n.name == "gather":
        return xt.attrs_of(n.op).axis < len(xt.shape_of(n.operands[0])) - 1
    return n.kind == "pointwise"


def _read_once(p: FusionGroup, readers: list[Node]) -> bool:
    """Whether the contractions of `readers` multiply what `p` makes with vectors: they read each element once."""
    made = {v for n in (*p.nodes, *readers) for v in n.results}
    return all(u.name == "dot_general" and all(
        _free(u, 1 - side) == 1 and _free(u, side) != 1 for side, v in enumerate(u.operands) if v in made)
        for u in readers if u.kind == "contraction")


def _all_turned(n: Node) -> bool:
    """Whether `n` has several results and all that reads them is the same transpose, which joins it bit by bit."""
    return len(n.results) > 1 and {u.name for u in n.users} == {"transpose"} \
        and len({tuple(xt.attrs_of(u.op).perm) for u in n.users}) == 1


def _joins_keys(n: Node, p: FusionGroup, c: FusionGroup) -> bool:
    """Whether the concatenation `n` of `p` makes the keys or values of the attention of `c`, of as many in each part
    as other concatenations do: then a loop over the keys has a part after the other."""
    inside, root, at, axis = p.indices | c.indices, c.root(), n, xt.attrs_of(n.op).axis
    others = [_sizes(m) for m in c.nodes if m.name == "concatenate"]
    while at.users and at.users[0].name == "transpose" and at.users[0].index in inside:
        at = at.users[0]
        axis = xt.attrs_of(at.op).perm.index(axis)
    used = {i for i, v in enumerate(root.operands) if v in at.results}
    return root.name == "attention" and axis == 2 and bool(used) and used <= {1, 2} \
        and all(sizes == _sizes(n) for sizes in others)


def _sizes(n: Node) -> list[Dim]:
    """Of the parts of a concatenation, along its axis."""
    return [xt.shape_of(v)[xt.attrs_of(n.op).axis] for v in n.operands]


def _free(product: Node, side: int) -> Dim:
    """How many rows or columns an operand of a product has in each batch."""
    a = xt.attrs_of(product.op)
    own = (*(a.rhs_batch if side else a.lhs_batch), *(a.rhs_contract if side else a.lhs_contract))
    return symbolic.product(size for d, size in enumerate(xt.shape_of(product.operands[side])) if d not in own)


def _widens_scalars(n: Node, readers: list[Node]) -> bool:
    """Whether a convert of 16-bit floats makes the first operand of a contraction."""
    return n.name == "convert" and xt.TensorType.of(n.operands[0]).dtype in ("f16", "bf16") \
        and any(u.kind == "contraction" and u.operands[0] in n.results for u in readers)


def _interpolates(n: Node) -> bool:
    """Whether each result element reads several elements around a point."""
    return n.name == "grid_sample" or (n.name == "resize" and xt.attrs_of(n.op).mode != "nearest")


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
