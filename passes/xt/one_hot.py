"""One element of each row of a constant is another: chosen by comparison, not stored behind the rest.

    %y = xt.scatter_elements(%zeros : 4096x50257, %t : 4096x1, %u : 4096x1) {axis = 1}
becomes
    %y = xt.select(xt.compare(xt.iota() : 1x50257, %t) {direction = "eq"}, %u, 0)

Readers compute that, where the scatter has to go through memory: the gradient of what a loss picks, one-hot rows. What
multiplies a row multiplies its one element, which is the row's sum.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.decompose.build import wrapped
from xcc.passes.xt.graph.rewrite import aligned_shape, apply_rules, producer, rewrite
from xcc.passes.xt.xt_simplify import splat

REDUCTIONS = ("none", "add")


@register_pass
class OneHot(Pass):
    """Makes selects of scatters with an element a row, into what is the same number everywhere."""

    def run(self, module: Module, ctx: PassContext) -> None:
        apply_rules(module, {"mul": [_multiplied], "reduce": [_summed]})
        rewrite(module, {"scatter_elements": _selected})


def _rest(op: Operation) -> float | None:
    """What all other elements are where the scatter `op` writes one of each row; None where it does not."""
    x, _, updates = op.operands
    a, shape, given = xt.attrs_of(op), xt.shape_of(x), xt.shape_of(updates)
    base = producer(x, "broadcast")
    alone = a.reduction in REDUCTIONS and given[a.axis] == 1 and \
        all(n == m for d, (n, m) in enumerate(zip(shape, given, strict=True)) if d != a.axis)
    return splat(x if base is None else base.operands[0]) if alone else None


def _multiplied(op: Operation) -> Value | None:
    """scatter(0, t, u) * r = scatter(0, t, u * r) where r has a number a row."""
    for one, r in (op.operands, list(op.operands)[::-1]):
        made, shape = producer(one, "scatter_elements"), xt.shape_of(op.results[0])
        if made is None or _rest(made) != 0 or xt.shape_of(one) != shape:
            continue
        x, indices, updates = made.operands
        a = xt.attrs_of(made)
        if aligned_shape(r, len(shape))[a.axis] == 1:
            return xt.scatter_elements(x, indices, xt.mul(updates, r), **vars(a))
    return None


def _summed(op: Operation) -> Value | None:
    """The sum of each row of scatter(0, t, u) is u."""
    made, a = producer(op.operands[0], "scatter_elements"), xt.attrs_of(op)
    if made is None or a.kind != "sum" or a.axes != (xt.attrs_of(made).axis,) or _rest(made) != 0 \
            or xt.TensorType.of(op.results[0]).dtype != xt.TensorType.of(made.operands[2]).dtype:
        return None
    updates = made.operands[2]
    return updates if a.keepdims else xt.reshape(updates, shape=xt.shape_of(op.results[0]))


def _selected(op: Operation) -> Value | None:
    number = _rest(op)
    if number is None:
        return None
    x, indices, updates = op.operands
    a, shape = xt.attrs_of(op), xt.shape_of(x)
    size, dtype = shape[a.axis], xt.TensorType.of(x).dtype
    narrow = "i32" if isinstance(size, int) and size < 1 << 31 else "i64"
    line = xt.iota(shape=tuple(n if d == a.axis else 1 for d, n in enumerate(shape)), axis=a.axis, dtype=narrow)
    there = xt.compare(line, xt.convert(wrapped(xt.convert(indices, dtype="i64"), size), dtype=narrow), direction="eq")
    rest = xt.constant(number, dtype=dtype)
    return xt.select(there, xt.add(updates, rest) if a.reduction == "add" else updates, rest)
