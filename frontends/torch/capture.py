"""From torch to plain data: an ExportedProgram, or a graph that AOTAutograd has made, as a :class:`TorchGraph`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx import GraphModule
from torch.utils import _pytree

from xcc.diagnostics import UserError
from xcc.frontends.torch import compat
from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.flex import composed
from xcc.frontends.torch.fx_facts import is_ragged, order_of_node
from xcc.frontends.torch.fx_nodes import GraphReader
from xcc.frontends.torch.graph import Input, Output, TorchGraph
from xcc.frontends.torch.groups import groups_of
from xcc.frontends.torch.keep import decompositions
from xcc.frontends.torch.lifted import with_one_name_each
from xcc.frontends.torch.naming import output_names
from xcc.frontends.torch.program import TorchProgram
from xcc.frontends.torch.symbols import Symbols

__all__ = ["capture_export", "capture_fx"]

Array = np.ndarray[Any, Any]


def capture_export(program: ExportedProgram) -> TorchProgram:
    """A ``torch.export.ExportedProgram``, or the path of a .pt2 file that holds one. The program stays as it is.

    Weights share their memory with the program's where they are dense and on the host; those that are one tensor there
    are one here.
    """
    compat.check_version()
    if isinstance(program, str | os.PathLike):
        with compat.declared_ops():
            return capture_export(compat.read_program(os.fspath(program)))
    if not isinstance(program, ExportedProgram):
        raise UserError(f"a {type(program).__name__} is no exported program: give torch.export.export(model, args), or "
                        "use torch.compile(model, backend='xcc')")
    program = _decomposed(program)
    symbols = Symbols.of_inputs(_user_inputs(program), program.range_constraints)
    reader = GraphReader(program.graph_module, symbols)
    inputs = _inputs(program, reader)
    reader.read()
    outputs = _outputs(program, reader, inputs)
    written = {o.updates for o in outputs}
    graph = TorchGraph(
        tuple(Input(i.name, i.kind, i.spec, i.target, i.name in written) for i in (*inputs, *reader.constants)),
        tuple(reader.nodes), outputs, symbols.bounds(), _spec_text(program.call_spec.in_spec),
        _spec_text(program.call_spec.out_spec), "model", tuple(reader.subgraphs), *_together(program.graph))
    return TorchProgram(graph, _weights(program, graph.inputs, reader.values))


def capture_fx(module: GraphModule, name: str = "model", rounded: tuple[str, ...] = ()) -> TorchProgram:
    """A graph module of ATen ops whose placeholders and outputs are flat (from AOTAutograd).

    Every placeholder becomes an input of kind user, or size for a Python int. Dims lie in memory as the traced tensors
    have them, where these are dense. Outputs may be sizes, numbers and None. A last ``copy_`` into a placeholder is an
    update of it. rounded: as TorchGraph has it.
    """
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    named = [(n.name, n.meta.get("val")) for n in placeholders if not is_ragged(n.meta.get("val"))]
    symbols = Symbols.of_inputs(named, {}, plain=True)
    reader = GraphReader(module, symbols)
    inputs = [reader.input(n, "size" if isinstance(n.meta.get("val"), int | torch.SymInt) else "user", strided=True)
              for n in placeholders]
    reader.read()
    out = next(n for n in module.graph.nodes if n.op == "output").args[0]
    results = out if isinstance(out, tuple | list) else (out,)
    outputs = tuple(Output(f"out{n}", reader.argument(r), order=order_of_node(r) if isinstance(r, torch.fx.Node)
                           else ()) for n, r in enumerate(results))
    updates = tuple(Output(f"new {i.name}", reader.written[i.name], i.name, i.order) for i in inputs
                    if i.name in reader.written)
    graph = TorchGraph((*inputs, *reader.constants), tuple(reader.nodes), (*outputs, *updates), symbols.bounds(),
                       "", "", name, tuple(reader.subgraphs), *_together(module.graph), rounded)
    with compat.real_tensors():
        return TorchProgram(graph, {i.target: to_numpy(reader.values[i.target]) for i in reader.constants if i.target})


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    try:
        with warnings.catch_warnings(), composed():
            warnings.simplefilter("ignore", FutureWarning)      # torch's own uses of what torch is to change
            return with_one_name_each(program).run_decompositions(decompositions())
    except UserError:
        raise
    except Exception as e:
        raise UserError("torch cannot decompose the exported program (ExportedProgram.run_decompositions): "
                        f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from e


def _together(graph: torch.fx.Graph) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """The mesh of the ranks that run the graph together, and the axes of each process group."""
    groups = groups_of(graph)
    return str(groups.mesh), tuple(groups.axes.items())


def _user_inputs(program: ExportedProgram) -> list[tuple[str, Any]]:
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    return [(spec.arg.name, nodes[spec.arg.name].meta.get("val"))
            for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]


_KINDS = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer", InputKind.CONSTANT_TENSOR: "constant",
          InputKind.USER_INPUT: "user"}


def _inputs(program: ExportedProgram, reader: GraphReader) -> list[Input]:
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    out = []
    for spec in program.graph_signature.input_specs:
        if spec.kind not in _KINDS:
            raise UserError(f"the program's input '{spec.arg.name}' is a {spec.kind.name.lower()}, which xcc does not "
                            "take: export the model without it")
        node = nodes[spec.arg.name]
        if isinstance(spec.arg, ConstantArgument):
            reader.bind_constant(node, spec.arg.value)
            continue
        kind = "size" if isinstance(node.meta.get("val"), int | torch.SymInt) else _KINDS[spec.kind]
        out.append(reader.input(node, kind, spec.target or ""))
    return out


def _outputs(program: ExportedProgram, reader: GraphReader, inputs: Sequence[Input]) -> tuple[Output, ...]:
    by_target = {i.target: i.name for i in inputs if i.target}
    values = next(n for n in program.graph.nodes if n.op == "output").args[0]
    names = iter(output_names(program.call_spec.out_spec, (i.name for i in inputs)))
    out = []
    for spec, value in zip(program.graph_signature.output_specs, values, strict=True):
        updates = ""
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            updates = spec.target
        elif spec.kind not in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            updates = by_target[spec.target]
        name, result = f"new {updates}" if updates else next(names), reader.argument(value)
        if not isinstance(result, str | None):      # which are no arrays
            out.append(Output(name, result, updates))
    return tuple(out)


def _weights(program: ExportedProgram, inputs: Sequence[Input], lifted: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays behind ``Input.target``; a tensor that has two names is one array."""
    seen: dict[Any, Array] = {}
    out = {}
    for i in inputs:
        if not i.target:
            continue
        tensor = lifted.get(i.target)
        if tensor is None:
            tensor = program.state_dict.get(i.target)
        if tensor is None:
            tensor = program.constants[i.target]
        key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()) if tensor.numel() else i.target
        if key not in seen:
            seen[key] = to_numpy(tensor)
        out[i.target] = seen[key]
    return out


def _spec_text(spec: Any) -> str:
    """The nesting as JSON text; "" where a type is not one of Python's own containers."""
    try:
        return str(_pytree.treespec_dumps(spec))
    except (NotImplementedError, TypeError, ValueError):
        return ""
