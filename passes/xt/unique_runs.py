"""The distinct elements of a tensor: sorted, so that equal ones are runs, which scans count.

    %v, %i = xt.sort(%x)                                        flat
    %b = %v differs from the element before it                  where a run begins
    %r = xt.cumulative(%b) {sum}                                the run of each element
    %n = xt.cumulative(%b ? number : size) {min, exclusive, reverse}        where the next one begins
    %values, %first, %inverse, %counts = xt.unique_runs(%v, %i, %r, %n, %r - 1)

In order of first use (``sorted = false``) a run's number is that of its first element among all first elements of x.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dim_expr import Expr
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import dim_bounds, rewrite
from xcc.passes.xt.sizes.counted import MOST, require_countable
from xcc.symbolic import product

SHORTEST = 64           # elements that one thread looks up as fast
AND, OR, NOT = getattr(xt, "and"), getattr(xt, "or"), getattr(xt, "not")


@register_pass
class UniqueRuns(Pass):
    """Turns unique of whole tensors into a sort and scans."""

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)

        def runs(op: Operation) -> list[Value] | None:
            count = product(xt.shape_of(op.operands[0]))
            if not xt.attrs_of(op).flat or xt.TensorType.of(op.operands[0]).dtype == "i1" \
                    or isinstance(count, int) and not SHORTEST <= count < MOST:
                return None
            require_countable(module, [count], bounds)
            return _runs(op, count)

        rewrite(module, {"unique": runs})


def _runs(op: Operation, count: int | Expr) -> list[Value]:
    a = xt.attrs_of(op)
    values, indices = xt.sort(xt.reshape(op.operands[0], shape=(count,)), axis=0)
    number, zero, one = xt.iota(shape=(count,), axis=0, dtype="i32"), _i32(0), _i32(1)
    before = xt.gather(values, xt.maximum(xt.sub(number, one), zero), axis=0)
    differs = xt.compare(values, before, direction="ne")
    if xt.is_float(xt.TensorType.of(values).dtype):
        differs = AND(differs, NOT(AND(xt.is_nan(values), xt.is_nan(before))))
    begins = OR(differs, xt.compare(number, zero, direction="eq"))
    runs = xt.cumulative(xt.convert(begins, dtype="i32"), kind="sum", axis=0)
    size = xt.convert(xt.constant(count, dtype="i64") if isinstance(count, int) else xt.dim(count), dtype="i32")
    following = xt.cumulative(xt.select(begins, number, size), kind="min", axis=0, exclusive=True, reverse=True)
    order = xt.sub(runs, one)
    if not a.sorted:
        heads = xt.cumulative(xt.select(begins, number, zero), kind="max", axis=0)
        first = xt.gather(indices, heads, axis=0)
        own = xt.convert(xt.compare(first, indices, direction="eq"), dtype="i32")
        used = xt.cumulative(xt.scatter_elements(own, indices, own, axis=0), kind="sum", axis=0)
        order = xt.sub(xt.gather(used, first, axis=0), one)
    made = xt.unique_runs(values, indices, runs, xt.minimum(following, size), order, symbol=a.symbol)
    return list(made)


def _i32(value: int) -> Value:
    return xt.constant(value, dtype="i32")
