"""Loop kernels whose result size depends on data: nonzero, compress, unique.

The new symbol's value is the last output, memref<1xi64>. Each result whose dims hold the symbol is a flat memref of
its upper bound; its elements are laid out row-major for the actual size.
"""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Type, Value, arith_d
from xcc.passes.shared.regions import repeat
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import constant, is_bool, is_float, to_index
from xcc.passes.xt_to_linalg.loops.loop_sort import less
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel, i64, size_of, to_i64
from xcc.symbolic import Dim

_I = arith_d.CmpIPredicate


def _is_set(value: Value, dtype: Type) -> Value:
    if is_bool(dtype):
        return value
    if is_float(dtype):
        return scalar.float_compare("ne", value, constant(dtype, 0))
    return scalar.int_compare("ne", value, constant(dtype, 0), dtype)


def _count(k: LoopKernel, extent: Dim, test: Callable[[Value], Value]) -> Value:
    """How many i below `extent` pass `test`."""
    return k.fold(extent, [k.dim(0)], lambda i, c: [
        arith_d.addi(c[0], arith_d.select(test(i), k.dim(1), k.dim(0)))])[0]


def _each(k: LoopKernel, extent: Dim, test: Callable[[Value], Value], body: Callable[[Value, Value], None]) -> None:
    """``body(i, n)`` for the n-th i that passes `test`."""
    def step(i: Value, carried: list[Value]) -> list[Value]:
        chosen = test(i)
        k.when(chosen, lambda: body(i, carried[0]))
        return [arith_d.addi(carried[0], arith_d.select(chosen, k.dim(1), k.dim(0)))]

    k.fold(extent, [k.dim(0)], step)


def _place(k: LoopKernel, places: Buffer, i: Value) -> Value:
    """How many are chosen up to and with element `i`."""
    return to_index(places.load([i]))


def _store_count(k: LoopKernel, places: Buffer, total: Dim, count: Buffer) -> None:
    """By a launch of its own, where there may be no elements whose threads would store it."""
    def body(_: list[Value]) -> None:
        some = arith_d.cmpi(_I.ugt, k.dim(total), k.dim(0))
        count.store(constant(count.dtype, 0), [k.dim(0)])
        k.when(some, lambda: count.store(to_i64(_place(k, places, k.dim(total - 1))), [k.dim(0)]))

    k.rows([], body)


@converts_to_loops("nonzero")
def nonzero(k: LoopKernel) -> None:
    """With `places`, each element stores its own coordinates."""
    x, (out, count) = k.inputs[0], k.outputs
    total = size_of(x.dims)
    if len(k.inputs) > 1:
        places = k.inputs[1]

        def element(c: list[Value]) -> None:
            i, n = k.flat(c, x.dims), _place(k, places, k.dim(total - 1))

            def write() -> None:
                at = arith_d.subi(_place(k, places, i), k.dim(1))
                for axis, value in enumerate(c):
                    out.store(to_i64(value), [arith_d.addi(arith_d.muli(k.dim(axis), n), at)])

            k.when(_is_set(x.load(c), x.dtype), write)
            if isinstance(total, int):
                k.when(arith_d.cmpi(_I.eq, i, k.dim(0)), lambda: count.store(to_i64(n), [k.dim(0)]))

        k.rows(x.dims, element)
        if not isinstance(total, int):
            _store_count(k, places, total, count)
        return

    line = _line(x)

    def body(_: list[Value]) -> None:
        n = _count(k, total, lambda i: _is_set(line([i]), x.dtype))
        count.store(to_i64(n), [k.dim(0)])

        def element(c: list[Value], carried: list[Value]) -> list[Value]:
            chosen, at = _is_set(x.load(c), x.dtype), carried[0]

            def write() -> None:
                for axis, value in enumerate(c):
                    out.store(to_i64(value), [arith_d.addi(arith_d.muli(k.dim(axis), n), at)])

            k.when(chosen, write)
            return [arith_d.addi(at, arith_d.select(chosen, k.dim(1), k.dim(0)))]

        k.nest_fold(x.dims, [k.dim(0)], element)

    k.rows([], body)


