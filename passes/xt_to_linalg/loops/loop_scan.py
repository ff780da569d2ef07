"""Loop kernels that walk one axis or one window: cumulative, max_pool_with_indices."""

from __future__ import annotations

from xcc._mlir import Type, Value, arith_d, math_d
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import accumulator, constant, is_float, limits
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel, i64, to_i64
from xcc.passes.xt_to_linalg.ops.elementwise import binary
from xcc.passes.xt_to_linalg.ops.reduce import COMBINE, neutral
from xcc.symbolic import Dim

_I = arith_d.CmpIPredicate
_F = arith_d.CmpFPredicate


def _log_add_exp(a: Value, b: Value, t: Type) -> Value:
    """log(exp(a) + exp(b)) from the larger one; -inf with -inf stays."""
    high, low = arith_d.maximumf(a, b), arith_d.minimumf(a, b)
    out = arith_d.addf(high, math_d.log1p(math_d.exp(arith_d.subf(low, high))))
    return arith_d.select(arith_d.cmpf(_F.OEQ, a, b), arith_d.addf(a, constant(t, 0.6931471805599453)), out)


@converts_to_loops("cumulative")
def cumulative(k: LoopKernel) -> None:
    x, out = k.inputs[0], k.outputs[0]
    axis, kind = k.op.attr("axis"), k.op.attr("kind")
    exclusive, reverse = k.op.attr("exclusive", False), k.op.attr("reverse", False)
    acc = accumulator(x.dtype)
    start = limits(x.dtype)[0] if kind == "logsumexp" else neutral(kind, x.dtype)
    last = k.dim(x.dims[axis] - 1)

    def row(others: list[Value]) -> None:
        def step(i: Value, carried: list[Value]) -> list[Value]:
            at = arith_d.subi(last, i) if reverse else i
            coords = [*others[:axis], at, *others[axis:]]
            value = scalar.convert(x.load(coords), x.dtype, acc)
            total = _log_add_exp(carried[0], value, acc) if kind == "logsumexp" \
                else binary(COMBINE[kind], carried[0], value, acc)
            out.store(scalar.convert(carried[0] if exclusive else total, acc, x.dtype), coords)
            return [total]

        k.fold(x.dims[axis], [constant(acc, start)], step)

    others = [d for i, d in enumerate(x.dims) if i != axis]
    k.rows(others, lambda c: row(c[:len(others)]))


@converts_to_loops("max_pool_with_indices")
def max_pool_with_indices(k: LoopKernel) -> None:
    """The first maximum (or NaN) of each window; indices count in the whole of x, the spatial part in storage order."""
    x, (values, indices) = k.inputs[0], k.outputs
    window, low = k.op.dims_attr("window"), k.op.dims_attr("low")
    strides, dilations = k.op.attr("strides"), k.op.attr("dilations")
    spatial: list[Dim] = list(x.dims[2:])
    column_major = k.op.attr("storage_order", 0)
    wide = accumulator(x.dtype) if is_float(x.dtype) else x.dtype       # narrow floats are widened once

    def element(out_coords: list[Value]) -> None:
        def step(offsets: list[Value], carried: list[Value]) -> list[Value]:
            best, where = carried
            coords, inside = list(out_coords[:2]), None
            for i, offset in enumerate(offsets):
                at = arith_d.addi(arith_d.muli(out_coords[2 + i], k.dim(strides[i])),
                                  arith_d.muli(offset, k.dim(dilations[i])))
                at = arith_d.subi(at, k.dim(low[i]))
                check = arith_d.cmpi(_I.ult, at, k.dim(spatial[i]))
                inside = check if inside is None else arith_d.andi(inside, check)
                coords.append(arith_d.maxsi(arith_d.minsi(at, k.dim(spatial[i] - 1)), k.dim(0)))
            value = scalar.convert(x.load(coords), x.dtype, wide)
            better = scalar.float_compare("gt", value, best) if is_float(x.dtype) \
                else scalar.int_compare("gt", value, best, x.dtype)
            if is_float(x.dtype):
                better = arith_d.ori(better, arith_d.andi(arith_d.cmpf(_F.UNO, value, value),
                                                          arith_d.cmpf(_F.ORD, best, best)))
            unset = arith_d.cmpi(_I.slt, where, constant(i64(), 0))
            take = arith_d.andi(inside, arith_d.ori(better, unset))
            order = list(range(2, len(coords)))[::-1] if column_major else list(range(2, len(coords)))
            position = k.flat([*coords[:2], *(coords[i] for i in order)], [*x.dims[:2], *(x.dims[i] for i in order)])
            return [arith_d.select(take, value, best), arith_d.select(take, to_i64(position), where)]

        start = [constant(wide, limits(x.dtype)[0]), constant(i64(), -1)]
        best, where = k.nest_fold(window, start, step)
        values.store(scalar.convert(best, wide, x.dtype), out_coords)
        indices.store(where, out_coords)

    k.rows(values.dims, element)
