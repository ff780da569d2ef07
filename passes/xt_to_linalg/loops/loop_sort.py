"""Loop kernels that order elements: sort, top_k. NaN counts as the greatest element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Type, Value, arith_d, ir
from xcc.passes.shared.regions import repeat
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import constant, is_float, is_unsigned, stored, to_index
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel, i64, to_i64, true
from xcc.passes.xt_to_linalg.loops.sorted_keys import LANES, KeyRow

_I = arith_d.CmpIPredicate
_F = arith_d.CmpFPredicate
BLOCK = 32      # elements that are compared with the worst of the kept ones side by side


def less(a: Value, b: Value, dtype: Type) -> Value:
    """a < b in the total order of numbers, then NaN."""
    if not is_float(dtype):
        return scalar.int_compare("lt", a, b, dtype)
    nan_last = arith_d.andi(arith_d.cmpf(_F.UNO, b, b), arith_d.cmpf(_F.ORD, a, a))
    return arith_d.ori(arith_d.cmpf(_F.OLT, a, b), nan_last)


@dataclass(frozen=True)
class Row:
    """The elements of x along an axis, with what ranks where: the larger first, or the smaller, and ties by index.

    A ranked element is a key of 64 bits, the value's in an order of unsigned numbers above the index; of a type of 64
    bits it is a pair, the value and the index, in a heap, and of two such words where it is sorted as a key.
    """

    k: LoopKernel
    x: Buffer
    outer: list[Value]
    axis: int
    largest: bool

    @property
    def keyed(self) -> bool:
        return bool(stored(self.x.dtype).width < 64)

    @property
    def index_bits(self) -> int:
        return 64 - int(stored(self.x.dtype).width)

    def at(self, i: Value) -> list[Value]:
        return [*self.outer[:self.axis], i, *self.outer[self.axis:]]

    def value(self, i: Value) -> Value:
        return self.x.load(self.at(i))

    def before(self, a: Value, b: Value) -> Value:
        """Whether value a ranks before value b."""
        return less(b, a, self.x.dtype) if self.largest else less(a, b, self.x.dtype)

    def key(self, i: Value) -> list[Value]:
        """Element i as one or two words of 64 bits, in whose order the elements rank."""
        ordered, place = self._ordered(self.value(i)), to_i64(i)
        if not self.keyed:
            return [ordered, place]
        high = arith_d.shli(arith_d.extui(i64(), ordered), constant(i64(), self.index_bits))
        return [arith_d.ori(high, place)]

    def element(self, i: Value) -> list[Value]:
        return self.key(i) if self.keyed else [self.value(i), to_i64(i)]

    def index(self, element: Sequence[Value]) -> Value:
        return self.index_of_key(element[0]) if self.keyed else element[1]

    def index_of_key(self, word: Value) -> Value:
        """Of a key's last word."""
        return arith_d.andi(word, constant(i64(), (1 << self.index_bits) - 1)) if self.keyed else word

    def behind(self, a: Sequence[Value], b: Sequence[Value]) -> Value:
        """Whether element a ranks behind element b."""
        if self.keyed:
            return arith_d.cmpi(_I.ugt, a[0], b[0])
        tie = arith_d.xori(self.before(a[0], b[0]), true())
        return arith_d.ori(self.before(b[0], a[0]), arith_d.andi(tie, arith_d.cmpi(_I.sgt, a[1], b[1])))

    def _ordered(self, value: Value) -> Value:
        """The value's bits as an unsigned number that is less where it ranks before; both zeros are one, and NaNs."""
        dtype = self.x.dtype
        t = ir.IntegerType.get_signless(stored(dtype).width)
        sign, ones = constant(t, 1 << (t.width - 1)), constant(t, -1)
        bits = value
        if is_float(dtype):
            bits = arith_d.bitcast(t, value)
            bits = arith_d.select(arith_d.cmpi(_I.eq, bits, sign), constant(t, 0), bits)
            bits = arith_d.xori(bits, arith_d.ori(arith_d.shrsi(bits, constant(t, t.width - 1)), sign))
            bits = arith_d.select(arith_d.cmpf(_F.UNO, value, value), ones, bits)
        elif not is_unsigned(dtype):
            bits = arith_d.xori(bits, sign)
        return arith_d.xori(bits, ones) if self.largest else bits


