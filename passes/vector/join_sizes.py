"""join-sizes: the functions of a kernel for different sizes become one, which looks at the sizes (CPUs).

    func.func @k(%x, %d0: index) attributes {xt.kernel, xcc.launched = "min(1, floordiv(d0, 16))"} {A}
    func.func @k_few(...) attributes {xt.kernel, xcc.of = "k", xcc.launched = "1 - min(1, floordiv(d0, 16))"} {B}
    ->
    func.func @k(%x, %d0: index) attributes {xt.kernel} { scf.if (1 - min(1, floordiv(%d0, 16)) != 0) {B} else {A} }

On a GPU each function is a launch of its own (``distribute``).
"""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, arith_d, ir, scf_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.by_size import LAUNCHED, OF
from xcc.passes.shared.dims import emit_size
from xcc.passes.shared.values import index


@register_pass
class JoinSizes(Pass):
    """A function that ``xcc.of`` gives to another becomes a branch of it. Before kernel-abi."""

    def run(self, module: Module, ctx: PassContext) -> None:
        functions = {ir.StringAttr(f.attributes["sym_name"]).value: f.operation for f in module.body.operations
                     if f.operation.name == "func.func"}
        for second in functions.values():
            if OF in second.attributes:
                _join(functions[ir.StringAttr(second.attributes[OF]).value], second)
        for f in module.body.operations:
            if LAUNCHED in f.attributes:
                del f.attributes[LAUNCHED]


def _join(first: Operation, second: Operation) -> None:
    """The body of `second` where its ``xcc.launched`` is 1, else that of `first`; `second` is erased."""
    block, other = (f.regions[0].blocks[0] for f in (first, second))
    names = [ir.StringAttr(a).value for a in ir.ArrayAttr(first.attributes["xt.symbols"])]
    symbols = dict(zip(names, list(block.arguments)[len(block.arguments) - len(names):], strict=True))
    old = [o.operation for o in block.operations][:-1]
    with ir.InsertionPoint.at_block_terminator(block):
        launched = emit_size(symbolic.parse(ir.StringAttr(second.attributes[LAUNCHED]).value), symbols)
        branch = scf_d.IfOp(arith_d.cmpi(arith_d.CmpIPredicate.ne, launched, index(0)), has_else=True)
    for mine, its in zip(block.arguments, other.arguments, strict=True):
        its.replace_all_uses_with(mine)
    _fill(branch.then_block, [o.operation for o in other.operations][:-1])
    _fill(branch.else_block, old)
    second.erase()


def _fill(block: Block, operations: list[Operation]) -> None:
    with ir.InsertionPoint(block):
        end = scf_d.YieldOp([])
    for o in operations:
        o.move_before(end.operation)
