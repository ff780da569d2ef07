"""Sorts and top_k along the last dim: along another one, elements of a row that is sorted lie in lines of their own."""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.match import dims_of
from xcc.passes.xt.graph.rewrite import name_of, rewrite


@register_pass
class LastDimSorts(Pass):
    """Puts transposes around a sort or top_k along another dim than the last.

    Before: ``xt.top_k(x) {axis = 0, k = 3}``
    After:  ``xt.transpose(xt.top_k(xt.transpose(x) {perm = [1, 0]}) {axis = 1, k = 3}) {perm = [1, 0]}``, both results
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, dict.fromkeys(("sort", "top_k"), _turned))


def _turned(op: Operation) -> list[Value] | None:
    a, dims = xt.attrs_of(op), dims_of(op.operands[0])
    if all(d == 1 for d in dims[a.axis + 1:]):
        return None
    last = len(dims) - 1
    order = (*(d for d in range(last + 1) if d != a.axis), a.axis)
    x = xt.transpose(op.operands[0], perm=order)
    made = xt.sort(x, axis=last, descending=a.descending, stable=a.stable) if name_of(op) == "sort" else \
        xt.top_k(x, k=dims_of(op.results[0])[a.axis], axis=last, largest=a.largest)
    return [xt.transpose(v, perm=tuple(order.index(d) for d in range(last + 1))) for v in made]
