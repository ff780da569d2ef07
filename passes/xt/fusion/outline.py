"""Turns groups of ops into kernel functions and dispatches.

    %0 = "xt.exp"(%x); %1 = "xt.add"(%0, %y)          group {0, 1}
becomes
    func.func private @add_0(%x, %y) attributes {xt.kernel, xt.symbols = ["d0"]} { ... }
    %1 = "xt.dispatch"(%x, %y) {kernel = @add_0, symbols = ["batch*seq"]}

Every distinct symbolic dim of a kernel, symbol or expression, becomes a symbol d0, d1, ... of its own, so that equal
kernels are equal text; equal ones become one function. One that must be a number there, is that number; one that is
a multiple of another is written so: ``8*d1`` are d1 rows of 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xcc._mlir import Attribute, Location, Module, Operation, Type, Value, ir
from xcc.dialects import xt
from xcc.dim_expr import Expr
from xcc.passes.xt.graph.op_graph import IN_PLACE, Graph, Node
from xcc.passes.xt.sizes.known_sizes import known_sizes
from xcc.symbolic import Dim, bare_symbol, product, sym

PARTS = "xt.parts"
"""Of a kernel of several that do not depend on each other: which of them each result belongs to."""


@dataclass
class Group:
    """Nodes that become one kernel. `clones` are sources and cheap producers, copied in; the originals may stay.

    `parts` are the indices of nodes that do not depend on those of other parts, where the kernel is made of several.
    """

    nodes: list[Node]
    clones: list[Node] = field(default_factory=list)
    root: str = ""
    parts: list[set[int]] = field(default_factory=list)

    def body(self) -> list[Node]:
        """All ops of the kernel in order: of the clones those that its nodes need.

        What has no operands stands before its first user, wherever the model has it: equal kernels may share it with
        others of the model, or not.
        """
        makers = {v: n for n in self.clones for v in n.results}
        found, open_ = {n.index: n for n in self.nodes}, list(self.nodes)
        while open_:
            for maker in (makers[v] for v in open_.pop().operands if v in makers):
                if maker.index not in found:
                    found[maker.index] = maker
                    open_.append(maker)
        out: dict[int, Node] = {}
        inside = {v: n for n in found.values() for v in n.results}
        for n in sorted(found.values(), key=lambda n: (not n.operands, n.index)):
            sources = (inside[v] for v in n.operands if v in inside and not inside[v].operands)
            out.update({s.index: s for s in sources if s.index not in out})
            out[n.index] = out.get(n.index, n)
        return list(out.values())

    def inputs(self) -> list[Value]:
        """The values from outside, in the order of their first use."""
        inside = {v for n in self.body() for v in n.results}
        return list(dict.fromkeys(v for n in self.body() for v in n.operands if v not in inside))

    def outputs(self) -> list[Value]:
        """The values of `nodes` that something outside uses; of an opaque op all results, which its loops write."""
        inside = {n.index for n in self.nodes}
        return [v for n in self.nodes for v in n.results
                if n.kind == "opaque" or any(u.index not in inside and v in u.operands for u in n.users)]


class Outliner:
    """Makes kernels in `module`; remembers them to merge equal ones."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._known: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._names = {op.attributes["sym_name"].value for op in module.body if "sym_name" in op.attributes}

    def outline(self, graph: Graph, groups: Sequence[Group]) -> None:
        """Replaces the ops of all `groups` by dispatches, in an order that respects dependences."""
        if not graph.nodes:
            return
        group_of = {n.index: g for g in groups for n in g.nodes}
        terminator = graph.nodes[-1].op
        replaced: dict[Value, Value] = {}
        for unit in _ordered(graph, groups, group_of):
            if isinstance(unit, Node):
                if unit.op != terminator:
                    unit.op.move_before(terminator)
                for old in dict.fromkeys(v for v in unit.operands if v in replaced):
                    _replace_in(unit.op, old, replaced[old])
            else:
                outputs = unit.outputs()
                again = _yielded_again(terminator, unit, outputs)
                results = self._dispatch(unit, [*outputs, *(v for _, v in again)], replaced, terminator)
                replaced.update(zip(outputs, results, strict=False))
                for (place, _), result in zip(again, results[len(outputs):], strict=True):
                    terminator.operands[place] = result
        for n in reversed(graph.nodes):
            if n.index in group_of or (n.kind != "host" and not any(list(v.uses) for v in n.results)):
                n.op.erase()

    def _dispatch(self, group: Group, outputs: list[Value], replaced: dict[Value, Value],
                  before: Operation) -> list[Value]:
        inputs = group.inputs()
        body = group.body()
        names = _SymbolNames(known_sizes(n.op for n in body), [v for n in body for v in (*n.operands, *n.results)])
        loc = ir.Location.fused([n.op.location for n in group.nodes])
        function = self._function(group, inputs, outputs, names, loc)
        if group.parts:
            made = {v: n.index for n in group.nodes for v in n.results}
            function.attributes[PARTS] = ir.DenseI64ArrayAttr.get(
                [next(i for i, part in enumerate(group.parts) if made[v] in part) for v in outputs])
        kernel = self._unique(function, group.root or group.nodes[-1].name)
        op = ir.Operation.create(
            xt.OPS["dispatch"].OPERATION_NAME, results=[v.type for v in outputs],
            operands=[replaced.get(v, v) for v in inputs],
            attributes={"kernel": ir.FlatSymbolRefAttr.get(kernel), "symbols": xt.dims_attr(tuple(names.values))},
            loc=loc, ip=ir.InsertionPoint(before))
        for n in group.nodes:
            if (binding := _binding(n.op)) is not None:
                op.attributes["xt.binds"] = xt.dims_attr(binding)
            if IN_PLACE in n.op.attributes:     # then it is alone, and its first operand is the kernel's
                op.attributes[IN_PLACE] = ir.UnitAttr.get()
        return list(op.results)

    def _function(self, group: Group, inputs: list[Value], outputs: list[Value], names: _SymbolNames,
                  loc: Location) -> Operation:
        arguments = [names.type_of(v) for v in inputs]
        function = ir.Operation.create("func.func", regions=1, loc=loc, attributes={
            "sym_name": ir.StringAttr.get("kernel"), "sym_visibility": ir.StringAttr.get("private"),
            "xt.kernel": ir.UnitAttr.get(), "function_type": ir.TypeAttr.get(ir.FunctionType.get([], []))})
        entry = function.regions[0].blocks.append(*arguments, arg_locs=[loc] * len(arguments))
        inside = dict(zip(inputs, entry.arguments, strict=True))
        with ir.InsertionPoint(entry):
            for n in group.body():
                copy = ir.Operation.create(
                    n.op.name, results=[names.type_of(v) for v in n.results], operands=[inside[v] for v in n.operands],
                    attributes=names.attributes(n.op), loc=n.op.location)
                inside.update(zip(n.results, copy.results, strict=True))
            ir.Operation.create("func.return", operands=[inside[v] for v in outputs], loc=loc)
        results = [names.type_of(v) for v in outputs]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, results))
        symbols = [ir.StringAttr.get(f"d{i}") for i in range(len(names.values))]
        function.attributes["xt.symbols"] = ir.ArrayAttr.get(symbols)
        return function

    def _unique(self, function: Operation, root: str) -> str:
        """Puts `function` into the module under a name, unless an equal one is there; returns the name."""
        text = function.get_asm(enable_debug_info=False)
        if text in self._known:
            function.erase()
            return self._known[text]
        name = ""
        while not name or name in self._names:
            number = self._numbers.get(root, 0)
            self._numbers[root] = number + 1
            name = f"{root}_{number}"
        self._names.add(name)
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        self.module.body.append(function)
        self._known[text] = name
        return name


