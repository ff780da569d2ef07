"""One element of each row of a constant is another: chosen by comparison, not stored behind the rest.

    %y = xt.scatter_elements(%zeros : 4096x50257, %t : 4096x1, %u : 4096x1) {axis = 1}
becomes
    %y = xt.select(xt.compare(xt.iota() : 1x50257, %t) {direction = "eq"}, %u, 0)

Readers compute that, where the scatter has to go through memory: the gradient of what a loss picks, one-hot rows.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import producer, rewrite
from xcc.passes.xt.xt_simplify import splat
from xcc.symbolic import Dim

REDUCTIONS = ("none", "add")


@register_pass
class OneHot(Pass):
    """Makes selects of scatters with an element a row, into what is the same number everywhere."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"scatter_elements": _selected})


def _selected(op: Operation) -> Value | None:
    x, indices, updates = op.operands
    a, shape, given = xt.attrs_of(op), xt.shape_of(x), xt.shape_of(updates)
    base = producer(x, "broadcast")
    number = splat(x if base is None else base.operands[0])
    if number is None or a.reduction not in REDUCTIONS or given[a.axis] != 1 \
            or any(n != m for d, (n, m) in enumerate(zip(shape, given, strict=True)) if d != a.axis):
        return None
    size, dtype = shape[a.axis], xt.TensorType.of(x).dtype
    narrow = "i32" if isinstance(size, int) and size < 1 << 31 else "i64"
    line = xt.iota(shape=tuple(n if d == a.axis else 1 for d, n in enumerate(shape)), axis=a.axis, dtype=narrow)
    there = xt.compare(line, xt.convert(_place(indices, size), dtype=narrow), direction="eq")
    rest = xt.constant(number, dtype=dtype)
    return xt.select(there, xt.add(updates, rest) if a.reduction == "add" else updates, rest)


def _place(indices: Value, size: Dim) -> Value:
    """As a scatter has it: negative indices count from the end, others are clamped. i64."""
    at, zero = xt.convert(indices, dtype="i64"), xt.constant(0, dtype="i64")
    whole = xt.constant(size, dtype="i64") if isinstance(size, int) else xt.dim(size)
    at = xt.select(xt.compare(at, zero, direction="lt"), xt.add(at, whole), at)
    return xt.maximum(xt.minimum(at, xt.sub(whole, xt.constant(1, dtype="i64"))), zero)
