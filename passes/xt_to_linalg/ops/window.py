"""Reductions over sliding windows."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.view import View, dim_expr
from xcc.passes.xt_to_linalg.ops.elementwise import binary
from xcc.passes.xt_to_linalg.ops.pad import pad_view
from xcc.passes.xt_to_linalg.ops.reduce import COMBINE, accumulate_in, neutral


@converts("reduce_window")
def convert_reduce_window(b: Builder, op: Op) -> View:
    """Loops: the result's dims, then the window's dims that are not 1; padding is a producer of neutral values."""
    x, kind, window = op.operands[0].plain(), op.attr("kind"), op.dims_attr("window")
    strides, dilations = op.attr("strides"), op.attr("dilations")
    rank = len(x.dims)
    x = pad_view(b, x, op.dims_attr("low"), op.dims_attr("high"), (0,) * rank, neutral(kind, x.dtype))
    slid = [i for i in range(rank) if window[i] != 1]
    loops = [*op.dims, *(window[i] for i in slid)]
    coords = [dim_expr(i) * strides[i] for i in range(rank)]
    for n, i in enumerate(slid):
        coords[i] = coords[i] + dim_expr(rank + n) * dilations[i]
    acc = accumulate_in(kind, x.dtype)
    init = b.fill(op.dims, acc, neutral(kind, acc))

    def body(s: list[Value]) -> Value:
        return binary(COMBINE[kind], scalar.convert(s[0], x.dtype, acc), s[1], acc)

    out = View.of(b.generic(loops, [(init, [dim_expr(i) for i in range(rank)])], [(x, coords)], body,
                            range(rank, len(loops)))[0], op.dims, acc) if slid else x.through(op.dims, coords)
    if out.dtype == op.dtype:
        return out
    return b.pointwise(op.dims, op.dtype, [out], lambda s: scalar.convert(s[0], acc, op.dtype))
