"""The pass from xt kernels to linalg on tensors."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, Type, Value, arith_d, func_d, ir, owner_op
from xcc.diagnostics import CompilerBug
from xcc.dialects.xt.base import dims_attr, element_type_of, shape_of
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import MACHINE
from xcc.passes.xt.graph.memory_uses import constant_starts
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.dims import DimEmitter
from xcc.passes.xt_to_linalg.build.registry import CONVERTERS, LOOPS, TILES, Op
from xcc.passes.xt_to_linalg.build.types import tensor_of
from xcc.passes.xt_to_linalg.build.view import View
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel, buffer_type
from xcc.symbolic import Dim

FAMILIES = ("ops.conv", "ops.elementwise", "ops.indexing", "ops.matmul", "ops.pad", "ops.quant", "ops.reduce",
            "ops.sampling", "ops.shape", "ops.window", "ops.winograd", "loops.loop_boxes", "loops.loop_fourier",
            "loops.loop_merge", "loops.loop_positions", "loops.loop_sampling", "loops.loop_scan", "loops.loop_scatter",
            "loops.loop_select", "loops.loop_sort", "tiles.tile_combine", "tiles.tile_scan", "tiles.tile_sort")


@register_pass
class XtToLinalg(Pass):
    """Rewrites every kernel function (attribute `xt.kernel`) from xt ops to linalg.generic on tensors.

    Each primitive op becomes at most one generic; movement ops with affine access become part of the indexing maps of
    their users. Composite ops must have been decomposed. See docs/architecture.md, "Kernels (stage `linalg`)".
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        for family in FAMILIES:
            importlib.import_module(f"xcc.passes.xt_to_linalg.{family}")
        for function in list(module.body.operations):
            if "xt.kernel" in function.attributes:
                convert_kernel(function, None if ctx.chip is None else ctx.chip.has_threads,
                               ctx.options.precision if ctx.options is not None else "")


def convert_kernel(old: Operation, threads: bool | None = None, precision: str = "") -> Operation:
    """Replaces one kernel function; returns the new one. threads: as `LoopKernel`; precision: as `Builder`."""
    block = old.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    compute = [op for op in ops[:-1] if op.name != "xt.constant"]
    if len(compute) == 1 and _has_loops(compute[0]):
        new = _convert_loop_kernel(old, block, compute[0], threads)
    else:
        new = _convert_tensor_kernel(old, block, ops, precision)
    old.operation.erase()
    return new


def _has_loops(op: Operation) -> bool:
    """Whether a kernel of `op` alone is a loop kernel or a tile program; some ops are so in place only."""
    name = op.name.split(".", 1)[-1]
    return name in TILES or name in LOOPS and (name not in CONVERTERS or IN_PLACE in op.attributes
                                               and not constant_starts(op))


Kind = tuple[tuple[Dim, ...], Any]


def _new_function(old: Operation, inputs: Sequence[Type], results: Sequence[Type], arguments: Sequence[Kind],
                  outputs: Sequence[Kind]) -> tuple[Operation, dict[str, Value], Operation]:
    """The function at stage linalg with its entry block, its symbols by name, and an anchor for index arithmetic."""
    names = [a.value for a in old.attributes["xt.symbols"]] if "xt.symbols" in old.attributes else []
    index = ir.IndexType.get()
    with ir.InsertionPoint(old):
        new = func_d.FuncOp(ir.StringAttr(old.attributes["sym_name"]).value,
                            ([*inputs, *[index] * len(names)], list(results)), visibility="private")
    for name in list(old.attributes):
        if name not in ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"):
            new.attributes[name] = old.attributes[name]
    new.attributes["xt.symbols"] = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in names])
    new.attributes["xt.arg_dims"] = ir.ArrayAttr.get([dims_attr(d) for d, _ in arguments])
    new.attributes["xt.result_dims"] = ir.ArrayAttr.get([dims_attr(d) for d, _ in outputs])
    entry = new.add_entry_block()
    with ir.InsertionPoint(entry):
        anchor = arith_d.ConstantOp(index, ir.IntegerAttr.get(index, 0))
    return new, dict(zip(names, list(entry.arguments)[len(inputs):], strict=True)), anchor


def _kinds(values: Iterable[Value]) -> list[Kind]:
    return [(shape_of(v), element_type_of(v)) for v in values]


