"""Reductions over axes: a generic with reduction loops; kept unit dims exist only in the result's view."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Type, Value
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import accumulator, computed, is_unsigned, limits
from xcc.passes.xt_to_linalg.build.view import View, dim_expr, expand_dims
from xcc.passes.xt_to_linalg.ops.elementwise import binary
from xcc.symbolic import Dim

COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}


def neutral(kind: str, dtype: Type) -> float | int:
    """The value that leaves others unchanged under `kind`."""
    low, high = limits(dtype)
    return {"sum": 0, "prod": 1, "max": low, "logsumexp": low, "min": high, "or": 0,
            "and": high if is_unsigned(dtype) else -1}[kind]


def accumulate_in(kind: str, dtype: Type) -> Type:
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

    def body(s: list[Value]) -> Value:
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
