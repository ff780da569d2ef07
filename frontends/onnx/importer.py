"""Imports an ONNX model as a module of the xt dialect: ``load(path) -> (module, weights)``.

The walk: :mod:`reader` parses and checks the file, :class:`ModelImporter` makes ``@main`` with its symbolic inputs, and
:class:`GraphImporter` visits the nodes in order. For each node the result is, in this order of preference,

1. known at import: a constant computed from constants, or symbolic shape arithmetic (:mod:`propagate`),
2. what the op's converter builds (:mod:`registry`),
3. what the op's function body builds (model-local functions, then the schema's own).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from onnx import ModelProto, ValueInfoProto

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.bounds import Bounds
from xcc.context import shared_context
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.frontends.onnx.context import RuntimeShape, Tensor, Value, flatten
from xcc.frontends.onnx.flags import Flags
from xcc.frontends.onnx.functions import Functions
from xcc.frontends.onnx.graph import GraphImporter
from xcc.frontends.onnx.input_types import InputTypes, tensor_kind
from xcc.frontends.onnx.input_values import InputValues
from xcc.frontends.onnx.reader import Source, read
from xcc.frontends.onnx.settled import Sizes
from xcc.frontends.onnx.unsupported import check_supported
from xcc.symbolic import Dim
from xcc.weights import WeightStore

DimOption = int | tuple[int, int]


def load(model: str | os.PathLike[str] | bytes | ModelProto, dims: Mapping[str, DimOption] | None = None,
         fix: Mapping[str, Any] | None = None) -> tuple[Any, WeightStore]:
    """Imports a model given as a path, bytes or a proto; returns the xt module and its weights.

    `dims` fixes a symbolic dim (``{"batch": 4}``) or bounds it (``{"batch": (1, 64)}``); an unnamed dim `i` of input
    `x` is called ``x_dim<i>`` (``x_dim<i>_1`` where another dim has that name). Integer inputs whose values decide
    sizes have their elements as symbols (``s_0``, ``s_1``; ``s`` for a scalar): what takes such values says so when it
    is imported, and then the import starts again with them, as it does for sums of flags that do. `fix` turns inputs
    into constants (numbers, nested lists or arrays of any dtype), which a model needs whose ranks, axes or branches
    follow from the values of an input. Raises UserError for what cannot be read, is malformed or is not supported.
    """
    source = read(model)
    values: frozenset[str] = frozenset()
    sums: frozenset[str] = frozenset()
    with shared_context(), ir.Location.file(source.name, 0, 0):
        while True:
            importer = ModelImporter(source, dict(dims or {}), dict(fix or {}), values, sums)
            try:
                return importer.run(), importer.weights
            except UserError as e:
                more = importer.values.among(e.inputs) if isinstance(e, RuntimeShape) else frozenset()
                counts = e.sums - sums if isinstance(e, RuntimeShape) and not more else frozenset()
                if not more and not counts:
                    raise importer.values.explained(e) from None
                values, sums = values | more, sums | counts


class ModelImporter:
    """What all graphs of one model share: the source, the weight store, the symbols."""

    def __init__(self, source: Source, dims: dict[str, DimOption], fix: dict[str, Any],
                 values: frozenset[str] = frozenset(), sums: frozenset[str] = frozenset()) -> None:
        self.source = source
        self.dims = dims
        self.fix = fix
        self.weights = WeightStore()
        self.weights.files = source.files
        self.opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in source.model.opset_import}
        self.functions = Functions(source.model)
        self.dim_params = {d.dim_param for i in source.model.graph.input for d in tensor_kind(i).shape.dim}
        self.symbols: dict[str, tuple[int, int] | None] = {}
        self.counted: set[str] = set()      # those of sizes that only a run can tell
        self.limits: set[str] = set()       # those of sizes that loops asked a limit for
        self.lengths: dict[object, str] = {}   # those of slices, by their bounds and dims
        self.ranges: dict[object, tuple[Dim, Dim]] = {}    # first and last of what loops count
        self.unrolls = False                # whether a loop's body is tried that may be unrolled
        self.sizes = Sizes(self)
        self.values = InputValues(self, values)
        self.flags = Flags(self, sums)
        self.weight_names: dict[int, str] = {}
        self.counter = 0
        self.arguments: dict[Any, str] = {}
        self.entry: Any = None

    @property
    def bounds(self) -> dict[str, tuple[int, int]]:
        """The bounds given for symbols."""
        return {name: b for name, b in self.symbols.items() if b is not None}

    @property
    def known(self) -> Bounds:
        """The bounds of symbols, those of sizes that a run counts and of inputs' values too: 0 and more."""
        return {**dict.fromkeys(self.counted, (0.0, inf)), **self.bounds}

    def run(self) -> Any:
        graph = self.source.model.graph
        check_supported(self.source, self.opsets, self.functions)
        initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        inputs = [i for i in graph.input if i.name not in initializers and i.name not in self.fix]
        free = [i for i in graph.input if i.name not in initializers and i.name in self.fix]
        given = InputTypes(self)
        constants = {i.name: given.fixed(i) for i in free}
        types = [given.type_of(i) for i in inputs]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func_d.FuncOp("main", ir.FunctionType.get(types, []))
        self.entry = entry = main.add_entry_block()
        self.arguments = {argument: info.name for info, argument in zip(inputs, entry.arguments, strict=True)}
        with ir.InsertionPoint(entry):
            scope = GraphImporter(self, graph, entry)
            arguments = [(info.name, argument) for info, argument in zip(inputs, entry.arguments, strict=True)]
            for (name, _), tensor in zip(arguments, self.values.tensors(arguments), strict=True):
                scope.bind(name, tensor)
            self._check_options([i.name for i in (*inputs, *free)])
            for name, array in constants.items():
                scope.bind(name, Tensor.of_array(array))
            values = scope.run_tensors()
            self._check_used()
            results = [scope.materialize(t) for t in flatten(values)]
            func_d.ReturnOp(results)
        names = [n for o, v in zip(graph.output, values, strict=True) for n in output_names(o.name, v)]
        self._finish(module, main, inputs, names, results)
        return module

    def _finish(self, module: Any, main: Any, inputs: list[ValueInfoProto], outputs: list[str],
                results: list[Any]) -> None:
        """Result types, names of arguments and results, bounds of symbols."""
        types = main.type
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(types.inputs, [r.type for r in results]))
        arguments = [{"xt.name": ir.StringAttr.get(i.name), **self.values.attributes(i.name)} for i in inputs]
        named = [{"xt.name": ir.StringAttr.get(name)} for name in outputs]
        for key, each in (("arg_attrs", arguments), ("res_attrs", named)):
            main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(attributes) for attributes in each])
        bounds = self.bounds
        if bounds:
            i64 = ir.IntegerType.get_signless(64)
            module.operation.attributes["xt.dims"] = ir.DictAttr.get(
                {k: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, x) for x in b]) for k, b in bounds.items()})
        try:
            module.operation.verify()
        except ir.MLIRError as e:
            raise UserError(f"{self.source.name}: the model is inconsistent: {str(e).splitlines()[0]}") from None

    def symbol(self, name: str) -> Dim:
        """The dim called `name`: a fixed number or a symbol."""
        option = self.dims.get(name)
        if isinstance(option, int):
            self.symbols[name] = None
            return option
        self.symbols[name] = option
        return symbolic.sym(name)

    def fresh_symbol(self, hint: str) -> str:
        """The name of a new symbol for a size that only a run can tell."""
        name = self.unused(hint or "dim")
        self.symbols[name] = None
        self.counted.add(name)
        return name

    def unused(self, name: str) -> str:
        """`name`, with a number behind it where a symbol has it."""
        own, n = name, 0
        while own in self.symbols or own in self.dim_params:
            n += 1
            own = f"{name}_{n}"
        return own

    def limit(self, name: str) -> int | None:
        """The most that the options allow for `name`, a size that only a run can tell; None when they do not say."""
        self.limits.add(name)
        option = self.dims.get(name)
        return option if option is None or isinstance(option, int) else option[1]

    def limits_of(self, name: str) -> tuple[int, int] | None:
        """The bounds that the options give for `name`, a size that only a run can tell."""
        self.limits.add(name)
        option = self.dims.get(name)
        return option if isinstance(option, tuple) and 0 <= option[0] <= option[1] else None

    def count(self, name: str) -> Dim:
        """The symbol `name`, a size within its bounds that a run counts."""
        self.counted.add(name)
        self.symbols[name] = self.limits_of(name)
        return symbolic.sym(name)

    def may_count(self, e: RuntimeShape) -> bool:
        """Whether a run is to count the size that `e` is about: where it can be known by no import that follows."""
        return not (self.unrolls or self.values.among(e.inputs) or e.sums)

    def inputs_behind(self, value: Any) -> tuple[str, ...]:
        """The model's inputs whose values `value` is computed from, walking outside regions only."""
        leaves = list(_leaves(value))
        found = {self.arguments[v] for v in leaves if v in self.arguments}
        return tuple(sorted(found.union(*(self.values.inputs_of(_dims(v)) for v in leaves if v not in self.arguments))))

    def sizes_behind(self, value: Any) -> tuple[str, ...]:
        """The symbols of the dims that `value` is computed from."""
        return tuple(sorted({s for v in _leaves(value) if v not in self.arguments for d in _dims(v)
                             for s in symbolic.symbols_of(d)}))

    def _check_options(self, names: list[str]) -> None:
        for name, option in self.dims.items():
            low, high = (option, option) if isinstance(option, int) else option
            least = low if name in self.values.symbols else 1 if name in self.symbols else 0
            if not least <= low <= high:
                raise UserError(f"dimension '{name}': {option} is not a size, nor bounds in increasing order")
        for name in self.fix:
            if name not in names:
                raise UserError(f"{self.source.name}: there is no input '{name}' to fix; there are {_listed(names)}")

    def _check_used(self) -> None:
        """Refuses options for dims that neither an input has nor a loop asked for."""
        given = {n for n in self.symbols if n not in self.counted or n in self.values.symbols} | self.limits
        unused = [name for name in self.dims if name not in given]
        if unused:
            there = _listed(dict.fromkeys(n for n in (*self.symbols, *self.limits) if n in given))
            raise UserError(f"{self.source.name}: no input has a dimension '{unused[0]}'; "
                            f"there are {there or 'no symbolic dimensions'}")


def _leaves(value: Any) -> Iterator[Any]:
    """What `value` is computed from: arguments of blocks, and values of dims."""
    seen: set[Any] = set()
    todo = [] if value is None else [value]
    while todo:
        v = todo.pop()
        if not isinstance(v.owner, ir.Operation | ir.OpView):
            yield v
        elif v.owner not in seen:
            seen.add(v.owner)
            todo.extend(v.owner.operands)
            if v.owner.name == "xt.dim":
                yield v


def _dims(value: Any) -> tuple[Dim, ...]:
    """Those of the xt.dim that makes `value`; none for any other value."""
    if not isinstance(value.owner, ir.Operation | ir.OpView):
        return ()
    return xt.dims_from_attr(value.owner.attributes["value"])


def output_names(name: str, value: Value) -> list[str]:
    """What the tensors of the output `name` are called: elements of a sequence ``name[0]``, ``name[1]``..."""
    return [name] if isinstance(value, Tensor) else [f"{name}[{i}]" for i in range(len(getattr(value, "elements", ())))]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)


