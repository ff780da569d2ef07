"""Tiles of a product that are larger than the registers: accumulated apart, then used in strips of rows.

    %r = (the product's loops) : vector<32x32xf32>
    vector.transfer_write %r, %buffer : memref<32x32xf32>          (on the stack)
    scf.for %i = 0 to 32 step 8
      %s = vector.transfer_read %buffer[%i, 0] : vector<8x32xf32>
      (what the kernel does with the product, on 8 rows)

Matrix registers cannot do anything but multiply; their tiles pass through memory anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xcc._mlir import Type, Value, ir
from xcc.passes.linalg.build.tile_values import Axis, Ix
from xcc.passes.linalg.evaluate.tile_eval import Evaluator
from xcc.passes.linalg.kernel.domain import contraction_of, domain
from xcc.passes.linalg.kernel.kernel import Kernel, Tensor, bare_loop
from xcc.passes.shared.regions import for_loop

ALIGNMENT = 64      # bytes


@dataclass(frozen=True)
class Product:
    """The result of a kernel's contraction; `dims` are the dims of the kernel's main result that its own dims are."""

    t: Tensor
    dims: tuple[int, ...]


def product_in_strips(kernel: Kernel) -> Product | None:
    """The kernel's contraction, where each of its dims is one of the main result."""
    op = contraction_of(kernel)
    position = None if op is None else domain(kernel).position.get(op)
    if op is None or position is None:
        return None
    dims = tuple(d for d in map(bare_loop, position) if d is not None)
    return Product(op.results[0], dims) if len(dims) == len(position) else None


class Strips:
    """Emits one tile; `store` evaluates the kernel's results at given coordinates and writes them."""

    def __init__(self, ev: Evaluator, product: Product, store: Callable[[dict[int, Ix]], None]) -> None:
        self.ev, self.b, self.product, self.store = ev, ev.b, product, store

    def emit(self, at: Mapping[int, Ix]) -> None:
        """`at`: the index of each tile dim. A limit of the last one is for the strips: panels are whole."""
        last = max(at)
        whole = {**at, last: _unlimited(at[last])}
        walked = [d for d in self.product.dims if at[d].axes]
        value = self.ev.tile(self.product.t, [whole[d] for d in self.product.dims])
        buffer = self._buffer([whole[d].coefs[0][0].size for d in walked], self.product.t.element)
        self.ev.memory.store(self.product.t, buffer, value, [_from_zero(whole[d]) for d in walked])
        rows = [d for d in sorted(at) if d != last and at[d].axes]
        self._strips(buffer, rows, dict(at), {d: _from_zero(at[d]) for d in walked})

    def _buffer(self, shape: list[int], element: Type) -> Value:
        t = ir.MemRefType.get(shape, element)
        i64 = ir.IntegerType.get_signless(64)
        return ir.Operation.create("memref.alloca", results=[t], operands=[], attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": ir.IntegerAttr.get(i64, ALIGNMENT)}).results[0]

    def _strips(self, buffer: Value, rows: list[int], at: dict[int, Ix], part: dict[int, Ix]) -> None:
        """Loops over the coordinates of the outer dims of `rows`, and strips of the innermost one."""
        if not rows:
            with self.b.scope():
                indices = [at[d] for d in self.product.dims]
                key = ("tile", self.product.t, tuple(i.key() for i in indices))
                self.b.remember(key, self.ev.memory.load_from(buffer, list(part.values())))
                self.store(at)
            return
        d, rest = rows[0], rows[1:]
        size, limit = at[d].coefs[0][0].size, at[d].coefs[0][0].limit
        step = 1 if rest or limit is not None else min(size, self.ev.schedule.cpu.strips)
        whole = size - size % step

        def strip(first: Value, lanes: int) -> None:
            axes = ((Axis(lanes, d), 1),) if lanes > 1 else ()
            start = self.b.ix_of(self.b.add(self.b.scalar(at[d]), first))
            self._strips(buffer, rest, {**at, d: Ix(start.base, start.const, axes)},
                         {**part, d: Ix(first, 0, axes)})

        if whole == step:
            strip(self.b.int(0), step)
        else:
            end = self.b.int(whole) if limit is None else self.b.binary("arith.minsi", self.b.int(whole), limit)
            with for_loop(self.b.int(0), end, self.b.int(step)) as first, self.b.scope():
                strip(first, step)
        if size > whole:
            strip(self.b.int(whole), size - whole)


def _unlimited(i: Ix) -> Ix:
    """The same walk with all lanes valid."""
    return Ix(i.base, i.const, tuple((Axis(a.size, a.order), c) for a, c in i.coefs))


def _from_zero(i: Ix) -> Ix:
    return Ix(coefs=i.coefs)
