"""Imports a PyTorch program as a module of the xt dialect: ``load(program) -> (module, weights)``.

The walk: :mod:`capture` makes a :class:`TorchGraph` (the one part that needs torch), :class:`GraphImporter` makes
``@main`` with its symbolic inputs and visits the nodes in order; each is built by its op's converter (:mod:`registry`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, Location, Module, Value, func_d, ir
from xcc.context import shared_context
from xcc.diagnostics import CompilerBug, UserError
from xcc.dialects import xt
from xcc.dialects.xt.collective import MESH, mesh_attribute
from xcc.dialects.xt.types import TensorType
from xcc.frontends.shared.helpers import full, with_ones
from xcc.frontends.torch import registry
from xcc.frontends.torch.complex import from_pairs
from xcc.frontends.torch.context import Bound, Complex, Context, Number, place_of, resolve, spec_type
from xcc.frontends.torch.graph import (
    HIGHEST,
    Input,
    Node,
    Output,
    Ref,
    SizeSpec,
    Spec,
    TensorSpec,
    TorchGraph,
    is_complex,
    refs_of,
)
from xcc.frontends.torch.layout import inverse
from xcc.frontends.torch.program import TorchProgram, captured
from xcc.frontends.torch.rounded import allow_rounding, precision_of
from xcc.runtime.mesh import Mesh
from xcc.symbolic import Dim
from xcc.weights import WeightStore

DimOption = int | tuple[int, int]

def load(model: Any, dims: Mapping[str, DimOption] | None = None,
         fix: Mapping[str, Any] | None = None) -> tuple[Module, WeightStore]:
    """Imports a .pt2 file, a ``torch.export.ExportedProgram`` or a captured one; returns the xt module and its weights.

    `dims` fixes a symbolic dim (``{"batch": 4}``) or bounds it (``{"batch": (1, 64)}``). Raises UserError for what
    cannot be read or has an op without converter; all of these are in one message.
    """
    if fix:
        raise UserError("a PyTorch program has its constants already: export the model with the value of "
                        f"'{next(iter(fix))}' instead of fixing it")
    program = captured(model)
    weights = WeightStore()
    name = str(model) if isinstance(model, str | os.PathLike) else program.graph.name
    with shared_context(), ir.Location.file(name, 0, 0):
        return GraphImporter(program, dict(dims or {}), weights).run(), weights


class GraphImporter:
    """One graph: `env` holds the xt value of each result."""

    def __init__(self, program: TorchProgram, dims: dict[str, DimOption], weights: WeightStore) -> None:
        self.graph = program.graph
        self.program = program
        self.weights = weights
        self.env: dict[Ref, Bound] = {}
        self.fixed: dict[str, Dim] = {n: o for n, o in dims.items() if isinstance(o, int)}
        self.bounds = self._bounds(dims)
        self._read = {r for g in self.graph.with_bodies()
                      for value in (*(a for n in g.nodes for _, a in n.args), *(o.value for o in g.outputs))
                      for r in refs_of(value)}
        self._specs = self.graph.specs()
        self.draws = 0      # of random numbers, until now
        self._stored: dict[int, str] = {}       # id of an array -> its name in the store

    def run(self) -> Module:
        self._check_supported(self.graph)
        arguments = self.graph.arguments()
        module = ir.Module.create()
        if self.graph.mesh:
            module.operation.attributes[MESH] = mesh_attribute(Mesh.parse(self.graph.mesh))
        with ir.InsertionPoint(module.body):
            main = func_d.FuncOp("main", ir.FunctionType.get([self._input_type(i).mlir() for i in arguments], []))
        with ir.InsertionPoint(main.add_entry_block()):
            for i, value in zip(arguments, main.arguments, strict=True):
                self.env[Ref(i.name)] = xt.transpose(value, perm=inverse(i.order)) if i.order else value
            for i in self.graph.inputs:
                if i.kind in ("parameter", "buffer", "constant") and not i.mutated and Ref(i.name) in self._read:
                    self.env[Ref(i.name)] = self._weight(i)
            for node in self.graph.nodes:
                self._node(node)
            results = [self._output(o) for o in self.graph.outputs]
            func_d.ReturnOp(results)
        allow_rounding(module, self.graph.rounded)
        self._finish(module, main, arguments, results)
        return module

    def dim(self, text: str) -> Dim:
        """The dim that a size's text says, with the sizes that the options fix."""
        dim = symbolic.parse(text)
        return symbolic.substitute(dim, self.fixed) if self.fixed else dim

    def type_of(self, node: Node, result: int = 0) -> TensorType:
        """The type that torch gives a result."""
        spec = node.results[result]
        if isinstance(spec, SizeSpec):
            raise CompilerBug(f"{place_of(node)}: result {result} is a size, no tensor")
        if not isinstance(spec, TensorSpec):
            raise CompilerBug(f"{place_of(node)}: result {result} is no tensor")
        try:
            return spec_type(spec, self.dim)
        except KeyError:
            raise _no_type(place_of(node), spec) from None

    def spec_of(self, ref: Ref) -> Spec:
        """What torch says of a value."""
        return self._specs.get(ref)

    def seed(self) -> Value:
        """The program's input that random numbers depend on."""
        seed = next(self.env[Ref(i.name)] for i in self.graph.inputs if i.kind == "seed")
        assert not isinstance(seed, Number | Complex | int | symbolic.Expr)
        return seed

    def precision(self, kind: str) -> str:
        return precision_of(kind, self.graph.rounded)

    def next_offset(self) -> int:
        """0, 1, ...: one for each draw of random numbers."""
        self.draws += 1
        return self.draws - 1

    def run_body(self, name: str, operands: Sequence[Value]) -> list[Value]:
        """Builds the subgraph `name` of `operands` at the current place; its results."""
        graph = dict(self.graph.subgraphs)[name]
        shared = tuple(i for i in self.graph.inputs if i.kind in ("constant", "seed"))
        whole = replace(graph, inputs=(*graph.inputs, *shared))
        body = GraphImporter(replace(self.program, graph=whole), {}, self.weights)
        body.fixed, body.draws = self.fixed, self.draws
        body.env = {Ref(i.name): value for i, value in zip(graph.inputs, operands, strict=True)}
        body.env |= {r: self.env[r] for r in map(Ref, (i.name for i in shared)) if r in self.env}
        for node in body.graph.nodes:
            body._node(node)
        self.draws = body.draws
        return [body._output(o) for o in body.graph.outputs]

    def is_read(self, name: str, result: int) -> bool:
        return Ref(name, result) in self._read

    def _check_supported(self, graph: TorchGraph) -> None:
        missing: dict[str, str] = {}
        for own in graph.with_bodies():
            specs = own.specs()
            for op, n in ((registry.converter_name(n, specs), n) for n in own.nodes):
                if registry.lookup(op) is None:
                    missing.setdefault(n.op if op == n.op else f"{n.op} of complex numbers", n.source)
        if missing:
            listed = "; ".join(f"{op}" + (f" ({source})" if source else "") for op, source in missing.items())
            raise UserError(f"no converter for {listed}: compile the model with torch.compile(backend='xcc'), which "
                            "leaves such ops to torch, or write it without them (docs/aten-ops.md lists what there is)")

    def _input_type(self, i: Input) -> TensorType:
        if not isinstance(i.spec, TensorSpec):
            return TensorType((), "i64")
        try:
            type_ = spec_type(i.spec, self.dim)
            return type_.with_shape([type_.shape[d] for d in i.order]) if i.order else type_
        except KeyError:
            raise _no_type(f"input '{i.name}'", i.spec) from None

    def _weight(self, i: Input) -> Value | Complex:
        array = self.program.weights[i.target]
        value = xt.weight(self._stored_name(i), tuple(array.shape), array.dtype)
        return from_pairs(value) if is_complex(i.spec) else value

    def _stored_name(self, i: Input) -> str:
        """The name of the input's array in the store, which holds it once."""
        array = self.program.weights[i.target]
        if id(array) not in self._stored:
            self._stored[id(array)] = self.weights.add(i.target, array)
        return self._stored[id(array)]

    def _output(self, output: Output) -> Value:
        resolved = resolve(output.value, self.env, self.dim)
        if isinstance(resolved, Number):
            return resolved.value
        if isinstance(resolved, Complex):
            raise UserError(f"result '{output.name}' has complex numbers: return torch.view_as_real of it")
        if isinstance(resolved, int) and not isinstance(resolved, bool):
            return xt.scalar(resolved, "i64")
        if isinstance(resolved, symbolic.Expr):
            return xt.dim(value=resolved)
        if isinstance(resolved, bool | float):
            return xt.scalar(resolved, "i1" if isinstance(resolved, bool) else "f64")
        return xt.transpose(resolved, perm=output.order) if output.order else resolved

    def _node(self, node: Node) -> None:
        converter = registry.lookup(registry.converter_name(node, self._specs))
        assert converter is not None
        arguments = {name: resolve(value, self.env, self.dim) for name, value in node.args}
        with _location(node):
            try:
                results = self._empty(node) if _is_empty(node) else converter(Context(node, arguments, self))
            except UserError as e:
                if node.op not in str(e):
                    e.message = f"{place_of(node)}: {e}"
                raise
            except CompilerBug:
                raise
            except Exception as e:
                raise CompilerBug(f"{place_of(node)}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
                                  ) from e
            for n, value in enumerate(results if isinstance(results, tuple | list) else (results,)):
                if value is not None:
                    self._bind(node, n, value)

    def _empty(self, node: Node) -> list[Value]:
        """Results without elements, whatever the op."""
        return [full(t.shape, 0, t.dtype) for t in (self.type_of(node, n) for n in range(len(node.results)))]

    def _bind(self, node: Node, n: int, value: Value | Complex | Dim) -> None:
        spec = node.results[n] if n < len(node.results) else None
        if isinstance(spec, TensorSpec) and not isinstance(value, Complex):
            assert not isinstance(value, int | symbolic.Expr)
            made = TensorType.of(value)
            if made.dtype != spec.dtype or made.rank != len(spec.shape):
                raise CompilerBug(f"{place_of(node)}: result {n} became {made}, torch has "
                                  f"{spec.dtype}[{', '.join(map(str, spec.shape))}]")
            self.env[Ref(node.name, n)] = Number(value) if spec.scalar else with_ones(value, spec.shape)
        else:
            self.env[Ref(node.name, n)] = value

    def _bounds(self, dims: dict[str, DimOption]) -> dict[str, tuple[int, int]]:
        known = {name: (low, HIGHEST if high is None else high) for name, low, high in self.graph.bounds}
        for name, option in dims.items():
            if name not in known:
                raise UserError(f"the program has no dimension '{name}'; there are "
                                f"{', '.join(map(repr, known)) or 'no symbolic dimensions'}")
            low, high = (option, option) if isinstance(option, int) else option
            if not 0 <= low <= high:
                raise UserError(f"dimension '{name}': {option} is not a size, nor bounds in increasing order")
            known[name] = (low, high)
        return {name: b for name, b in known.items() if name not in self.fixed}

    def _attributes(self, i: Input) -> dict[str, Attribute]:
        """What else @main says of an argument: the symbol that a number is, the first value of state."""
        if i.kind == "size":
            assert isinstance(i.spec, SizeSpec)
            return {"xt.values": ir.ArrayAttr.get([ir.StringAttr.get(i.spec.text)])}
        return {"xt.state": ir.StringAttr.get(self._stored_name(i))} if i.target else {}

    def _finish(self, module: Module, main: Any, arguments: list[Input], results: list[Value]) -> None:
        """Result types, names of arguments and results, bounds of symbols."""
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(main.type.inputs, [r.type for r in results]))
        text = ir.StringAttr.get
        names = {i.name: i.target or i.name for i in arguments}     # state is called as in the user's model
        given = [{"xt.name": text(names[i.name])} | self._attributes(i) for i in arguments]
        made = [{"xt.name": text(o.name)} | ({"xt.updates": text(names[o.updates])} if o.updates else {})
                for o in self.graph.outputs]
        for key, each in (("arg_attrs", given), ("res_attrs", made)):
            main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(attributes) for attributes in each])
        if self.bounds:
            i64 = ir.IntegerType.get_signless(64)
            module.operation.attributes["xt.dims"] = ir.DictAttr.get(
                {k: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, x) for x in b]) for k, b in self.bounds.items()})
        try:
            module.operation.verify()
        except ir.MLIRError as e:
            raise CompilerBug(f"importing gave an inconsistent module: {str(e).splitlines()[0]}") from None


def _is_empty(node: Node) -> bool:
    """Whether all that the node gives is known to have no elements."""
    return bool(node.results) and not node.new and not any(map(is_complex, node.results)) \
        and all(isinstance(spec, TensorSpec) and 0 in spec.shape for spec in node.results)


def _no_type(where: str, spec: TensorSpec) -> UserError:
    return UserError(f"{where}: element type {spec.dtype} is not supported: write the model without it, or compile it "
                     "with torch.compile(backend='xcc'), which leaves such ops to torch")


_FILE_LINE = re.compile(r"(.+):(\d+), in ")


def _location(node: Node) -> Location:
    """The node's name, at the user's line."""
    found = _FILE_LINE.match(node.source)
    if found is None:
        return ir.Location.name(node.name)
    return ir.Location.name(node.name, ir.Location.file(Path(found[1]).name, int(found[2]), 0))
