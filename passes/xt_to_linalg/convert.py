"""The pass from xt kernels to linalg on tensors."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

from xcc._mlir import arith_d, func_d, ir
from xcc.diagnostics import CompilerBug
from xcc.dialects.xt.base import dims_attr, element_type_of, shape_of
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt_to_linalg.builder import Builder
from xcc.passes.xt_to_linalg.dims import DimEmitter
from xcc.passes.xt_to_linalg.registry import CONVERTERS, LOOPS, Op
from xcc.passes.xt_to_linalg.types import tensor_of
from xcc.passes.xt_to_linalg.view import View

FAMILIES = ("conv", "elementwise", "matmul", "pad", "reduce", "shape")


@register_pass
@dataclass(frozen=True)
class XtToLinalg(Pass):
    """Rewrites every kernel function (attribute `xt.kernel`) from xt ops to linalg.generic on tensors.

    Each primitive op becomes at most one generic; movement ops with affine access become part of the indexing maps of
    their users. Composite ops must have been decomposed. See docs/architecture.md, "Kernels (stage `linalg`)".
    """

    name: ClassVar[str] = "xt-to-linalg"

    def run(self, module: Any, ctx: PassContext) -> None:
        for family in FAMILIES:
            importlib.import_module(f"xcc.passes.xt_to_linalg.{family}")
        with module.context:
            for function in list(module.body.operations):
                if "xt.kernel" in function.attributes:
                    convert_kernel(function)


def convert_kernel(old: Any) -> Any:
    """Replaces one kernel function; returns the new one."""
    symbols = [a.value for a in old.attributes["xt.symbols"]] if "xt.symbols" in old.attributes else []
    block = old.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operands
    arguments = [(shape_of(a), element_type_of(a)) for a in block.arguments]
    results = [(shape_of(v), element_type_of(v)) for v in returned]
    with old.location, ir.InsertionPoint(old):
        index = ir.IndexType.get()
        new = func_d.FuncOp(ir.StringAttr(old.attributes["sym_name"]).value,
                            ([tensor_of(*a) for a in arguments] + [index] * len(symbols),
                             [tensor_of(*r) for r in results]), visibility="private")
        for name in list(old.attributes):
            if name not in ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"):
                new.attributes[name] = old.attributes[name]
        new.attributes["xt.symbols"] = ir.ArrayAttr.get([ir.StringAttr.get(s) for s in symbols])
        new.attributes["xt.arg_dims"] = ir.ArrayAttr.get([dims_attr(d) for d, _ in arguments])
        new.attributes["xt.result_dims"] = ir.ArrayAttr.get([dims_attr(d) for d, _ in results])
        entry = new.add_entry_block()
    with old.location, ir.InsertionPoint(entry):
        anchor = arith_d.ConstantOp(index, ir.IntegerAttr.get(index, 0))
        b = Builder(DimEmitter(dict(zip(symbols, list(entry.arguments)[len(arguments):], strict=True)), anchor))
        views = {old_arg: View.of(new_arg, *kind) for old_arg, new_arg, kind
                 in zip(block.arguments, entry.arguments, arguments, strict=False)}
        for op in block.operations:
            with op.operation.location:
                if op.operation.name == "func.return":
                    func_d.ReturnOp([b.result(views[v]) for v in op.operands])
                else:
                    convert_op(b, op.operation, views)
    anchor.erase()
    old.operation.erase()
    return new


def convert_op(b: Builder, operation: Any, views: dict[Any, View]) -> None:
    """Adds the views of the op's results to `views`."""
    name = operation.name.removeprefix("xt.")
    converter = CONVERTERS.get(name)
    if converter is None:
        why = "makes a loop kernel and must be alone in it" if name in LOOPS else \
            "has no conversion to linalg; composites must be decomposed first"
        raise CompilerBug(f"{operation.name} at {operation.location} {why}")
    results = tuple((shape_of(r), element_type_of(r)) for r in operation.results)
    out = converter(b, Op(name, tuple(views[v] for v in operation.operands), results, operation))
    for result, view in zip(operation.results, [out] if isinstance(out, View) else out, strict=True):
        views[result] = view