def _convert_tensor_kernel(old: Operation, block: Block, ops: Sequence[Operation], precision: str) -> Operation:
    arguments, results = _kinds(block.arguments), _kinds(ops[-1].operands)
    with old.location:
        new, symbols, anchor = _new_function(old, [tensor_of(*a) for a in arguments], [tensor_of(*r) for r in results],
                                             arguments, results)
        entry = new.opview.entry_block
    with ir.InsertionPoint(entry):
        b = Builder(DimEmitter(symbols, anchor), precision)
        views = {old_arg: View.of(new_arg, *kind) for old_arg, new_arg, kind
                 in zip(block.arguments, entry.arguments, arguments, strict=False)}
        for op in ops:
            with op.location:
                if op.name == "func.return":
                    returned = [b.result(views[v]) for v in op.operands]
                    func_d.ReturnOp([value for value, _ in returned])
                else:
                    convert_op(b, op, views)
        new.attributes["xt.result_dims"] = ir.ArrayAttr.get([dims_attr(d) for _, d in returned])
        kinds = ir.FunctionType.get([a.type for a in entry.arguments], [value.type for value, _ in returned])
        new.attributes["function_type"] = ir.TypeAttr.get(kinds)
    anchor.erase()
    return new


def _convert_loop_kernel(old: Operation, block: Block, op: Operation, threads: bool | None) -> Operation:
    """Memref form: inputs, outputs, symbols. A symbol that the op defines adds an output, see `loop_select`."""
    arguments = _kinds(block.arguments)
    results = tuple(_kinds(op.results))
    outputs = list(results)
    described = Op(op.name.split(".", 1)[1], (), results, op)
    new_symbol = described.attr("symbol")
    if new_symbol is not None:
        outputs = [_upper_bound(kind, described, arguments[0][0]) for kind in results]
        outputs.append(((1,), ir.IntegerType.get_signless(64)))
    with old.location:
        kinds = [*arguments, *outputs]
        new, symbols, anchor = _new_function(old, [buffer_type(*k) for k in kinds], [], arguments, outputs)
        entry = new.opview.entry_block
    with ir.InsertionPoint(entry), op.location:
        buffers = [Buffer(m, *k) for m, k in zip(entry.arguments, kinds, strict=False)]
        by_value: dict[Value, Buffer] = dict(zip(block.arguments, buffers, strict=False))
        made = next((v for v in op.operands if v not in by_value), None)
        if made is not None:
            raise CompilerBug(f"{op.name} reads a {owner_op(made).name} of its kernel; all operands of a loop kernel "
                              "must be arguments")
        inputs = tuple(by_value[v] for v in op.operands)
        kernel = LoopKernel(described, inputs, tuple(buffers[len(arguments):]), DimEmitter(symbols, anchor),
                            threads)
        if described.name in TILES:
            width = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), TILES[described.name](kernel))
            new.attributes["xcc.tiles"] = ir.UnitAttr.get()
            new.attributes["xcc.config"] = ir.DictAttr.get({"gpu": ir.DictAttr.get({"threads": width})})
        else:
            if LOOPS[described.name](kernel):
                new.attributes[MACHINE] = ir.UnitAttr.get()
            new.attributes["xcc.loops"] = ir.UnitAttr.get()
        func_d.ReturnOp([])
    anchor.erase()
    return new


def _upper_bound(kind: Kind, op: Op, x_dims: tuple[Dim, ...]) -> Kind:
    """A result of symbolic size as a flat buffer of the most elements that it can have."""
    dims, dtype = kind
    total = symbolic.product(x_dims)
    most = total if op.attr("flat", True) else x_dims[op.attr("axis")]
    size = symbolic.substitute(symbolic.product(dims), {op.attr("symbol"): most})
    return (size,), dtype


def convert_op(b: Builder, operation: Operation, views: dict[Value, View]) -> None:
    """Adds the views of the op's results to `views`."""
    name = operation.name.split(".", 1)[1]
    converter = CONVERTERS.get(name)
    if converter is None:
        why = "makes a loop kernel and must be alone in it" if name in LOOPS or name in TILES else \
            "has no conversion to linalg; composites must be decomposed first"
        raise CompilerBug(f"{operation.name} at {operation.location} {why}")
    results = tuple((shape_of(r), element_type_of(r)) for r in operation.results)
    out = converter(b, Op(name, tuple(views[v] for v in operation.operands), results, operation))
    for result, view in zip(operation.results, [out] if isinstance(out, View) else out, strict=True):
        views[result] = view
