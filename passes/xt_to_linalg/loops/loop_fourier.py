"""Loop kernels of Fourier transforms of rows: some rows are transformed together, one in each lane of the vectors.

    scf.forall %g = rows {
      %a, %b = memref.alloca                                  pairs of a number: [2n][lanes]
      the rows, transposed                                    %x[rows, columns] -> %a
      for each factor r of n: butterflies of r numbers        %a -> %b, %b -> %a, ... (Stockham's order)
      transposed back }                                       -> %y[rows, columns]

Real rows of n numbers are n/2 complex ones, from whose transform theirs is made as it is stored; the inverse makes
these as they are read first (Sorensen, Jones, Heideman and Burrus, 1987).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from xcc._mlir import Type, Value, arith_d, ir
from xcc.passes.shared.factors import butterfly_factors
from xcc.passes.shared.values import op, splat, splat_constant
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.loops.butterflies import Arithmetic, Number, butterfly
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel

LINE_BYTES = 64
Read = Callable[[Value], Number]


@converts_to_loops("fourier_rows")
def fourier_rows(k: LoopKernel) -> bool:
    rows, lanes = k.inputs[0].dims[0], k.op.attr("lanes")
    n = k.inputs[1].dims[0]
    assert isinstance(n, int)
    kind = k.op.attr("kind")
    count = n // 2 if kind.startswith("real") else n
    k.rows([(rows + lanes - 1) // lanes], lambda c: _Rows(k, kind, n, count, lanes).emit(c[0]))
    return True


@dataclass(frozen=True)
class _Rows:
    """Emits the body: `count` complex numbers of a transform of `n`."""

    k: LoopKernel
    kind: str
    n: int
    count: int
    lanes: int

    @property
    def element(self) -> Type:
        return self.k.inputs[0].dtype

    @property
    def vector(self) -> Type:
        return ir.VectorType.get([self.lanes], self.element)

    def emit(self, group: Value) -> None:
        first, end = arith_d.muli(group, self.k.dim(self.lanes)), self.k.dim(self.k.inputs[0].dims[0] - 1)
        rows = [arith_d.minsi(arith_d.addi(first, self.k.dim(r)), end) for r in range(self.lanes)]   # the last again
        source, target = self._scratch(), self._scratch()
        self._read_rows(rows, source)
        if self.kind == "real_inverse":
            for real in (0, self.count):        # whose imaginary parts count for nothing
                self._store(source, self.k.dim(2 * real + 1), splat_constant(self.vector, 0))
        read = partial(self._unfolded if self.kind == "real_inverse" else self._pair, source)
        step = 1
        for radix in butterfly_factors(self.count) or (1,):
            self._stage(read, target, radix, step)
            source, target, step = target, source, step * radix
            read = partial(self._pair, source)
        if self.kind == "real":
            self._write(source, self.k.dim(self.count), read(self.k.dim(0)))        # the first number comes round again
        self._write_rows(rows, source)

    def _scratch(self) -> Value:
        kind = ir.MemRefType.get([2 * (self.count + 1) * self.lanes], self.element)
        return op("memref.alloca", [kind], [], operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                  alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES))

    def _stage(self, read: Read, target: Value, radix: int, step: int) -> None:
        """Butterflies of `radix` numbers, which lie n / radix apart; `step` transforms of as many numbers as are left
        lie interleaved."""
        k, rest = self.k, self.count // radix // step
        turn = self.n // self.count * step

        def group(p: Value) -> None:
            roots = [self._root(arith_d.muli(p, k.dim(turn * j))) for j in range(1, radix)] if rest > 1 else []
            base, into = (arith_d.muli(p, k.dim(m)) for m in (step, step * radix))

            def one(q: Value) -> None:
                a = self._arithmetic()
                at, to = arith_d.addi(base, q), arith_d.addi(into, q)
                numbers = [read(arith_d.addi(at, k.dim(step * rest * i))) for i in range(radix)]
                made = butterfly(a, numbers)
                for j, number in enumerate(made):
                    turned = a.times(number, *roots[j - 1]) if j and roots else number
                    self._write(target, arith_d.addi(to, k.dim(step * j)), turned)

            k.loop(step, one)

        k.loop(rest, group)

    def _arithmetic(self) -> Arithmetic:
        return Arithmetic(self.vector, -1 if self.kind.endswith("inverse") else 1)

    def _root(self, at: Value) -> Number:
        re, im = (splat(self.k.inputs[1].load([at, self.k.dim(part)]), self.lanes) for part in (0, 1))
        return re, im

    def _unfolded(self, buffer: Value, at: Value) -> Number:
        """Of the half of a real tensor's frequencies, the number whose transform has even and odd elements as parts."""
        (a, b), (c, d) = self._pair(buffer, at), self._pair(buffer, arith_d.subi(self.k.dim(self.count), at))
        u, v = self._root(at)
        re, im = arith_d.subf(a, c), arith_d.addf(b, d)
        turned = self._arithmetic().times((re, im), u, v)
        return arith_d.subf(arith_d.addf(a, c), turned[1]), arith_d.addf(arith_d.subf(b, d), turned[0])

    def _folded(self, buffer: Value, at: Value) -> Number:
        """A frequency of a real tensor, of the transform of its even and odd elements as parts."""
        (a, b), (c, d) = self._pair(buffer, at), self._pair(buffer, arith_d.subi(self.k.dim(self.count), at))
        u, v = self._root(at)
        re, im = self._arithmetic().times((arith_d.addf(b, d), arith_d.subf(c, a)), u, v)
        half = splat_constant(self.vector, 0.5)
        return (arith_d.mulf(half, arith_d.addf(arith_d.addf(a, c), re)),
                arith_d.mulf(half, arith_d.addf(arith_d.subf(b, d), im)))

    # Memory

    def _place(self, at: Value) -> Value:
        return arith_d.muli(at, self.k.dim(self.lanes))

    def _load(self, buffer: Value, at: Value) -> Value:
        return op("vector.load", [self.vector], [buffer, self._place(at)])

    def _store(self, buffer: Value, at: Value, value: Value) -> None:
        op("vector.store", [], [value, buffer, self._place(at)])

    def _pair(self, buffer: Value, at: Value) -> Number:
        even = arith_d.muli(at, self.k.dim(2))
        return self._load(buffer, even), self._load(buffer, arith_d.addi(even, self.k.dim(1)))

    def _write(self, buffer: Value, at: Value, number: Number) -> None:
        even = arith_d.muli(at, self.k.dim(2))
        self._store(buffer, even, number[0])
        self._store(buffer, arith_d.addi(even, self.k.dim(1)), number[1])

    def _squares(self, columns: int, body: Callable[[Value], None]) -> None:
        """For the first column of each square of `lanes` columns; the last one overlaps."""
        k = self.k
        k.loop(-(-columns // self.lanes), lambda i: body(
            arith_d.minsi(arith_d.muli(i, k.dim(self.lanes)), k.dim(columns - self.lanes))))

    def _read_rows(self, rows: list[Value], buffer: Value) -> None:
        x = self.k.inputs[0]
        assert isinstance(x.dims[1], int)

        def square(column: Value) -> None:
            lines = transposed([op("vector.load", [self.vector], [x.memref, row, column]) for row in rows])
            for i, line in enumerate(lines):
                self._store(buffer, arith_d.addi(column, self.k.dim(i)), line)

        self._squares(x.dims[1], square)

    def _write_rows(self, rows: list[Value], buffer: Value) -> None:
        k, out = self.k, self.k.outputs[0]
        assert isinstance(out.dims[1], int)
        read = self._folded if self.kind == "real" else self._pair

        def square(column: Value) -> None:
            at = arith_d.shrui(column, k.dim(1))
            numbers = [read(buffer, arith_d.addi(at, k.dim(i))) for i in range(self.lanes // 2)]
            lines = transposed([part for number in numbers for part in number])
            if self.kind.endswith("inverse"):
                lines = [arith_d.mulf(line, splat_constant(self.vector, 1 / self.n)) for line in lines]
            for row, line in zip(rows, lines, strict=True):
                op("vector.store", [], [line, out.memref, row, column])

        self._squares(out.dims[1], square)


def transposed(rows: list[Value]) -> list[Value]:
    """Vectors of as many elements as there are of them, a power of two: element i of row j is element j of line i."""
    size, step = len(rows), 1
    while step < size:
        low = [j if not j & step else size + j - step for j in range(size)]
        high = [j + step if not j & step else size + j for j in range(size)]
        made = list(rows)
        for j in range(size):
            if not j & step:
                made[j], made[j + step] = (_shuffled(rows[j], rows[j + step], order) for order in (low, high))
        rows, step = made, 2 * step
    return rows


def _shuffled(a: Value, b: Value, order: list[int]) -> Value:
    return op("vector.shuffle", [a.type], [a, b], mask=ir.DenseI64ArrayAttr.get(order))
