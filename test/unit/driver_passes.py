"""Passes for the tests of the driver, in a module that worker processes can import."""

from __future__ import annotations

from typing import Any, ClassVar

from xcc.passes.base import Pass, PassContext, register_pass


@register_pass
class ExpToSqrt(Pass):
    """A user's pass: takes square roots where the model takes exponentials."""

    name: ClassVar[str] = "test-exp-to-sqrt"

    def run(self, module: Any, ctx: PassContext) -> None:
        from xcc._mlir import ir, math_d

        found: list[Any] = []
        module.operation.walk(lambda op: (found.append(op), ir.WalkResult.ADVANCE)[1])
        for op in found:
            if op.name == "math.exp":
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(math_d.sqrt(op.operands[0]))
                op.erase()


@register_pass
class AddStrayOp(Pass):
    """A faulty pass: leaves an ``xtv`` op that MLIR's verifier lets through."""

    name: ClassVar[str] = "test-add-stray-op"

    def run(self, module: Any, ctx: PassContext) -> None:
        from xcc._mlir import ir

        main = module.body.operations[0]
        with ir.InsertionPoint.at_block_begin(main.regions[0].blocks[0]), main.location:
            ir.Operation.create("xtv.stray", results=[], operands=[])


@register_pass
class NegateProduct(Pass):
    """A faulty pass of stage xt: what a product gives is negated."""

    name: ClassVar[str] = "test-negate-product"

    def run(self, module: Any, ctx: PassContext) -> None:
        from xcc._mlir import ir
        from xcc.dialects import xt
        from xcc.passes.walk import ops_where

        op = ops_where(module, lambda o: o.name == "xt.dot_general")[0]
        with module.context, op.location, ir.InsertionPoint.after(op):
            negated = xt.neg(op.results[0])
        op.results[0].replace_all_uses_except(negated, negated.owner.operation)
