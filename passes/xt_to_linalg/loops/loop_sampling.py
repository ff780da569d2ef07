"""Loop kernels that read images at computed places: roi_align, col2im; each output element on its own, but
of roi_align on a CPU the channels together."""

from __future__ import annotations

import math
from collections.abc import Callable

from xcc._mlir import Type, Value, arith_d, ir, math_d, memref_d
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import accumulator, constant
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel
from xcc.passes.xt_to_linalg.ops.sampling import f32_constant, number, to_place
from xcc.symbolic import Dim, floordiv

_F = arith_d.CmpFPredicate
_I = arith_d.CmpIPredicate
_Corner = tuple[Value, Value, Value]
"""Row, column and weight of an element."""

CHANNELS = 256      # that a CPU reads a sample of together, whose place is computed once


def _to_f32(value: Value, dtype: Type) -> Value:
    return scalar.convert(value, dtype, ir.F32Type.get())


def _from_f32(value: Value, dtype: Type) -> Value:
    return scalar.convert(value, ir.F32Type.get(), dtype)


@converts_to_loops("roi_align")
def roi_align(k: LoopKernel) -> None:
    (x, rois, batch), out = k.inputs, k.outputs[0]
    size, samples, scale = k.op.attr("size"), k.op.attr("samples"), k.op.attr("spatial_scale")
    mean, half = k.op.attr("mode") == "avg", k.op.attr("half_pixel")
    shift = 0.5 if half else 0.0

    def cell(c: list[Value], use: Callable[[list[Value], Value, Value, list[_Corner]], list[Value]],
             starts: Callable[[Value], list[Value]]) -> tuple[list[Value], Value]:
        """Carries `starts`, of what a cell begins with, through the samples of a cell: roi, row and column.

        use: gets the values that are carried, the image, whether the sample lies in it, and its corners. Gives what
        comes out, and the number of samples.
        """
        image = k.wrapped(batch.load([c[0]]), batch.dtype, x.dims[0])
        box = [arith_d.subf(arith_d.mulf(_to_f32(rois.load([c[0], k.dim(i)]), rois.dtype), f32_constant(scale)),
                            f32_constant(shift)) for i in range(4)]
        axes = []
        for d, (first, last) in enumerate(((box[1], box[3]), (box[0], box[2]))):
            span = arith_d.subf(last, first)
            step = arith_d.divf(span if half else arith_d.maximumf(span, f32_constant(1)), f32_constant(size[d]))
            most = constant(ir.F32Type.get(), 2**31)
            count = k.dim(samples) if samples else to_place(math_d.ceil(step), most)
            axes.append((first, step, count, *_reach(k, first, step, count, c[1 + d], x.dims[2 + d])))
        (y1, cell_y, ny, *ys), (x1, cell_x, nx, *xs) = axes

        def place(first: Value, step: Value, count: Value, at: Value, i: Value) -> Value:
            number_of = arith_d.addi(arith_d.muli(at, count), i)
            offset = arith_d.mulf(arith_d.addf(number(number_of), f32_constant(0.5)), step)
            return arith_d.addf(first, arith_d.divf(offset, number(count)))

        def row(i: Value, carried: list[Value]) -> list[Value]:
            y = place(y1, cell_y, ny, c[1], i)
            return k.fold(xs[1], carried, lambda j, inner: use(inner, image, *_corners(
                k, x.dims[2:], [y, place(x1, cell_x, nx, c[2], j)])), xs[0])

        start, count = f32_constant(0), arith_d.mulf(number(ny), number(nx))
        if not mean:
            read = arith_d.mulf(*(number(arith_d.subi(last, first)) for first, last in (ys, xs)))
            all_read = arith_d.andi(arith_d.cmpf(_F.OEQ, read, count), arith_d.cmpf(_F.OGT, count, f32_constant(0)))
            start = arith_d.select(all_read, f32_constant(-math.inf), start)
        return k.fold(ys[1], starts(start), row, ys[0]), count

    def joined(total: Value, at: list[Value], inside: Value, corners: list[_Corner]) -> Value:
        """`total` with a sample of a channel, which lies at `at`."""
        for *place, weight in corners:
            part = arith_d.mulf(_to_f32(x.load([*at, *place]), x.dtype), weight)
            total = (arith_d.addf if mean else arith_d.maximumf)(total, arith_d.select(inside, part, f32_constant(0)))
        return total

    def store(total: Value, count: Value, at: list[Value]) -> None:
        mean_of = arith_d.divf(total, arith_d.maximumf(count, f32_constant(1))) if mean else total
        out.store(_from_f32(mean_of, out.dtype), at)

    def element(c: list[Value]) -> None:
        total, count = cell([c[0], *c[2:]], lambda carried, image, inside, corners: [
            joined(carried[0], [image, c[1]], inside, corners)], lambda start: [start])
        store(total[0], count, c)

    def channels(c: list[Value]) -> None:
        roi, block, *place = c
        first = arith_d.muli(block, k.dim(CHANNELS))
        size, totals = arith_d.minsi(arith_d.subi(k.dim(x.dims[1]), first), k.dim(CHANNELS)), \
            k.scratch(CHANNELS, ir.F32Type.get())

        def begin(start: Value) -> list[Value]:
            k.loop(size, lambda j: memref_d.store(start, totals, [j]))
            return []

        def sample(carried: list[Value], image: Value, inside: Value, corners: list[_Corner]) -> list[Value]:
            k.loop(size, lambda j: memref_d.store(joined(
                memref_d.load(totals, [j]), [image, arith_d.addi(first, j)], inside, corners), totals, [j]))
            return carried

        _, count = cell([roi, *place], sample, begin)
        k.loop(size, lambda j: store(memref_d.load(totals, [j]), count, [roi, arith_d.addi(first, j), *place]))

    if k.threads:
        k.rows(out.dims, element)
    else:
        blocks = floordiv(x.dims[1] + CHANNELS - 1, CHANNELS)
        k.rows([out.dims[0], blocks, *out.dims[2:]], channels)


