"""Loop kernels that walk one axis or one window: cumulative, max_pool_with_indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir, memref_d
from xcc.passes.shared.combining import log_add_exp
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import accumulator, constant, is_float, limits
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel, i64, to_i64
from xcc.passes.xt_to_linalg.ops.elementwise import binary
from xcc.passes.xt_to_linalg.ops.reduce import COMBINE, neutral
from xcc.symbolic import Dim

_I = arith_d.CmpIPredicate
_F = arith_d.CmpFPredicate

ROWS = 4            # of floats, scanned together: an addition takes as many cycles
GROUPS = 16         # of rows, at least, for threads
NEIGHBOURS = 256    # scanned together, in the first cache


def _accumulator(x: Buffer, kind: str, threads: bool) -> Type:
    """Of totals: of f32 on CPUs f64, as the rounding errors of a long row add up; an addition takes as long."""
    wide = isinstance(x.dtype, ir.F32Type) and kind in ("sum", "prod") and not threads
    return ir.F64Type.get() if wide else accumulator(x.dtype)


class _Extreme:
    """The running maximum or minimum of floats but NaN, and bits that are all set once there was one: the next waits
    for one instruction of each, where a maximum that looks for NaN itself takes several."""

    def __init__(self, dtype: Type, kind: str) -> None:
        self.dtype, self.bits = dtype, ir.IntegerType.get_signless(dtype.width)
        self.better = _F.OGT if kind == "max" else _F.OLT

    def step(self, total: Value, nan: Value, value: Value) -> tuple[Value, Value]:
        here = arith_d.extsi(self.bits, arith_d.cmpf(_F.UNO, value, value))
        return arith_d.select(arith_d.cmpf(self.better, value, total), value, total), arith_d.ori(nan, here)

    def value(self, total: Value, nan: Value) -> Value:
        return arith_d.bitcast(self.dtype, arith_d.ori(arith_d.bitcast(self.bits, total), nan))


@converts_to_loops("cumulative")
def cumulative(k: LoopKernel) -> None:
    """Along the last dim a loop carries the total, on a CPU those of several rows of floats, which do not wait for each
    other; along another totals of neighbours lie in a buffer there."""
    x, out = k.inputs[0], k.outputs[0]
    axis, kind = k.op.attr("axis"), k.op.attr("kind")
    exclusive, reverse = k.op.attr("exclusive", False), k.op.attr("reverse", False)
    acc = _accumulator(x, kind, bool(k.threads))
    start = constant(acc, neutral(kind, x.dtype))
    last = k.dim(x.dims[axis] - 1)

    def scanned(x: Buffer, out: Buffer, places: list[list[Value]], before: Sequence[Value]) -> list[Value]:
        """The totals with the elements at `places`, where the results are stored when all are read."""
        values = [scalar.convert(x.load(coords), x.dtype, acc) for coords in places]
        totals = [log_add_exp(t, v) if kind == "logsumexp" else binary(COMBINE[kind], t, v, acc)
                  for t, v in zip(before, values, strict=True)]
        for coords, total in zip(places, before if exclusive else totals, strict=True):
            out.store(scalar.convert(total, acc, x.dtype), coords)
        return totals

    def extremes(x: Buffer, out: Buffer, places: list[list[Value]], before: Sequence[Value]) -> list[Value]:
        """As `scanned`: all totals, then whether there was a NaN."""
        extreme, n = _Extreme(acc, kind), len(places)
        values = [scalar.convert(x.load(coords), x.dtype, acc) for coords in places]
        made = [extreme.step(*row) for row in zip(before[:n], before[n:], values, strict=True)]
        after = [*(total for total, _ in made), *(nan for _, nan in made)]
        shown = before if exclusive else after
        for coords, total, nan in zip(places, shown[:n], shown[n:], strict=True):
            out.store(scalar.convert(extreme.value(total, nan), acc, x.dtype), coords)
        return after

    def at(i: Value) -> Value:
        return arith_d.subi(last, i) if reverse else i

    if k.threads:
        def row(c: list[Value]) -> None:
            k.fold(x.dims[axis], [start], lambda i, carried: scanned(
                x, out, [[*c[:axis], at(i), *c[axis:len(x.dims) - 1]]], carried))

        k.rows([d for i, d in enumerate(x.dims) if i != axis], row)
        return
    if all(d == 1 for d in x.dims[axis + 1:]):
        nans = kind in ("max", "min") and is_float(x.dtype)
        step = extremes if nans else scanned
        starts = [start, *([constant(ir.IntegerType.get_signless(acc.width), 0)] if nans else [])]
        _rows_together(k, axis, lambda x, out, rows, i, totals: step(
            x, out, [[*r, at(i)] for r in rows], totals), starts)
        return
    groups = [*([[*range(axis)]] if axis else []), [axis], [*range(axis + 1, len(x.dims))]]
    flat, result = x.merged(groups), out.merged(groups)

    def block(c: list[Value]) -> None:
        first = arith_d.muli(c[-1], k.dim(NEIGHBOURS))
        count = arith_d.minsi(arith_d.subi(k.dim(flat.dims[-1]), first), k.dim(NEIGHBOURS))
        totals = k.scratch(NEIGHBOURS, acc)
        k.loop(count, lambda j: memref_d.store(start, totals, [j]))

        def neighbour(i: Value, j: Value) -> None:
            coords = [*c[:-1], at(i), arith_d.addi(first, j)]
            memref_d.store(scanned(flat, result, [coords], [memref_d.load(totals, [j])])[0], totals, [j])

        k.loop(flat.dims[-2], lambda i: k.loop(count, lambda j: neighbour(i, j)))

    k.rows([*flat.dims[:-2], symbolic.floordiv(flat.dims[-1] + NEIGHBOURS - 1, NEIGHBOURS)], block)


def _rows_together(k: LoopKernel, axis: int, step: Callable[..., list[Value]], starts: list[Value]) -> None:
    """A loop along `axis`, behind which all dims are 1, for some rows at a time: the last again where one misses."""
    ahead, behind = [*range(axis)], [*range(axis, len(k.inputs[0].dims))]
    x, out = (v.merged([*([ahead] if ahead else []), behind]) for v in (k.inputs[0], k.outputs[0]))
    count: Dim = x.dims[0] if ahead else 1
    most = ROWS if is_float(x.dtype) else 1
    together = max(1, min(most, count // GROUPS)) if isinstance(count, int) else most

    def group(c: list[Value]) -> None:
        first, end = arith_d.muli(c[0], k.dim(together)), k.dim(count - 1)
        rows = [[arith_d.minsi(arith_d.addi(first, k.dim(r)), end)] for r in range(together)] if ahead else [[]]
        k.fold(x.dims[-1], [s for s in starts for _ in rows], lambda i, totals: step(x, out, rows, i, totals))

    k.rows([symbolic.floordiv(count + together - 1, together)], group)


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