@dataclass(frozen=True)
class Heap:
    """A binary heap in buffers, each of which has a part of an element: its root ranks behind all others."""

    row: Row
    parts: tuple[Buffer, ...]

    def load(self, i: Value) -> list[Value]:
        return [part.load(self.row.at(i)) for part in self.parts]

    def store(self, element: Sequence[Value], i: Value) -> None:
        for part, value in zip(self.parts, element, strict=True):
            part.store(value, self.row.at(i))

    def form(self, size: Value) -> None:
        """Makes a heap of the first `size` elements."""
        k = self.row.k
        half = arith_d.divui(size, k.dim(2))

        def sink(i: Value) -> None:
            root = arith_d.subi(arith_d.subi(half, i), k.dim(1))
            self.sink(self.load(root), root, size)

        k.loop(half, sink)

    def sink(self, element: Sequence[Value], root: Value, size: Value) -> None:
        """Puts `element` where it belongs below `root`, which is free, of a heap of `size`: others move up."""
        k, behind = self.row.k, self.row.behind

        def left_of(i: Value) -> Value:
            return arith_d.addi(arith_d.muli(i, k.dim(2)), k.dim(1))

        def body(carried: list[Value]) -> list[Value]:
            free, left = carried
            right = arith_d.minui(arith_d.addi(left, k.dim(1)), arith_d.subi(size, k.dim(1)))
            a, b = self.load(left), self.load(right)
            other = behind(b, a)
            child = arith_d.select(other, right, left)
            worst = [arith_d.select(other, q, p) for p, q in zip(a, b, strict=True)]
            sinks = behind(worst, element)
            k.when(sinks, lambda: self.store(worst, free))
            return [arith_d.select(sinks, child, free), arith_d.select(sinks, left_of(child), size)]

        free, _ = repeat([root, left_of(root)], lambda c: arith_d.cmpi(_I.ult, c[1], size), body)
        self.store(element, free)

    def extract(self, size: Value) -> None:
        """Sorts its `size` elements: those that rank behind others last."""
        k = self.row.k

        def one(i: Value) -> None:
            end = arith_d.subi(size, i)
            last = self.load(end)
            self.store(self.load(k.dim(0)), end)
            self.sink(last, k.dim(0), end)

        k.loop(size, one, first=k.dim(1))


@converts_to_loops("sort", "top_k")
def top_k(k: LoopKernel) -> bool:
    """A heap of the best k elements with the worst at the root, then heap sort: n log k, in the outputs.

    Ties go by index, which makes it stable. A sort is the top k of all n elements; on CPUs a network sorts keys.
    """
    x, (values, indices) = k.inputs[0], k.outputs
    axis, largest = k.op.attr("axis"), k.op.attr("descending" if k.op.name == "sort" else "largest")
    n, count = k.dim(x.dims[axis]), k.dim(values.dims[axis])
    by_vectors = values.dims == x.dims and axis == len(x.dims) - 1 and k.threads is False

    def sorted_row(outer: list[Value]) -> None:
        row = Row(k, x, outer[:len(x.dims) - 1], axis, largest)
        parts = (indices,) if row.keyed else (values, indices)
        heap = Heap(row, parts)
        if by_vectors:
            keys = KeyRow(count, LANES, False, parts, row.outer)
            k.loop(count, lambda i: keys.put(row.key(i), i))
            keys.sort()
        else:
            k.loop(count, lambda i: heap.store(row.element(i), i))
            heap.form(count)
            _offer_others(heap, n, count)
            heap.extract(count)

        def decode(i: Value) -> None:
            index = row.index_of_key(indices.load(row.at(i)))
            values.store(row.value(to_index(index)), row.at(i))
            indices.store(index, row.at(i))

        if by_vectors or row.keyed:
            k.loop(count, decode)

    k.rows([d for i, d in enumerate(x.dims) if i != axis], sorted_row)
    return by_vectors


def _offer_others(heap: Heap, n: Value, count: Value) -> None:
    """Has the elements behind the first `count` replace those that rank behind them."""
    k, row = heap.row.k, heap.row

    def worst() -> Value:
        return row.value(to_index(row.index(heap.load(k.dim(0)))))

    def offer(i: Value) -> None:
        k.when(row.before(row.value(i), worst()), lambda: heap.sink(row.element(i), k.dim(0), count))

    def block(b: Value) -> None:
        first, least = arith_d.addi(some, arith_d.muli(b, k.dim(BLOCK))), worst()
        found = k.fold(BLOCK, [constant(true().type, 0)], lambda j, c: [
            arith_d.ori(c[0], row.before(row.value(arith_d.addi(first, j)), least))])[0]
        k.when(found, lambda: k.loop(BLOCK, lambda j: offer(arith_d.addi(first, j))))

    some = arith_d.select(arith_d.cmpi(_I.eq, count, k.dim(0)), n, count)
    blocks = k.dim(0) if k.threads else arith_d.divui(arith_d.subi(n, some), k.dim(BLOCK))
    if not k.threads:
        k.loop(blocks, block)
    k.loop(n, offer, first=arith_d.addi(some, arith_d.muli(blocks, k.dim(BLOCK))))