def _reach(k: LoopKernel, first: Value, cell: Value, count: Value, at: Value, size: Dim) -> tuple[Value, Value]:
    """From which to which of the samples of cell `at` may lie in the image: the others, of a box of any size, are 0."""
    each, all_ = arith_d.divf(number(count), cell), number(count)
    before = arith_d.mulf(number(at), all_)

    def sample(p: Value, margin: float) -> Value:
        place = arith_d.subf(arith_d.mulf(arith_d.subf(p, first), each), before)
        return to_place(arith_d.addf(place, f32_constant(margin)), all_)

    grows = arith_d.cmpf(_F.OGT, cell, f32_constant(0))
    low, high = sample(f32_constant(-1), -2), sample(number(k.dim(size)), 2)
    return arith_d.select(grows, low, k.dim(0)), arith_d.select(grows, high, count)


def _corners(k: LoopKernel, dims: tuple[Dim, ...], points: list[Value]) -> tuple[Value, list[_Corner]]:
    """Whether a bilinear read is of a point that is at most one element outside, and the four corners that it reads."""
    checks, sides = [], []
    for p, n in zip(points, dims, strict=True):
        size = number(k.dim(n))
        last = arith_d.subf(size, f32_constant(1))
        checks.append(arith_d.andi(arith_d.cmpf(_F.OGE, p, f32_constant(-1)), arith_d.cmpf(_F.OLE, p, size)))
        p = arith_d.maximumf(p, f32_constant(0))
        low = arith_d.minimumf(math_d.floor(p), last)
        p = arith_d.select(arith_d.cmpf(_F.OGE, low, last), low, p)
        part = arith_d.subf(p, low)
        sides.append(((to_place(low, last), arith_d.subf(f32_constant(1), part)),
                      (to_place(arith_d.addf(low, f32_constant(1)), last), part)))
    return arith_d.andi(*checks), [(y, z, arith_d.mulf(wy, wz)) for y, wy in sides[0] for z, wz in sides[1]]


@converts_to_loops("col2im")
def col2im(k: LoopKernel) -> None:
    """Each image element sums the column elements that windows put on it."""
    x, out = k.inputs[0], k.outputs[0]
    block, strides, dilations = k.op.attr("block"), k.op.attr("strides"), k.op.attr("dilations")
    low, high = k.op.attr("low"), k.op.attr("high")
    outs = [floordiv(n + lo + hi - ((b - 1) * d + 1), s) + 1
            for n, lo, hi, b, d, s in zip(out.dims[2:], low, high, block, dilations, strides, strict=True)]
    acc = accumulator(x.dtype)

    def element(c: list[Value]) -> None:
        def tap(index: list[Value], carried: list[Value]) -> list[Value]:
            inside, window = None, []
            for d, i in enumerate(index):
                at = arith_d.subi(arith_d.addi(c[2 + d], k.dim(low[d])), arith_d.muli(i, k.dim(dilations[d])))
                place = arith_d.floordivsi(at, k.dim(strides[d]))
                check = arith_d.andi(arith_d.cmpi(_I.ult, place, k.dim(outs[d])),
                                     arith_d.cmpi(_I.eq, arith_d.muli(place, k.dim(strides[d])), at))
                inside = check if inside is None else arith_d.andi(inside, check)
                window.append(arith_d.maxsi(arith_d.minsi(place, k.dim(outs[d] - 1)), k.dim(0)))
            row = k.flat([c[1], *index], [out.dims[1], *block])
            value = scalar.convert(x.load([c[0], row, k.flat(window, outs)]), x.dtype, acc)
            return [arith_d.addf(carried[0], arith_d.select(inside, value, constant(acc, 0)))]

        total = k.nest_fold(list(block), [constant(acc, 0)], tap)[0]
        out.store(scalar.convert(total, acc, x.dtype), c)

    k.rows(out.dims, element)
