"""Loop kernels of sorts by merging, an iteration an element: sort_runs, merge_runs. NaN counts as the greatest."""

from __future__ import annotations

from typing import Any

from xcc._mlir import arith_d, ir
from xcc.passes.xt_to_linalg.loop_sort import less
from xcc.passes.xt_to_linalg.loops import LoopKernel, true
from xcc.passes.xt_to_linalg.registry import converts_to_loops

_I = arith_d.CmpIPredicate


def _not(value: Any) -> Any:
    return arith_d.xori(value, true())


def _below(value: Any, other: Any) -> Any:
    return arith_d.cmpi(_I.ult, value, other)


def _i32(index: Any) -> Any:
    return arith_d.index_cast(ir.IntegerType.get_signless(32), index)


@converts_to_loops("sort_runs")
def sort_runs(k: LoopKernel) -> None:
    """An element's place in its run is how many of the run stand before it."""
    x, (values, indices) = k.inputs[0], k.outputs
    run, descending = k.op.attr("run"), k.op.attr("descending")

    def element(c: list[Any]) -> None:
        *row, i = c
        start = arith_d.muli(arith_d.divui(i, k.dim(run)), k.dim(run))
        length = arith_d.minui(k.dim(run), arith_d.subi(k.dim(x.dims[-1]), start))
        mine = x.load(c)

        def count(j: Any, carried: list[Any]) -> list[Any]:
            at = arith_d.addi(start, j)
            other = x.load([*row, at])
            ahead = less(mine, other, x.dtype) if descending else less(other, mine, x.dtype)
            behind = less(other, mine, x.dtype) if descending else less(mine, other, x.dtype)
            first = arith_d.ori(ahead, arith_d.andi(_not(behind), _below(at, i)))
            return [arith_d.addi(carried[0], arith_d.select(first, k.dim(1), k.dim(0)))]

        place = arith_d.addi(start, k.fold(length, [k.dim(0)], count)[0])
        values.store(mine, [*row, place])
        indices.store(_i32(i), [*row, place])

    k.rows(x.dims, element)


@converts_to_loops("merge_runs")
def merge_runs(k: LoopKernel) -> None:
    """An element's place is that in its own run and how many of the other run stand before it."""
    (x, numbers), (values, indices) = k.inputs, k.outputs
    run, descending = k.op.attr("run"), k.op.attr("descending")
    merged = min(2 * run, k.op.attr("keep"))

    def element(c: list[Any]) -> None:
        *row, i = c
        pair, inside = arith_d.divui(i, k.dim(2 * run)), arith_d.remui(i, k.dim(2 * run))
        right = arith_d.cmpi(_I.uge, inside, k.dim(run))
        start = arith_d.muli(pair, k.dim(2 * run))
        other = arith_d.select(right, start, arith_d.addi(start, k.dim(run)))
        size = k.dim(x.dims[-1])
        length = arith_d.minsi(k.dim(run), arith_d.maxsi(k.dim(0), arith_d.subi(size, other)))
        mine = x.load(c)

        def halve(_: Any, carried: list[Any]) -> list[Any]:
            low, high = carried
            middle = arith_d.divui(arith_d.addi(low, high), k.dim(2))
            at = arith_d.minui(arith_d.addi(other, middle), arith_d.subi(size, k.dim(1)))
            found = x.load([*row, at])
            ahead = less(mine, found, x.dtype) if descending else less(found, mine, x.dtype)
            behind = less(found, mine, x.dtype) if descending else less(mine, found, x.dtype)
            first = arith_d.ori(ahead, arith_d.andi(right, _not(behind)))      # equal ones of the left run come first
            open_ = _below(low, high)
            taken = arith_d.andi(open_, first)
            return [arith_d.select(taken, arith_d.addi(middle, k.dim(1)), low),
                    arith_d.select(arith_d.andi(open_, _not(first)), middle, high)]

        ahead = k.fold(run.bit_length(), [k.dim(0), length], halve)[0]
        own = arith_d.select(right, arith_d.subi(inside, k.dim(run)), inside)
        place = arith_d.addi(own, ahead)

        def write() -> None:
            at = [*row, arith_d.addi(arith_d.muli(pair, k.dim(merged)), place)]
            values.store(mine, at)
            indices.store(numbers.load(c), at)

        k.when(_below(place, k.dim(merged)), write)

    k.rows(x.dims, element)