def _line(x: Buffer) -> Callable[[list[Value]], Value]:
    """Loads of `x` by row-major position, without a division."""
    if not x.dims:
        return lambda _: x.load([])
    return x.load if len(x.dims) == 1 else x.merged([range(len(x.dims))]).load


@converts_to_loops("compress")
def compress(k: LoopKernel) -> None:
    """With `places`, each element of x is stored on its own."""
    (x, condition, *rest), (out, count) = k.inputs, k.outputs
    flat, axis = k.op.attr("flat", False), k.op.attr("axis", 0)
    before: list[Dim] = [] if flat else list(x.dims[:axis])
    after: list[Dim] = [] if flat else list(x.dims[axis + 1:])
    length = condition.dims[0]

    if rest:
        dims: list[Dim] = [*before, length, *after]

        def one(c: list[Value]) -> None:
            i, n = c[len(before)], _place(k, rest[0], k.dim(length - 1))

            def write() -> None:
                at = arith_d.subi(_place(k, rest[0], i), k.dim(1))
                source = k.unflat(i, x.dims) if flat else c
                out.store(x.load(source), [k.flat([*c[:len(before)], at, *c[len(before) + 1:]], [*before, n, *after])])

            k.when(condition.load([i]), write)
            if isinstance(size_of(dims), int):
                first = arith_d.cmpi(_I.eq, k.flat(c, dims), k.dim(0))
                k.when(first, lambda: count.store(to_i64(n), [k.dim(0)]))

        k.rows(dims, one)
        if not isinstance(size_of(dims), int):
            _store_count(k, rest[0], length, count)
        return

    line = _line(x)

    def test(i: Value) -> Value:
        return condition.load([i])

    def body(_: list[Value]) -> None:
        n = _count(k, length, test)
        count.store(to_i64(n), [k.dim(0)])

        def write(i: Value, at: Value) -> None:
            def element(c: list[Value]) -> None:
                head, tail = c[:len(before)], c[len(before):]
                value = line([i]) if flat else x.load([*head, i, *tail])
                out.store(value, [k.flat([*head, at, *tail], [*before, n, *after])])

            k.nest([*before, *after], element)

        _each(k, length, test, write)

    k.rows([], body)


@converts_to_loops("unique_runs")
def unique_runs(k: LoopKernel) -> None:
    """Each element stores its own number, and the first of a run what is known of all."""
    (x, indices, runs, following, at), (values, first, inverse, counts, number) = k.inputs, k.outputs
    total = x.dims[0]

    def element(c: list[Value]) -> None:
        i, place, source = c[0], at.load(c), indices.load(c)
        inverse.store(to_i64(to_index(place)), [to_index(source)])
        before = runs.load([arith_d.maxsi(arith_d.subi(i, k.dim(1)), k.dim(0))])
        begins = arith_d.ori(arith_d.cmpi(_I.eq, i, k.dim(0)), arith_d.cmpi(_I.ne, before, runs.load(c)))

        def write() -> None:
            values.store(x.load(c), [to_index(place)])
            first.store(source, [to_index(place)])
            counts.store(to_i64(arith_d.subi(to_index(following.load(c)), i)), [to_index(place)])

        k.when(begins, write)

    k.rows([total], element)
    _store_count(k, runs, total, number)


