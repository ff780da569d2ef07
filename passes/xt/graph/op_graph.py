"""The ops of one block as a graph of plain data, so that fusion decides without touching the IR."""

from __future__ import annotations

from dataclasses import dataclass, field

from xcc import symbolic
from xcc._mlir import Block, Operation, Value, ir
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import name_of, producer
from xcc.passes.xt.graph.split_dims import split_dims
from xcc.symbolic import Dim

IN_PLACE = "xt.in_place"
"""Of an op that writes what it changes of its first operand to where that lies (the pass ``update-in-place``)."""

HOST = ("weight", "dispatch", "return", "yield")
MOST_SOURCES = 16
NOMINAL_DIM = 128
"""What a symbolic dim counts for in cost estimates when it has no declared bounds."""


@dataclass(eq=False)
class Node:
    """One op of the block.

    kind: its `access`, where a reshape that only adds or drops unit dims is "unit_view", one that splits dims of a
    slice "movement", as the slice is (kernels read both where they lie), and any other "view"; "source" for constants,
    dims and weights; "host" for what stays in the block.
    producers: for each operand the node that makes it, or None for a value from outside the block.
    sources: the weights and constants that a result of pointwise ops and moves is made of, and of nothing else; None
        where it is made of more than these, or of very many.
    counters: the nodes that define symbols which its attributes or results have: sizes that a run counts; those that
        read what it overwrites; of what other ranks wait for the one before; and the requirement that it stands
        behind, which needs what gave symbols values before it.
    sized: the nodes that have it among their counters.
    """

    index: int
    op: Operation
    name: str
    kind: str
    producers: tuple[Node | None, ...]
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    counters: tuple[Node, ...] = ()
    users: list[Node] = field(default_factory=list)
    sources: frozenset[Value] | None = None
    sized: list[Node] = field(default_factory=list)

    @property
    def needed(self) -> list[Node]:
        """The nodes that must have run before this one."""
        return [*(p for p in self.producers if p is not None), *self.counters]

    @property
    def followers(self) -> list[Node]:
        """The nodes that need this one."""
        return [*self.users, *self.sized]

    @property
    def shape(self) -> tuple[Dim, ...]:
        return xt.shape_of(self.results[0])

    def __repr__(self) -> str:
        return f"{self.name}@{self.index}"


