"""Loop kernels of scatters on GPUs: last_writers, segment_starts, combine_segments."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value, arith_d, memref_d
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import accumulator, constant, to_i32, to_index
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel, size_of
from xcc.passes.xt_to_linalg.ops.elementwise import binary
from xcc.symbolic import ceildiv

_I = arith_d.CmpIPredicate
TOGETHER = 4        # elements of an iteration
OPS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


@converts_to_loops("last_writers")
def last_writers(k: LoopKernel) -> None:
    """All indices at once: the largest number stays, whichever comes first (memref.atomic_rmw)."""
    indices, out = k.inputs[0], k.outputs[0]
    axis = k.op.attr("axis")
    total = size_of(out.dims)
    threads = ceildiv(total, TOGETHER)
    nobody = constant(out.dtype, -1)

    def clear(c: list[Value]) -> None:
        for n in range(TOGETHER):
            flat = arith_d.addi(c[0], k.dim(threads * n))

            def store(flat: Value = flat) -> None:
                out.store(nobody, k.unflat(flat, out.dims))

            k.when(arith_d.cmpi(_I.ult, flat, k.dim(total)), store)

    k.rows([threads], clear)

    def write(c: list[Value]) -> None:
        place = k.wrapped(indices.load(c), indices.dtype, out.dims[axis])
        memref_d.atomic_rmw(arith_d.AtomicRMWKind.maxs, to_i32(c[axis]), out.memref, [*c[:axis], place, *c[axis + 1:]])

    k.rows(indices.dims, write)


@converts_to_loops("segment_starts")
def segment_starts(k: LoopKernel) -> None:
    """A binary search for each number."""
    keys, out = k.inputs[0], k.outputs[0]
    count = k.dim(keys.dims[0])

    def element(c: list[Value]) -> None:
        wanted = arith_d.index_cast(keys.dtype, c[0])

        def halve(carried: list[Value]) -> list[Value]:
            low, high = carried
            middle = arith_d.divui(arith_d.addi(low, high), k.dim(2))
            less = arith_d.cmpi(_I.slt, keys.load([middle]), wanted)
            return [arith_d.select(less, arith_d.addi(middle, k.dim(1)), low), arith_d.select(less, high, middle)]

        low, _ = k.repeat([k.dim(0), count], lambda c: arith_d.cmpi(_I.ult, c[0], c[1]), halve)
        out.store(to_i32(low), c)

    k.rows(out.dims, element)


@converts_to_loops("combine_segments")
def combine_segments(k: LoopKernel) -> None:
    """An iteration an element; narrow floats are combined in f32 and rounded once."""
    (x, starts, order, updates), out = k.inputs, k.outputs[0]
    reduction = k.op.attr("reduction")
    acc = accumulator(x.dtype)

    places, width = out.dims
    together = TOGETHER if isinstance(width, int) and width >= 32 * TOGETHER else 1
    apart = ceildiv(width, together)    # columns between those of an iteration: neighbours are those of neighbours

    def element(c: list[Value]) -> None:
        row = c[0]
        columns = [arith_d.addi(c[1], k.dim(apart * n)) for n in range(together)]
        safe = [arith_d.minui(at, k.dim(width - 1)) if n else at for n, at in enumerate(columns)]
        first, last = (to_index(starts.load([arith_d.addi(row, k.dim(n))])) for n in (0, 1))

        def step(i: Value, carried: list[Value]) -> list[Value]:
            source = to_index(order.load([i]))
            values = [updates.load([source, at]) for at in safe]
            return [binary(OPS[reduction], total, scalar.convert(value, updates.dtype, acc), acc)
                    for total, value in zip(carried, values, strict=True)]

        begin = [[k.dim(0) if d == 1 else i for d, i in zip(x.dims, (row, at), strict=True)] for at in safe]
        totals = k.fold(last, [scalar.convert(x.load(at), x.dtype, acc) for at in begin], step, first)
        for at, total in zip(columns, totals, strict=True):
            def store(at: Any = at, total: Value = total) -> None:
                out.store(scalar.convert(total, acc, x.dtype), [row, at])

            k.when(arith_d.cmpi(_I.ult, at, k.dim(width)), store)

    k.rows([places, apart], element)
