"""A result that is sent to another rank is one more result of its kernel, which nothing else reads (stage ``kernels``).

    %p = xtv.dispatch(%x, %w) {kernel = @k}        %p:2 = xtv.dispatch(%x, %w) {kernel = @k_sent}
    %q = xt.permute(%p) ...                     -> %q = xt.permute(%p#0) ...
    ... %p, %q                                     ... %p#1, %q

    func.func private @k(...) { return %y }        func.func private @k_sent(...) { return %y, %y }

Where ranks map each other's memory the runtime has the kernel write this result where the other rank reads it
(xcc.runtime.peer_places), so that it is under way while the kernel still computes; it is stored ahead of the others.
Anywhere else it is an array like others, that a library sends.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, ir
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.exchange_pairs import SWAP
from xcc.passes.xt.fusion.kernel_variants import (
    dispatched_anew,
    is_tiled,
    kernel_of,
    kernels_of,
    removed_unused,
    variant,
)
from xcc.passes.xt.fusion.outline import PARTS
from xcc.passes.xt.graph.rewrite import at, name_of


@register_pass
class PushResults(Pass):
    """Gives exchanged results of kernels a place of their own, on a chip that maps the memory of others."""

    def run(self, module: Module, ctx: PassContext) -> None:
        if ctx.chip is None or not ctx.chip.maps_peers:
            return
        block = main_of(module).regions[0].blocks[0]
        kernels = kernels_of(module)
        for op in [o.operation for o in block.operations]:
            if name_of(op) == "permute" and xt.attrs_of(op).pairs == SWAP:
                _push(op, kernels)
        removed_unused(module, kernels)


def _push(op: Operation, kernels: dict[str, Operation]) -> None:
    """Has `op` send a result of its own."""
    views, value = _behind_views(op.operands[0])
    maker = value.owner
    if isinstance(maker, ir.Block) or name_of(maker.operation) != "dispatch":
        return
    maker = maker.operation
    alone = not views and len(list(value.uses)) == 1
    if alone or not is_tiled(kernels[kernel_of(maker)]):
        return
    number = list(maker.results).index(value)
    sent = _with_result(maker, number, kernels)
    with at(op):
        for view in reversed(views):
            new = view.clone(ip=ir.InsertionPoint(op))
            new.operands[0] = sent
            sent = new.results[0]
    op.operands[0] = sent
    for view in views:
        if not list(view.results[0].uses):
            view.erase()


def _behind_views(value: Value) -> tuple[list[Operation], Value]:
    """The reshapes that `value` is seen through, the last one first, and of what."""
    views = []
    while not isinstance(value.owner, ir.Block) and name_of(value.owner.operation) == "reshape":
        views.append(value.owner.operation)
        value = value.owner.operation.operands[0]
    return views, value


def _with_result(maker: Operation, number: int, kernels: dict[str, Operation]) -> Value:
    """The result `number` of the dispatch `maker` once more: it is made anew, of a kernel with one more result."""
    name = f"{kernel_of(maker)}_sent" + (str(number) if number else "")
    if name not in kernels:
        kernels[name] = _made(kernels[kernel_of(maker)], number, name)
    new = dispatched_anew(maker, name, [maker.results[number].type, *(r.type for r in maker.results)])
    for old, result in zip(list(maker.results), list(new.results)[1:], strict=True):
        old.replace_all_uses_with(result)
    maker.erase()
    return new.results[0]


def _made(kernel: Operation, number: int, name: str) -> Operation:
    """A copy of the function `kernel` called `name` that returns result `number` twice."""
    new = variant(kernel, name, lambda values: [values[number], *values])
    if PARTS in new.attributes:
        parts = list(ir.DenseI64ArrayAttr(new.attributes[PARTS]))
        new.attributes[PARTS] = ir.DenseI64ArrayAttr.get([parts[number], *parts])
    return new
