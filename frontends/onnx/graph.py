"""Imports one graph (the model's, or the body of an If, Loop or Scan) into one block."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto

from xcc import _mlir, symbolic
from xcc._mlir import ir
from xcc.diagnostics import CompilerBug, Misfit, UserError
from xcc.dialects import xt
from xcc.frontends.onnx import registry
from xcc.frontends.onnx.attributes import attributes_of
from xcc.frontends.onnx.constant_floats import computed
from xcc.frontends.onnx.context import (
    Context,
    RanksDiffer,
    Shape,
    Tensor,
    TensorList,
    Value,
    flatten,
    place_of,
)
from xcc.frontends.onnx.functions import domain_of, instantiate, opset_of, with_defaults
from xcc.frontends.onnx.node_order import operands_first
from xcc.frontends.onnx.propagate import propagate
from xcc.frontends.onnx.ratio import Ratio

if TYPE_CHECKING:
    from xcc.frontends.onnx.importer import ModelImporter

SMALL = 64
"""Constants of at most this many elements are xt.constant, larger ones xt.weight."""
MOST_ELEMENTS = 1 << 46
WINDOWS = ("AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv")
SPLITS = 4
"""How many Ifs, one in the other, may hold the rest of a graph."""


class GraphImporter:
    """Names and values of one graph; names of the graphs around it are visible."""

    def __init__(self, model: ModelImporter, graph: GraphProto, block: Any,
                 parent: GraphImporter | None = None) -> None:
        self.model = model
        self.graph = graph
        self.block = block
        self.parent = parent
        self.env: dict[str, Value] = {}
        self.made: dict[int, Any] = {}
        self.kept: list[Tensor] = []
        self.opsets: dict[str, int] = parent.opsets if parent else model.opsets
        self.infos = {v.name: v for v in (*graph.value_info, *graph.output)}
        self.splits: int = parent.splits if parent else 0

    # Names

    def bind(self, name: str, tensor: Value) -> None:
        if name in self.env:
            raise UserError(f"{self.model.source.name}: two values are called '{name}'")
        if isinstance(tensor, Tensor) and prod(d for d in tensor.shape if isinstance(d, int)) > MOST_ELEMENTS:
            raise UserError(f"{self.model.source.name}: the value '{name}' of {self._shown([tensor])} has more "
                            "elements than any memory")
        tensor.name = tensor.name or name
        self.env[name] = tensor

    def find(self, name: str) -> Value | None:
        scope: GraphImporter | None = self
        while scope is not None:
            if name in scope.env:
                return scope.env[name]
            scope = scope.parent
        return None

    def describe(self, node: NodeProto, message: str) -> str:
        return f"{self.model.source.name}: node '{node.name}' ({node.op_type}): {message}"

    def declared_shape(self, name: str) -> Shape | None:
        info: ValueInfoProto | None = self.infos.get(name)
        if info is None or not info.type.tensor_type.HasField("shape"):
            return None
        dims = info.type.tensor_type.shape.dim
        if not all(d.HasField("dim_value") and d.dim_value >= 0 for d in dims):
            return None
        return tuple(int(d.dim_value) for d in dims)

    # Values

    def materialize(self, tensor: Tensor) -> _mlir.Value:
        """The xt value of `tensor`; known data becomes ops here, once for each block that needs it."""
        if tensor.value is not None:
            return tensor.value
        scope: GraphImporter | None = self
        while scope is not None:
            if id(tensor) in scope.made:
                return scope.made[id(tensor)]
            scope = scope.parent
        value = self._constant(tensor) if tensor.const is not None else self._symbolic(tensor)
        self.made[id(tensor)] = value
        self.kept.append(tensor)
        return value

    def _constant(self, tensor: Tensor) -> _mlir.Value:
        array = tensor.const
        assert array is not None
        if array.size <= SMALL:
            return xt.constant(array)
        name = self.model.weight_names.get(id(array))
        if name is None:
            name = self.model.weights.add(tensor.name or "constant", array)
            self.model.weight_names[id(array)] = name
        return xt.weight(name=name, shape=tuple(array.shape), dtype=array.dtype)

    def _symbolic(self, tensor: Tensor) -> _mlir.Value:
        assert tensor.data is not None
        scalars = [self._scalar(d, tensor) for d in tensor.data.reshape(-1)]
        if not tensor.shape:
            return scalars[0]
        rows = [xt.reshape(s, shape=(1,)) for s in scalars]
        flat = rows[0] if len(rows) == 1 else xt.concatenate(*rows, axis=0)
        return flat if len(tensor.shape) == 1 else xt.reshape(flat, shape=tensor.shape)

    def _scalar(self, d: Any, tensor: Tensor) -> _mlir.Value:
        if isinstance(d, symbolic.Expr):
            value = xt.dim(value=d)
            return value if tensor.dtype == np.int64 else xt.convert(value, dtype=tensor.dtype)
        if isinstance(d, Ratio):
            return xt.div(self._scalar(d.top, tensor), self._scalar(d.bottom, tensor))
        return xt.constant(np.array(d, tensor.dtype))

    # Walk

    def run(self) -> list[Any]:
        """Imports initializers and nodes; returns the xt values of the graph's outputs."""
        return [self.materialize(t) for t in flatten(self.run_tensors())]

    def body(self, graph: GraphProto, arguments: Sequence[Value]) -> list[Value]:
        """Imports `graph`, which takes `arguments`, into the current block; returns its outputs."""
        child = self.child(graph, ir.InsertionPoint.current.block)
        for info, value in zip(graph.input, arguments, strict=True):
            child.bind(info.name, value)
        return child.run_tensors()

    def run_tensors(self) -> list[Value]:
        source = self.model.source
        for proto in self.graph.initializer:
            if proto.name not in self.env:
                self.bind(proto.name, Tensor.of_array(source.array(proto)))
        for sparse in self.graph.sparse_initializer:
            self.bind(sparse.values.name, Tensor.of_array(source.dense(sparse)))
        return self._results(operands_first(_named(self.graph.node)))

    def _results(self, nodes: Sequence[NodeProto]) -> list[Value]:
        """Imports `nodes`, the last of the graph; returns the graph's outputs."""
        for n, node in enumerate(nodes):
            try:
                self.node(node)
            except RanksDiffer as e:
                if e.node is not node or self.splits == SPLITS:
                    raise
                return self._split(node, nodes[n + 1:])
        out: list[Value] = []
        for info in self.graph.output:
            tensor = self.find(info.name)
            if tensor is None:
                raise UserError(f"{self.model.source.name}: no node makes the output '{info.name}'")
            out.append(tensor)
        return out

    def _split(self, node: NodeProto, rest: Sequence[NodeProto]) -> list[Value]:
        """Imports the If `node`, whose branches give other ranks, with `rest` in each of its branches."""
        from xcc.frontends.onnx.control import conditional

        context = Context(node, tuple(self._operand(node, name) for name in node.input), {}, 0, self)
        graphs = {a.name: a.g for a in node.attribute}

        def branch(name: str) -> tuple[GraphImporter, list[Value]]:
            tail = self.child(self.graph, ir.InsertionPoint.current.block)
            tail.splits += 1
            for output, value in zip(node.output, tail.child(graphs[name]).run_tensors(), strict=True):
                tail.bind(output, value)
            return tail, tail._results(rest)

        with ir.Location.name(node.name):
            return conditional(context, lambda: branch("then_branch"), lambda: branch("else_branch"))

    def nodes(self, nodes: Sequence[NodeProto]) -> None:
        for node in operands_first(_named(nodes)):
            self.node(node)

    def node(self, node: NodeProto) -> None:
        inputs = tuple(self._operand(node, name) for name in node.input)
        with ir.Location.name(node.name):
            try:
                results = self._convert(node, inputs)
            except UserError as e:
                raise self._located(e, node) from None
            except CompilerBug:
                raise
            except Exception as e:
                raise Misfit(self.describe(node, f"does not fit its operands {self._shown(inputs)}: "
                                                 f"{type(e).__name__}: {_first_line(e)}")) from e
            for name, result in zip(node.output, results or (), strict=False):
                if name and result is not None:
                    value = result if isinstance(result, Value) else Tensor.of_value(result)
                    self.bind(name, self.model.sizes.settled(value))
            if node.op_type in WINDOWS:
                self.model.sizes.windows(flatten([self.env[node.output[0]]])[0])

    def _operand(self, node: NodeProto, name: str) -> Value | None:
        if not name:
            return None
        tensor = self.find(name)
        if tensor is None:
            raise UserError(self.describe(node, f"operand '{name}' is not made by an earlier node, nor an input, nor "
                                                f"an initializer (a missing input, or a cycle)"))
        return tensor

    def _located(self, e: UserError, node: NodeProto) -> UserError:
        if not str(e).startswith(f"{self.model.source.name}: "):
            e.message = self.describe(node, str(e))
        return e

    @staticmethod
    def _shown(inputs: Sequence[Value | None]) -> str:
        return ", ".join(f"{t.dtype}[{', '.join(map(str, t.shape))}]" if isinstance(t, Tensor) else
                         f"a sequence of {len(t.elements)}" if isinstance(t, TensorList) else "none" for t in inputs)

    def _convert(self, node: NodeProto, inputs: tuple[Value | None, ...]) -> Sequence[Any] | None:
        domain = domain_of(node)
        opset = self.opsets.get(domain, 1)
        function = self.model.functions.local(node)
        if function is not None:
            self.expand(node, function)
            return None
        converter = registry.lookup(domain, node.op_type, opset)
        if registry.broadcasts(converter):
            inputs = self.model.sizes.operands(inputs, place_of(node))
        context = Context(node, inputs, attributes_of(node, opset, self.model.source), opset, self)
        known = propagate(context)
        if known is not None:
            return known
        if converter is None:
            node = with_defaults(node, opset)
            body = self.model.functions.schema_body(node, opset, inputs)
            if body is None:
                raise UserError(self.describe(node, f"not supported in opset {opset}"))
            self.expand(node, body)
            return None
        results = computed(context, converter) or converter(context)
        return results if isinstance(results, tuple | list) else (results,)

    def expand(self, node: NodeProto, function: Any) -> None:
        """Imports the function's body in place of the call."""
        self.model.counter += 1
        outer = self.opsets
        self.opsets = opset_of(function, outer)
        try:
            self.nodes(instantiate(function, node, f"{node.name}/{self.model.counter}/"))
        finally:
            self.opsets = outer

    def child(self, graph: GraphProto, block: Any = None) -> GraphImporter:
        """An importer of a body: into `block`, or into this one's block."""
        return GraphImporter(self.model, graph, block or self.block, self)

    def fresh_symbol(self, hint: str) -> str:
        return self.model.fresh_symbol(hint)


def _named(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """`nodes`, those without a name called by their op and place."""
    out = []
    for index, node in enumerate(nodes):
        if not node.name:
            named = NodeProto()
            named.CopyFrom(node)
            named.name = f"{node.op_type}#{index}"
            node = named
        out.append(node)
    return out


def _first_line(e: Exception) -> str:
    return (str(e).strip() or type(e).__name__).splitlines()[0][:200]