class Graph:
    """The nodes of `block` in order. A use inside a nested region counts for the op of the block that holds it."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nodes: list[Node] = []
        self.made_by: dict[Value, Node] = {}
        self._counted: dict[str, Node] = {}     # the node that defines a symbol
        self._seen: set[str] = set()            # symbols of earlier nodes
        self._readers: dict[Value, list[Node]] = {}       # of each value
        self._outer = 0
        self._last_effect: tuple[Node, ...] = ()    # of those that others see: they stay in order
        self._last_check: tuple[Node, ...] = ()     # what is behind a requirement relies on it
        self._definers: list[Node] = []     # what gave symbols values since then: a requirement may be about them
        for op in block.operations:
            self._add(op.operation)

    def _add(self, op: Operation) -> None:
        operands = tuple(op.operands) if not len(op.regions) else (*op.operands, *_captured(op))
        producers = tuple(self.made_by.get(v) or self._outer_source(v) for v in operands)
        symbols = _symbols(op)
        counters = tuple({n.index: n for n in (*(self._counted[s] for s in sorted(symbols) if s in self._counted),
                                               *self._overwritten(op), *self._before(op), *self._last_check,
                                               *(self._definers if name_of(op) == "require" else ()))}.values())
        node = Node(len(self.nodes), op, name_of(op), _kind(op), producers, operands, tuple(op.results), counters)
        node.sources = _sources(node)
        self.nodes.append(node)
        self._last_effect = (node,) if _has_effects(op) else self._last_effect
        if node.name == "require":
            self._last_check, self._definers = (node,), []
        elif node.name == "if" or "symbol" in op.attributes:
            self._definers.append(node)
        for s in _defined(op, symbols - self._seen):
            self._counted[s] = node
        self._seen |= symbols
        for p in counters:
            p.sized.append(node)
        for v in node.results:
            self.made_by[v] = node
        for v in operands:
            self._readers.setdefault(v, []).append(node)
        for p in dict.fromkeys(p for p in producers if p is not None):
            p.users.append(node)

    def _overwritten(self, op: Operation) -> list[Node]:
        """The nodes so far that read what `op` writes over."""
        if IN_PLACE not in op.attributes:
            return []
        value = op.operands[0]
        while value in self.made_by and self.made_by[value].kind in ("view", "unit_view"):
            value = self.made_by[value].operands[0]
        found, values = [], [value]
        while values:
            for n in self._readers.get(values.pop(), ()):
                found.append(n)
                values += n.results if n.kind in ("view", "unit_view") else ()
        return found

    def _before(self, op: Operation) -> tuple[Node, ...]:
        """The node that must have run before `op`, where others see both: ranks wait for each other in one order."""
        return self._last_effect if _has_effects(op) else ()

    def _outer_source(self, value: Value) -> Node | None:
        """A node for a constant or dim that an enclosing block defines: kernels of this block may copy it."""
        owner = getattr(value.owner, "operation", None)
        if owner is None or _kind(owner) != "source":
            return None
        self._outer += 1
        node = Node(-self._outer, owner, name_of(owner), "source", (), (), tuple(owner.results))
        for v in node.results:
            self.made_by[v] = node
        node.sources = _sources(node)
        return node


def _symbols(op: Operation) -> set[str]:
    """The symbols in the attributes of `op` and in the types of its results."""
    attributes = vars(xt.attrs_of(op)).values() if xt.op_class(op) is not None else ()
    dims: list[Dim] = [d for v in attributes if isinstance(v, tuple) for d in v if isinstance(d, symbolic.Expr)]
    dims += [d for v in op.results if isinstance(v.type, ir.RankedTensorType) for d in xt.shape_of(v)]
    return {s for d in dims for s in symbolic.symbols_of(d)}


def _has_effects(op: Operation) -> bool:
    """Whether others see that `op` runs, or an op inside it."""
    cls = xt.op_class(op)
    return cls is not None and cls.effects or any(
        _has_effects(inner.operation) for region in op.regions for block in region.blocks for inner in block.operations)


def _defined(op: Operation, new: set[str]) -> set[str]:
    """The symbols to which `op` gives a value; new: those of its own that no op before it has."""
    if "symbol" in op.attributes:
        return {ir.StringAttr(op.attributes["symbol"]).value}
    return new if len(op.regions) else set()


def _sources(n: Node) -> frozenset[Value] | None:
    if n.name in ("weight", "constant"):
        return frozenset(n.results)
    if n.kind not in ("pointwise", "movement", "view", "unit_view") or not n.producers:
        return None
    found: frozenset[Value] = frozenset()
    for p in n.producers:
        if p is None or p.sources is None or len(found) > MOST_SOURCES:
            return None
        found |= p.sources
    return found


def _kind(op: Operation) -> str:
    if name_of(op) in HOST or len(op.regions):
        return "host"
    access = "opaque" if IN_PLACE in op.attributes else getattr(xt.op_class(op), "access", "opaque")
    if access == "view" or name_of(op) == "bitcast" and xt.shape_of(op.operands[0]) != xt.shape_of(op.results[0]):
        return "unit_view" if is_unit_reshape(op) else "movement" if _splits_slice(op) else "view"
    return {"scalar": "source", "control": "host"}.get(access, access)


def is_inline(n: Node) -> bool:
    """Sources that are copied into kernels: dims, and constants of one repeated value."""
    if n.name == "dim":
        return True
    return n.name == "constant" and bool(ir.DenseElementsAttr(n.op.attributes["value"]).is_splat)


def is_unit_reshape(op: Operation) -> bool:
    """Whether a reshape only adds or drops dims of size 1."""
    return dims_without_ones(xt.shape_of(op.operands[0])) == dims_without_ones(xt.shape_of(op.results[0]))


def _splits_slice(op: Operation) -> bool:
    parts = split_dims(xt.shape_of(op.operands[0]), xt.shape_of(op.results[0]))
    return parts is not None and producer(op.operands[0], "slice") is not None \
        and symbolic.is_static(xt.shape_of(op.results[0])[d] for p in parts for d in p[1:])


def dims_without_ones(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return tuple(d for d in shape if d != 1)


def _captured(op: Operation) -> list[Value]:
    """The values that the regions of `op` use; those defined inside are harmless, nothing looks them up."""
    out: list[Value] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                out += inner.operation.operands
                out += _captured(inner.operation)
    return list(dict.fromkeys(out))


def element_bytes(value: Value) -> int:
    return (xt.width(str(xt.element_type_of(value))) + 7) // 8


def nominal_count(shape: tuple[Dim, ...], bounds: dict[str, tuple[int, int]]) -> int:
    """How many elements `shape` has for cost estimates: symbols count as the middle of their bounds, at most 128."""
    count = 1
    for d in shape:
        count *= d if isinstance(d, int) else _nominal_size(d, bounds)
    return count


def _nominal_size(d: Dim, bounds: dict[str, tuple[int, int]]) -> int:
    """1 at least, also where `d` is a quotient that the nominal sizes give no value to."""
    try:
        return max(symbolic.evaluate(d, {s: _nominal(bounds.get(s)) for s in symbolic.symbols_of(d)}), 1)
    except ZeroDivisionError:
        return 1


def _nominal(bound: tuple[int, int] | None) -> int:
    return NOMINAL_DIM if bound is None else min(max(NOMINAL_DIM, bound[0]), bound[1])