class _SymbolNames:
    """Gives each distinct symbolic dim the next name d0, d1, ..., but multiples of other dims of `values`, which are
    the kernel's; `known` says which are numbers there."""

    def __init__(self, known: Callable[[Dim], Dim], values: Sequence[Value]) -> None:
        self._known = known
        self._dims = {known(d) for v in values for d in xt.shape_of(v)}
        self.values: list[Dim] = []
        self._name_of: dict[Dim, Dim] = {}

    def dim(self, d: Dim) -> Dim:
        d = self._known(d)
        if isinstance(d, int):
            return d
        if d not in self._name_of:
            number, part = _multiple(d)
            if number > 1 and part in self._dims:
                self._name_of[d] = number * self.dim(part)
            else:
                self._name_of[d] = sym(f"d{len(self.values)}")
                self.values.append(d)
        return self._name_of[d]

    def type_of(self, value: Value) -> Type:
        t = ir.RankedTensorType(value.type)
        if t.encoding is None:
            return t
        return xt.tensor_type([self.dim(d) for d in xt.shape_of(t)], t.element_type)

    def attributes(self, op: Operation) -> dict[str, Attribute]:
        out = {name: op.attributes[name] for name in op.attributes}
        cls = xt.op_class(op)
        for name, f in cls.attribute_fields.items() if cls else ():
            if name == "symbol" and f.kind == "str":
                out[name] = f.encode(bare_symbol(self.dim(sym(f.decode(out[name])))))
            elif f.kind == "dims" and name in out:
                out[name] = f.encode(tuple(self.dim(d) for d in f.decode(out[name])))
        return out