class _Slices:
    """The slices of `x` along an axis, or its elements, and the table `first` of distinct ones: each as its number."""

    def __init__(self, k: LoopKernel, x: Buffer, first: Buffer) -> None:
        self.k, self.x, self.first = k, x, first
        self.flat, axis = k.op.attr("flat", True), k.op.attr("axis", 0)
        self.before: list[Dim] = [] if self.flat else list(x.dims[:axis])
        self.after: list[Dim] = [] if self.flat else list(x.dims[axis + 1:])
        self.length = size_of(x.dims) if self.flat else x.dims[axis]

    def load(self, i: Value, c: list[Value]) -> Value:
        """The element of slice i at `c`."""
        outer = len(self.before)
        return self.x.load(self.k.unflat(i, self.x.dims) if self.flat else [*c[:outer], i, *c[outer:]])

    def order(self, i: Value, j: Value) -> Value:
        """-1, 0 or 1 as slice i of x comes before, equals or comes after slice j."""
        zero, one, minus = (constant(i64(), v) for v in (0, 1, -1))

        def step(c: list[Value], carried: list[Value]) -> list[Value]:
            a, b = self.load(i, c), self.load(j, c)
            here = arith_d.select(less(a, b, self.x.dtype), minus,
                                  arith_d.select(less(b, a, self.x.dtype), one, zero))
            return [arith_d.select(arith_d.cmpi(_I.eq, carried[0], zero), here, carried[0])]

        return self.k.nest_fold([*self.before, *self.after], [zero], step)[0]

    def distinct(self, i: Value) -> Value:
        """The number of the slice at place i of the table."""
        return arith_d.index_cast(self.k.dim(0).type, self.first.load([i]))

    def search(self, i: Value, n: Value) -> tuple[Value, Value]:
        """(place of slice i among the n distinct ones, whether it is there)."""
        k, zero = self.k, constant(i64(), 0)

        def halve(c: list[Value]) -> list[Value]:
            low, high, _ = c
            middle = arith_d.divui(arith_d.addi(low, high), k.dim(2))
            sign = self.order(self.distinct(middle), i)
            same = arith_d.cmpi(_I.eq, sign, zero)
            behind = arith_d.cmpi(_I.slt, sign, zero)
            after_middle = arith_d.addi(middle, k.dim(1))
            return [arith_d.select(same, middle, arith_d.select(behind, after_middle, low)),
                    arith_d.select(behind, high, middle), same]

        def scan(c: list[Value]) -> list[Value]:
            place, high, _ = c
            same = arith_d.cmpi(_I.eq, self.order(self.distinct(place), i), zero)
            moved = arith_d.select(same, place, arith_d.addi(place, k.dim(1)))
            return [moved, arith_d.select(same, place, high), same]

        false = arith_d.cmpi(_I.ne, zero, zero)
        place, _, found = repeat([k.dim(0), n, false], lambda c: arith_d.cmpi(_I.ult, c[0], c[1]),
                                   halve if k.op.attr("sorted", True) else scan)
        return place, found

    def insert(self, i: Value, n: Value, counts: Buffer) -> Value:
        """Counts slice i, which joins the n of the table where it is new; how many there are then."""
        k = self.k
        place, found = self.search(i, n)
        absent = arith_d.xori(found, constant(found.type, 1))

        def add() -> None:
            def shift(j: Value) -> None:
                target = arith_d.subi(arith_d.addi(n, place), j)
                source = arith_d.subi(target, k.dim(1))
                for table in (self.first, counts):
                    table.store(table.load([source]), [target])

            k.loop(n, shift, first=place)
            self.first.store(to_i64(i), [place])
            counts.store(constant(i64(), 0), [place])

        k.when(absent, add)
        counts.store(arith_d.addi(counts.load([place]), constant(i64(), 1)), [place])
        return arith_d.addi(n, arith_d.select(absent, k.dim(1), k.dim(0)))


@converts_to_loops("unique")
def unique(k: LoopKernel) -> None:
    """`first` is the table of distinct elements, as indices into x: kept sorted by insertion after a binary search, or
    in order of first use after a linear search. The other results follow from it."""
    values, first, inverse, counts, number = k.outputs
    slices = _Slices(k, k.inputs[0], first)
    before, after = slices.before, slices.after

    def body(_: list[Value]) -> None:
        n = k.fold(slices.length, [k.dim(0)], lambda i, carried: [slices.insert(i, carried[0], counts)])[0]
        number.store(to_i64(n), [k.dim(0)])
        k.loop(slices.length, lambda i: inverse.store(to_i64(slices.search(i, n)[0]), [i]))

        def write(j: Value) -> None:
            def element(c: list[Value]) -> None:
                head, tail = c[:len(before)], c[len(before):]
                values.store(slices.load(slices.distinct(j), c), [k.flat([*head, j, *tail], [*before, n, *after])])

            k.nest([*before, *after], element)

        k.loop(n, write)

    k.rows([], body)
