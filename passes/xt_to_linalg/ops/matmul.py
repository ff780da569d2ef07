"""Contractions: loops are batch, lhs free, rhs free, then the contracted dims; narrow floats accumulate in f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import AffineExpr, Type, Value, arith_d, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.shared.lossy import LOSSY, ROUNDED
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.builder import Builder, Read
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import accumulator, is_bool, is_float
from xcc.passes.xt_to_linalg.build.view import View, dim_expr
from xcc.symbolic import Dim

_ARITH = {"bool": (arith_d.andi, arith_d.ori), "float": (arith_d.mulf, arith_d.addf),
          "int": (arith_d.muli, arith_d.addi)}


def contract(b: Builder, loops: Sequence[Dim], n_parallel: int, reads: Sequence[Read], dtype: Type,
             precision: str = "") -> Value:
    """sum over the loops after `n_parallel` of the product of two reads, kept in the accumulator type of `dtype`.

    precision: that of the xt op.
    """
    acc = accumulator(dtype)
    init = b.fill(loops[:n_parallel], acc, 0) if n_parallel < len(loops) else b.empty(loops, acc)
    types = [view.dtype for view, _ in reads]

    def body(s: list[Value]) -> Value:
        x, y = (scalar.convert(v, t, acc) for v, t in zip(s[:2], types, strict=True))
        times, plus = _ARITH["bool" if is_bool(acc) else "float" if is_float(acc) else "int"]
        product = times(x, y)
        if ROUNDED in (precision, b.precision) and not isinstance(product.owner, ir.Block):
            product.owner.attributes[LOSSY] = ir.UnitAttr.get()
        return plus(s[2], product) if len(s) > 2 else product       # an outer product sums nothing

    out = [dim_expr(i) for i in range(n_parallel)]
    return b.generic(loops, [(init, out)], reads, body, range(n_parallel, len(loops)))[0]


def finish(b: Builder, view: View, dtype: Type) -> View:
    """The accumulator converted to the op's result type."""
    if view.dtype == dtype:
        return view
    return b.pointwise(view.dims, dtype, [view], lambda s: scalar.convert(s[0], view.dtype, dtype))


@converts("dot_general")
def convert_dot_general(b: Builder, op: Op) -> View:
    lhs, rhs = (v.plain() for v in op.operands)
    lhs_batch, rhs_batch = op.attr("lhs_batch"), op.attr("rhs_batch")
    lhs_contract, rhs_contract = op.attr("lhs_contract"), op.attr("rhs_contract")
    lhs_free = [i for i in range(len(lhs.dims)) if i not in (*lhs_batch, *lhs_contract)]
    rhs_free = [i for i in range(len(rhs.dims)) if i not in (*rhs_batch, *rhs_contract)]
    order = [("l", i) for i in (*lhs_batch, *lhs_free)] + [("r", i) for i in rhs_free] \
        + [("l", i) for i in lhs_contract]
    loops = [(lhs if side == "l" else rhs).dims[i] for side, i in order]
    at = {key: dim_expr(n) for n, key in enumerate(order)}
    for mine, theirs in ((lhs_batch, rhs_batch), (lhs_contract, rhs_contract)):
        for i, j in zip(mine, theirs, strict=True):
            at["r", j] = at["l", i]
    reads: list[Read] = [(v, [at[side, i] for i in range(len(v.dims))]) for side, v in (("l", lhs), ("r", rhs))]
    n_parallel = len(loops) - len(lhs_contract)
    out = contract(b, loops, n_parallel, reads, op.dtype, op.attr("precision", ""))
    return finish(b, View.of(out, op.dims, accumulator(op.dtype)), op.dtype)


def panel_coordinates(n: AffineExpr, width: Dim) -> tuple[AffineExpr, AffineExpr]:
    """The panel and the place in it of column `n`, for panels of `width` columns."""
    if not isinstance(width, int):
        raise CompilerBug(f"panels of symbolic width {width}")
    return ir.AffineExpr.get_floor_div(n, width), ir.AffineExpr.get_mod(n, width)


@converts("packed_matmul")
def convert_packed_matmul(b: Builder, op: Op) -> View:
    """Column n of the right operand is n mod P of panel n floordiv P; k is k mod G of group k floordiv G of block q."""
    lhs, rhs = (v.plain() for v in op.operands)
    batch = op.attr("batch", 0)
    first = op.attr("panels_first", False)
    packed: Any = (rhs.dims[0], *rhs.dims[batch + 1:]) if first else rhs.dims[batch:]
    _, *blocks, depth, width, group = packed if len(packed) > 3 else (*packed, 0)
    loops = [*op.dims, *blocks, depth, *[group] * bool(group)]
    d = [dim_expr(i) for i in range(len(loops))]
    rows, n, summed = d[:len(op.dims) - 1], d[len(op.dims) - 1], d[len(op.dims):]
    q, k, inner = summed[:len(blocks)], summed[len(blocks)], summed[len(blocks) + 1:]
    panel, lane = panel_coordinates(n, width)
    whole = k * group + inner[0] if inner else k
    for block in q:
        whole = block * (depth * group) + whole
    outer = [panel, *rows[:batch]] if first else [*rows[:batch], panel]
    out = contract(b, loops, len(op.dims), [(lhs, [*rows, whole]), (rhs, [*outer, *q, k, lane, *inner])], op.dtype)
    return finish(b, View.of(out, op.dims, accumulator(op.dtype)), op.dtype)