def _yielded_again(terminator: Operation, group: Group, outputs: Sequence[Value]) -> list[tuple[int, Value]]:
    """What of the `outputs` a step of a loop yields several times, as a state and as a result, with its places behind
    the first: the kernel writes each, where there were copies else. Not what loops write, or what is updated in place.
    """
    if terminator.name != "xtv.yield" or any(n.kind == "opaque" or IN_PLACE in n.op.attributes for n in group.nodes):
        return []
    yielded = list(terminator.operands)
    return [(n, v) for n, v in enumerate(yielded) if v in outputs and yielded.index(v) < n]


def _binding(op: Operation) -> tuple[Dim, Dim] | None:
    """The symbol that `op` defines by its data, and its upper bound."""
    if "symbol" not in op.attributes:
        return None
    a, x = xt.attrs_of(op), xt.shape_of(op.operands[0])
    return sym(a.symbol), product(x) if getattr(a, "flat", True) else x[a.axis % len(x)]


def _ordered(graph: Graph, groups: Sequence[Group], group_of: dict[int, Group]) -> list[Node | Group]:
    """Host nodes and groups so that what they need comes first; otherwise in the order of their last op."""
    done: set[int] = set()
    out: list[Node | Group] = []

    def place(unit: Node | Group) -> None:
        stack: list[tuple[Node | Group, bool]] = [(unit, False)]
        while stack:
            u, ready = stack.pop()
            if ready:
                out.append(u)
                continue
            if id(u) in done:
                continue
            done.add(id(u))
            stack.append((u, True))
            members = [u] if isinstance(u, Node) else u.body()
            needed = {p.index: p for n in members for p in n.needed if p.index >= 0}    # others stay where they are
            for _, p in sorted(needed.items(), reverse=True):
                producer = group_of.get(p.index, p)
                if id(producer) not in done:
                    stack.append((producer, False))

    for n in graph.nodes:
        if n.index not in group_of:
            place(n)
        elif group_of[n.index].nodes[-1] is n:
            place(group_of[n.index])
    return out


def _replace_in(op: Operation, old: Value, new: Value) -> None:
    """Replaces uses of `old` in `op` and its regions."""
    for i, v in enumerate(op.operands):
        if v == old:
            op.operands[i] = new
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _replace_in(inner.operation, old, new)


def _multiple(d: Expr) -> tuple[int, Dim]:
    """``8*a`` as 8 and a: the number is 1 where `d` is no multiple."""
    if len(d.terms) != 1:
        return 1, d
    (atoms, number), = d.terms
    return number, Expr({atoms: 1})
