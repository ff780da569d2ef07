"""Loop kernels that order elements: sort, top_k. NaN counts as the greatest element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xcc._mlir import Type, Value, arith_d
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import is_float
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel, to_i64, true

_I = arith_d.CmpIPredicate
_F = arith_d.CmpFPredicate


def less(a: Value, b: Value, dtype: Type) -> Value:
    """a < b in the total order of numbers, then NaN."""
    if not is_float(dtype):
        return scalar.int_compare("lt", a, b, dtype)
    nan_last = arith_d.andi(arith_d.cmpf(_F.UNO, b, b), arith_d.cmpf(_F.ORD, a, a))
    return arith_d.ori(arith_d.cmpf(_F.OLT, a, b), nan_last)


def _row(others: Sequence[Value], axis: int) -> Callable[[Any], list[Any]]:
    """Coordinates of element i of a row along `axis`."""
    return lambda i: [*others[:axis], i, *others[axis:]]


def sift_down(k: LoopKernel, root: Value, size: Value, above: Callable[[Any, Any], Any],
              swap: Callable[[Any, Any], None]) -> None:
    """Restores a binary heap of `size` elements below `root`."""
    def child_of(i: Value) -> Value:
        return arith_d.addi(arith_d.muli(i, k.dim(2)), k.dim(1))

    def body(carried: list[Value]) -> list[Value]:
        i = carried[0]
        left = child_of(i)
        right = arith_d.minui(arith_d.addi(left, k.dim(1)), arith_d.subi(size, k.dim(1)))
        child = arith_d.select(above(right, left), right, left)
        sinks = above(child, i)
        k.when(sinks, lambda: swap(i, child))
        return [arith_d.select(sinks, child, size)]

    k.repeat([root], lambda c: arith_d.cmpi(_I.ult, child_of(c[0]), size), body)


def _worse(dtype: Type, largest: bool, a: Value, i: Value, b: Value, j: Value) -> Value:
    """Whether (a, index i) ranks behind (b, index j)."""
    behind = less(a, b, dtype) if largest else less(b, a, dtype)
    ahead = less(b, a, dtype) if largest else less(a, b, dtype)
    tie = arith_d.xori(ahead, true())
    return arith_d.ori(behind, arith_d.andi(tie, arith_d.cmpi(_I.sgt, i, j)))


@converts_to_loops("sort", "top_k")
def top_k(k: LoopKernel) -> None:
    """A heap of the best k (value, index) pairs with the worst at the root, then heap sort: n log k, in the outputs.

    Ties go by index, which makes it stable. A sort is the top k of all n elements.
    """
    x, (values, indices) = k.inputs[0], k.outputs
    axis, largest = k.op.attr("axis"), k.op.attr("descending" if k.op.name == "sort" else "largest")
    n, count = k.dim(x.dims[axis]), k.dim(values.dims[axis])
    others = [d for i, d in enumerate(x.dims) if i != axis]
    worse = partial(_worse, x.dtype, largest)

    def row(c: list[Value]) -> None:
        at = _row(c[:len(others)], axis)

        def put(value: Value, index: Value, i: Value) -> None:
            values.store(value, at(i))
            indices.store(index, at(i))

        def above(i: Value, j: Value) -> Value:
            return worse(values.load(at(i)), indices.load(at(i)), values.load(at(j)), indices.load(at(j)))

        def swap(i: Value, j: Value) -> None:
            a, p, b, q = values.load(at(i)), indices.load(at(i)), values.load(at(j)), indices.load(at(j))
            put(b, q, i)
            put(a, p, j)

        k.loop(count, lambda i: put(x.load(at(i)), to_i64(i), i))
        half = arith_d.divui(count, k.dim(2))
        k.loop(half, lambda i: sift_down(k, arith_d.subi(arith_d.subi(half, i), k.dim(1)), count, above, swap))

        def offer(i: Value) -> None:
            value, root = x.load(at(i)), at(k.dim(0))

            def replace() -> None:
                put(value, to_i64(i), k.dim(0))
                sift_down(k, k.dim(0), count, above, swap)

            k.when(worse(values.load(root), indices.load(root), value, to_i64(i)), replace)

        some = arith_d.select(arith_d.cmpi(_I.eq, count, k.dim(0)), n, count)
        k.loop(n, offer, first=some)

        def extract(i: Value) -> None:
            end = arith_d.subi(count, i)
            swap(k.dim(0), end)
            sift_down(k, k.dim(0), end, above, swap)

        k.loop(count, extract, first=k.dim(1))

    k.rows(others, row)
