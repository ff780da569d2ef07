"""Reductions over axes: a generic with reduction loops; kept unit dims exist only in the result's view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import arith_d, ir
from xcc.passes.xt_to_linalg import scalar
from xcc.passes.xt_to_linalg.builder import Builder, loop_index
from xcc.passes.xt_to_linalg.elementwise import binary
from xcc.passes.xt_to_linalg.registry import Op, converts
from xcc.passes.xt_to_linalg.types import accumulator, computed, constant, is_float, is_unsigned, limits
from xcc.passes.xt_to_linalg.view import View, dim_expr, expand_dims
from xcc.symbolic import Dim

__all__ = ["COMBINE", "accumulate_in", "keep_dims", "neutral", "reduce_view"]

COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


def neutral(kind: str, dtype: Any) -> float | int:
    """The value that leaves others unchanged under `kind`."""
    low, high = limits(dtype)
    return {"sum": 0, "prod": 1, "max": low, "min": high, "or": 0, "and": high if is_unsigned(dtype) else -1}[kind]


def accumulate_in(kind: str, dtype: Any) -> Any:
    """Sums and products of narrow floats are kept in f32."""
    return accumulator(dtype) if kind in ("sum", "prod") else computed(dtype)


def keep_dims(view: View, dims: Sequence[Dim], axes: Sequence[int]) -> View:
    """`view` with unit dims put in at `axes`, of shape `dims`."""
    coords = [dim_expr(i) for i in range(len(dims)) if i not in set(axes)]
    return view.through(dims, coords)


def reduce_view(b: Builder, x: View, kind: str, axes: Sequence[int]) -> View:
    """`x` reduced over `axes`, which are dropped. The split of a kept dim stays."""
    gone = set(axes)
    loops = expand_dims(x.dims, x.splits) if not x.is_splat else x.dims
    splits = x.splits if not x.is_splat else (1,) * len(x.dims)
    owner = [i for i, p in enumerate(splits) for _ in range(1 if p == 1 else 2)]
    reduction = [n for n, i in enumerate(owner) if i in gone]
    kept = [n for n, i in enumerate(owner) if i not in gone]
    acc = accumulate_in(kind, x.dtype)
    init = b.fill([loops[n] for n in kept], acc, neutral(kind, acc))

    def body(s: list[Any]) -> Any:
        return binary(COMBINE[kind], scalar.convert(s[0], x.dtype, acc), s[1], acc)

    out = b.generic(loops, [(init, [dim_expr(n) for n in kept])], [(x, None)], body, reduction)[0]
    dims = [d for i, d in enumerate(x.dims) if i not in gone]
    view = View.of_split(out, dims, acc, [p for i, p in enumerate(splits) if i not in gone])
    if acc == x.dtype:
        return view
    return b.pointwise(dims, x.dtype, [view], lambda s: scalar.convert(s[0], acc, x.dtype))


@converts("reduce")
def convert_reduce(b: Builder, op: Op) -> View:
    axes = op.attr("axes")
    if not axes:
        return op.operands[0]
    out = reduce_view(b, op.operands[0], op.attr("kind"), axes)
    return keep_dims(out, op.dims, axes) if op.attr("keepdims") else out


@converts("arg_reduce")
def convert_arg_reduce(b: Builder, op: Op) -> View:
    """Two results, value and index. Ties are decided by the index, so the order of evaluation is free."""
    x, axis, last = op.operands[0].plain(), op.attr("axis"), bool(op.attr("select_last", False))
    i64 = ir.IntegerType.get_signless(64)
    largest = op.attr("kind") in ("argmax", "max")
    dtype = computed(x.dtype)
    low, high = limits(dtype)
    kept = [i for i in range(len(x.dims)) if i != axis]
    dims = [x.dims[i] for i in kept]
    worst = -1 if last else (1 << 63) - 1
    inits = [b.fill(dims, dtype, low if largest else high), b.fill(dims, i64, worst)]

    def body(s: list[Any]) -> Any:
        value, best, best_at = scalar.convert(s[0], x.dtype, dtype), s[1], s[2]
        at = arith_d.index_cast(i64, loop_index(axis))
        better, equal = _order(value, best, dtype, "gt" if largest else "lt")
        first = arith_d.cmpi(arith_d.CmpIPredicate.sgt if last else arith_d.CmpIPredicate.slt, at, best_at)
        take = arith_d.ori(better, arith_d.andi(equal, first))
        return arith_d.select(take, value, best), arith_d.select(take, at, best_at)

    exprs = [dim_expr(i) for i in kept]
    out = b.generic(x.dims, [(v, exprs) for v in inits], [(x, None)], body, [axis])[1]
    view = View.of(out, dims, op.dtype)
    return keep_dims(view, op.dims, [axis]) if op.attr("keepdims") else view


def _order(a: Any, b: Any, dtype: Any, direction: str) -> tuple[Any, Any]:
    """(a comes before b, a ties with b); NaN comes before every number."""
    if not is_float(dtype):
        return scalar.int_compare(direction, a, b, dtype), scalar.int_compare("eq", a, b, dtype)
    uno = arith_d.CmpFPredicate.UNO
    a_nan, b_nan = arith_d.cmpf(uno, a, a), arith_d.cmpf(uno, b, b)
    not_b = arith_d.xori(b_nan, constant(b_nan.type, 1))
    better = arith_d.ori(scalar.float_compare(direction, a, b), arith_d.andi(a_nan, not_b))
    return better, arith_d.ori(scalar.float_compare("eq", a, b), arith_d.andi(a_nan, b_nan))
