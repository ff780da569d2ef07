"""Reads the nodes of one FX graph of ATen ops into plain data."""

from __future__ import annotations

from typing import Any

import torch

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.frontends.torch import compat
from xcc.frontends.torch.dtypes import name_of
from xcc.frontends.torch.fx_facts import (
    attribute_of,
    counts,
    draws,
    function_name,
    is_ragged,
    only_checked,
    operand,
    order_of_node,
    plain,
    source_of,
)
from xcc.frontends.torch.graph import (
    DType,
    Input,
    Node,
    Output,
    Ref,
    Size,
    SizeSpec,
    Spec,
    Subgraph,
    TensorSpec,
    TorchGraph,
)
from xcc.frontends.torch.repeated import STATE_BYTES, Draw, draw_of
from xcc.frontends.torch.sizes import NoSize
from xcc.frontends.torch.slices import slice_length
from xcc.frontends.torch.symbols import Symbols

__all__ = ["GraphReader"]

SLICES = ("aten.slice.Tensor", "aten.slice_copy.Tensor")

SEED = Input("seed", "seed", TensorSpec("i64", ()))
"""An input that programs with random numbers have: a run with the same seed draws the same ones."""


class GraphReader:
    """Inputs, nodes, lifted constants (with the seed, where one is needed) and subgraphs of `module`, in order."""

    def __init__(self, module: torch.fx.GraphModule, symbols: Symbols) -> None:
        self.module = module
        self.symbols = symbols
        self.env: dict[Any, Any] = {}
        self.nodes: list[Node] = []
        self.constants: list[Input] = []
        self.values: dict[str, Any] = {}        # target -> tensor, of the constants
        self.subgraphs: list[tuple[str, TorchGraph]] = []
        self.prefix = ""                        # of the names of constants
        self.written: dict[str, Any] = {}       # placeholder -> the value that it has when the program has run

    def input(self, node: torch.fx.Node, kind: str, target: str = "", strided: bool = False) -> Input:
        """The placeholder `node`, bound; `strided`: its dims lie in memory as the traced tensor's do."""
        if is_ragged(node.meta.get("val")):
            self.env[node] = Ref(node.name)
            return Input(node.name, "ragged", None)
        spec = self.spec(node.meta.get("val"))
        if isinstance(spec, SizeSpec):
            self.env[node] = Size(spec.text)
        else:
            self.env[node] = Ref(node.name)
        return Input(node.name, kind, spec, target, order=order_of_node(node) if strided else ())

    def bind_constant(self, node: torch.fx.Node, value: Any) -> None:
        """A placeholder that is a Python value known to the export."""
        self.env[node] = value

    def read(self) -> None:
        checked = only_checked(self.module.graph)
        for node in self.module.graph.nodes:
            if node in checked:
                continue
            if node.op == "get_attr":
                self._attribute(node)
            elif node.op == "call_function":
                self._call(node)
            elif node.op not in ("placeholder", "output"):
                raise UserError(f"{source_of(node)}: a {node.op} of '{node.target}' is no ATen op")

    def argument(self, value: Any) -> Any:
        """What a node is given, as plain data."""
        if isinstance(value, torch.fx.Node):
            return self.env.get(value)
        if isinstance(value, list | tuple):
            return tuple(self.argument(v) for v in value)
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, torch.dtype):
            return DType(name_of(value))
        if isinstance(value, torch.device | torch.layout):
            return None
        if isinstance(value, torch.memory_format):
            return str(value).removeprefix("torch.")
        if compat.is_group(value):
            return compat.group_name(value)
        if isinstance(value, slice):
            return self.argument((value.start, value.stop, value.step))
        return value

    def spec(self, value: Any) -> Spec:
        """The type of a node's value."""
        if isinstance(value, torch.Tensor):
            strides = value.stride() if value.layout == torch.strided else None
            return TensorSpec(name_of(value.dtype), tuple(plain(self.symbols.dim(d)) for d in value.shape),
                              None if strides is None else tuple(self._stride(s) for s in strides))
        if isinstance(value, torch.SymInt | int) and not isinstance(value, bool):
            return SizeSpec(str(self.symbols.dim(value)))
        if isinstance(value, torch.SymFloat | float):
            return TensorSpec("f64", (), scalar=True)
        if isinstance(value, torch.SymBool | bool):
            return TensorSpec("i1", (), scalar=True)
        return None

    def _stride(self, value: Any) -> int | str:
        try:
            return plain(self.symbols.dim(value))
        except NoSize:
            return -1

    def _size(self, value: Any) -> Any:
        dim = self.symbols.dim(value)
        return dim if isinstance(dim, int) else Size(str(dim))

    def _attribute(self, node: torch.fx.Node) -> None:
        value = attribute_of(self.module, node)
        if isinstance(value, torch.fx.GraphModule):
            self.env[node] = Subgraph(str(node.target))
            self.subgraphs.append((str(node.target), self._subgraph(str(node.target), value)))
            return
        if not isinstance(value, torch.Tensor):
            self.env[node] = value
            return
        name, target = f"{self.prefix}{node.name}", f"{self.prefix}{node.target}"
        self.constants.append(Input(name, "constant", self.spec(value), target))
        self.values[target] = value
        self.env[node] = Ref(name)

    def _subgraph(self, name: str, module: torch.fx.GraphModule) -> TorchGraph:
        """The body of a higher-order op. Its constants, called after it, and the seed are those of the whole."""
        reader = GraphReader(module, self.symbols)
        reader.prefix = f"{self.prefix}{name}."
        inputs = [reader.input(n, "user") for n in module.graph.nodes if n.op == "placeholder"]
        reader.read()
        out = next(n for n in module.graph.nodes if n.op == "output").args[0]
        results = out if isinstance(out, tuple | list) else (out,)
        outputs = tuple(Output(f"out{n}", reader.argument(r)) for n, r in enumerate(results))
        self.values |= reader.values
        self.constants += [c for c in reader.constants if c not in self.constants]
        return TorchGraph(tuple(inputs), tuple(reader.nodes), outputs, subgraphs=tuple(reader.subgraphs))

    def _call(self, node: torch.fx.Node) -> None:
        name = str(node.target) if isinstance(node.target, torch._ops.OpOverload) else ""
        function = getattr(node.target, "__name__", "")
        if name == "aten.copy_.default" and operand(node).op == "placeholder":
            self.env[node] = self.written[operand(node).name] = self.argument(node.args[1])
            return
        if function == "getitem" and not name:
            source, index = (self.argument(a) for a in node.args)
            self.env[node] = Ref(source.name, index) if isinstance(source, Ref) else source[index]
            return
        draw = draw_of(node)
        if draw is not None:
            self._repeatable(node, draw)
            return
        value = compat.value_of(node)
        if isinstance(value, torch.SymInt | int) and not isinstance(value, bool) and self._known(node, value):
            return
        if SEED not in self.constants and draws(node):
            self.constants.append(SEED)
        results = tuple(value) if isinstance(value, tuple | list) else (value,)
        if name in SLICES:
            self._slice(node, value)
        new = tuple(self._define(node, results))
        try:
            specs = tuple(self.spec(r) for r in results)
        except NoSize as e:
            if not isinstance(value, torch.SymInt):
                raise UserError(f"{source_of(node)}: {name or function}: the size {e} is not supported: "
                                "sizes are sums, products, quotients, min and max of whole numbers") from None
            specs = (TensorSpec("i64", (), scalar=True),)
        self.nodes.append(Node(node.name, name or function_name(node.target), tuple(self._arguments(node)), specs,
                               source_of(node), new))
        self.env[node] = Ref(node.name)
        if isinstance(value, torch.SymInt) and new:
            self.env[node] = self._size(value)

    def _repeatable(self, node: torch.fx.Node, draw: Draw) -> None:
        """The random op itself, with its draw's state as an argument; a state that is saved is a node before it."""
        value = draw.value()
        results = tuple(value) if isinstance(value, tuple | list) else (value,)
        self.env[node] = Ref(node.name)
        if draw.state is not None:
            state = self.argument(draw.state)
        else:
            state = Ref(f"{node.name}_state")
            self.env[node] = (state, Ref(node.name))
            if SEED not in self.constants:
                self.constants.append(SEED)
            self.nodes.append(Node(state.name, "xcc.draw_state.default", (), (TensorSpec("ui8", (STATE_BYTES,)),),
                                   source_of(node)))
        arguments = (*self._bound(draw.op, draw.args, draw.kwargs), ("xcc_state", state))
        self.nodes.append(Node(node.name, str(draw.op), arguments, tuple(map(self.spec, results)), source_of(node)))

    def _known(self, node: torch.fx.Node, value: Any) -> bool:
        """Whether the number that `node` gives is an expression of sizes that are known before it."""
        try:
            dim = self.symbols.dim(value)
        except NoSize:
            return False
        if isinstance(value, torch.SymInt) and any(s not in self.symbols.known for s in value.node.expr.free_symbols):
            return False
        self.env[node] = dim if isinstance(dim, int) else Size(str(dim))
        return True

    def _slice(self, node: torch.fx.Node, value: Any) -> None:
        """Where torch leaves a slice's size open, because it may begin before or behind the first element, the size is
        that which the arguments say."""
        given = dict(self._arguments(node))
        axis, step = given["dim"], given["step"]
        start, end = (symbolic.parse(given[n].text) if isinstance(given[n], Size) else given[n]
                      for n in ("start", "end"))
        if self._is_new(value.shape[axis]) and not any(isinstance(d, Ref) for d in (start, end)):
            size = self.symbols.dim(operand(node).meta["val"].shape[axis])
            length = slice_length(start, end, step, size, self.symbols.ranges())
            self.symbols.define(value.shape[axis].node.expr, length)

    def _is_new(self, size: Any) -> bool:
        """Whether it is a symbol that no value before has."""
        return isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and size.node.expr not in self.symbols.known

    def _define(self, node: torch.fx.Node, results: tuple[Any, ...]) -> Any:
        """Symbols that first stand in the results of `node`: (name, result, dim)."""
        for n, r in enumerate(results):
            sizes: Any = enumerate(r.shape) if isinstance(r, torch.Tensor) else [(-1, r)]
            for d, size in sizes:
                if not self._is_new(size):
                    continue
                if d >= 0 and not counts(node.target):
                    raise UserError(f"{source_of(node)}: {node.target}: torch does not say what the size of its "
                                    "result is; sizes must be known from those of the inputs")
                yield self.symbols.new(size, f"{node.name}_size" if d >= 0 else "item"), n, d

    def _arguments(self, node: torch.fx.Node) -> Any:
        """Every argument by its name, defaults included."""
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            yield from ((f"arg{n}", self.argument(a)) for n, a in enumerate(node.args))
            yield from ((k, self.argument(v)) for k, v in node.kwargs.items())
            return
        yield from self._bound(target, node.args, node.kwargs)

    def _bound(self, target: Any, args: Any, kwargs: Any) -> Any:
        for n, a in enumerate(target._schema.arguments):
            if n < len(args):
                yield a.name, self.argument(args[n])
            elif a.name in kwargs:
                yield a.name, self.argument(kwargs[a.name])
            else:
                yield a.name, self.argument(a.default_value)
