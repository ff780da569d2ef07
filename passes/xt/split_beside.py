"""Kernels that share a launch are scheduled one by one: each becomes a function until ``join-grids`` joins them.

    func.func private @beside_0(%x, %y) -> (tensor<8xf32>, tensor<4x6xf32>) attributes {xt.parts = array<i64: 0, 1>}
    ->
    func.func private @beside_0__0(%x) -> tensor<8xf32> attributes {xcc.part = {of = "beside_0", args = array<i64: 0>,
                                                                                results = array<i64: 0>}}
    func.func private @beside_0__1(%y) -> tensor<4x6xf32> attributes {xcc.part = {..., args = array<i64: 1>, ...}}

``args`` and ``results`` are the places of the part's own among those of the whole. All parts keep all symbols.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import PART
from xcc.passes.xt.fusion.outline import PARTS


@register_pass
class SplitBeside(Pass):
    """Makes a function of each part of a kernel with ``xt.parts``."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function in list(module.body.operations):
            if function.operation.name == "func.func" and PARTS in function.attributes:
                _split(function)


def _split(function: Operation) -> None:
    name = ir.StringAttr(function.attributes["sym_name"]).value
    part_of = list(ir.DenseI64ArrayAttr(function.attributes[PARTS]))
    for part in range(max(part_of) + 1):
        results = [i for i, p in enumerate(part_of) if p == part]
        new = function.operation.clone(ip=ir.InsertionPoint(function))
        new.attributes["sym_name"] = ir.StringAttr.get(f"{name}__{part}")
        del new.attributes[PARTS]
        arguments = _keep(new, results)
        places = {"args": arguments, "results": results}
        new.attributes[PART] = ir.DictAttr.get({
            "of": ir.StringAttr.get(name), **{k: ir.DenseI64ArrayAttr.get(v) for k, v in places.items()}})
    function.operation.erase()


def _keep(function: Operation, results: list[int]) -> list[int]:
    """Leaves `results`, what they are computed from, and the arguments that this reads; their places."""
    block = function.regions[0].blocks[0]
    *body, end = [op.operation for op in block.operations]
    kept = [end.operands[i] for i in results]
    with ir.InsertionPoint(end):
        ir.Operation.create("func.return", operands=kept)
    end.erase()
    for op in reversed(body):       # a kernel's ops have no effects
        if not any(True for r in op.results for _ in r.uses):
            op.erase()
    arguments = [i for i, a in enumerate(block.arguments) if any(True for _ in a.uses)]
    types = [block.arguments[i].type for i in arguments]
    for i in reversed(range(len(block.arguments))):
        if i not in arguments:
            block.erase_argument(i)
    kind = ir.FunctionType.get(types, [v.type for v in kept])
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    return arguments
