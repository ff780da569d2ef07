"""The loop kernel of best_boxes: a heap of the candidates of each image and class, whose best is taken until enough are
kept or none is left. Each is compared with those that are kept, up to the first that it overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Value, arith_d
from xcc.passes.shared.regions import repeat
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import accumulator, constant, to_i32, to_index
from xcc.passes.xt_to_linalg.loops.loop_sort import Heap, Row
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel, true

_I = arith_d.CmpIPredicate
_F = arith_d.CmpFPredicate


class _Candidates(Row):
    """Scores whose ranked elements are i32 numbers of boxes, in a heap with the best at the root."""

    def element(self, i: Value) -> list[Value]:
        return [to_i32(i)]

    def index(self, element: Sequence[Value]) -> Value:
        return element[0]

    def behind(self, a: Sequence[Value], b: Sequence[Value]) -> Value:
        """Whether box a is better than box b: the root of a heap is behind all others."""
        p, q = (self.value(to_index(v[0])) for v in (a, b))
        tie = arith_d.xori(self.before(q, p), true())
        return arith_d.ori(self.before(p, q), arith_d.andi(tie, arith_d.cmpi(_I.slt, a[0], b[0])))


class _Box:
    """The corners and the area of a box."""

    def __init__(self, boxes: Buffer, k: LoopKernel, image: Value, number: Value) -> None:
        self.dtype = accumulator(boxes.dtype)
        corners = [scalar.convert(boxes.load([image, number, k.dim(i)]), boxes.dtype, self.dtype) for i in range(4)]
        self.low, self.high = corners[:2], corners[2:]
        self.area = arith_d.mulf(*(arith_d.subf(b, a) for a, b in zip(self.low, self.high, strict=True)))

    def overlaps(self, other: _Box, most: Value) -> Value:
        """Whether the intersection is more than `most` of the union, which is not empty.

        A corner that is NaN makes the areas NaN, and no comparison holds: the intersection may be any number then.
        """
        zero = constant(self.dtype, 0)
        sides = [_larger(arith_d.subf(_smaller(b, d), _larger(a, c)), zero)
                 for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True)]
        both = arith_d.mulf(*sides)
        union = arith_d.subf(arith_d.addf(self.area, other.area), both)
        share = arith_d.select(arith_d.cmpf(_F.OLE, union, zero), zero, arith_d.divf(both, union))
        return arith_d.cmpf(_F.OGT, share, most)


def _smaller(a: Value, b: Value) -> Value:
    """One instruction, where `arith.minimumf` takes several to keep a NaN."""
    return arith_d.select(arith_d.cmpf(_F.OLT, a, b), a, b)


def _larger(a: Value, b: Value) -> Value:
    return arith_d.select(arith_d.cmpf(_F.OGT, a, b), a, b)


@converts_to_loops("best_boxes")
def best_boxes(k: LoopKernel) -> None:
    """The heap shrinks at the end of the line of results, where the kept ones are collected, the best last."""
    (boxes, scores, limit, overlap, *least), kept = k.inputs, k.outputs[0]
    one, zero = k.dim(1), k.dim(0)

    def line(c: list[Value]) -> None:
        heap = Heap(_Candidates(k, scores, c, 2, True), (kept,))
        count = _form(heap, least)
        most = arith_d.maxsi(to_index(limit.load([])), zero)
        share = scalar.convert(overlap.load([]), overlap.dtype, accumulator(boxes.dtype))

        def place(i: Value) -> Value:
            """Where the i-th kept one lies until all are known."""
            return arith_d.subi(arith_d.subi(count, i), one)

        def take(carried: list[Value]) -> list[Value]:
            size, found = carried
            best, size = heap.load(zero), arith_d.subi(size, one)
            heap.sink(heap.load(size), zero, size)
            box = _Box(boxes, k, c[0], to_index(best[0]))

            def compare(carried: list[Value]) -> list[Value]:
                other = _Box(boxes, k, c[0], to_index(heap.load(place(carried[0]))[0]))
                return [arith_d.addi(carried[0], one), arith_d.xori(box.overlaps(other, share), true())]

            _, alone = repeat([zero, true()], lambda v: arith_d.andi(
                v[1], arith_d.cmpi(_I.ult, v[0], found)), compare)
            k.when(alone, lambda: heap.store(best, place(found)))
            return [size, arith_d.addi(found, arith_d.select(alone, one, zero))]

        _, found = repeat([count, zero], lambda v: arith_d.andi(
            arith_d.cmpi(_I.ugt, v[0], zero), arith_d.cmpi(_I.ult, v[1], most)), take)

        def turn(i: Value) -> None:
            first, last = heap.load(i), heap.load(place(i))
            heap.store(last, i)
            heap.store(first, place(i))

        k.loop(arith_d.divui(count, k.dim(2)), turn)
        k.loop(scores.dims[2], lambda i: heap.store([constant(kept.dtype, -1)], i), first=found)

    k.rows(scores.dims[:2], line)


def _form(heap: Heap, least: Sequence[Buffer]) -> Value:
    """Makes a heap of those whose score is above `least`, if there is one; how many they are."""
    k, row = heap.row.k, heap.row

    def offer(i: Value, carried: list[Value]) -> list[Value]:
        if not least:
            heap.store(row.element(i), i)
            return [arith_d.addi(carried[0], k.dim(1))]
        heap.store(row.element(i), carried[0])      # the next one lies there, too, where this is not wanted
        wanted = scalar.float_compare("gt", row.value(i), least[0].load([]))
        return [arith_d.addi(carried[0], arith_d.select(wanted, k.dim(1), k.dim(0)))]

    count = k.fold(row.x.dims[2], [k.dim(0)], offer)[0]
    heap.form(count)
    return count
