"""Loop kernels of places: last_writers, segment_starts, combine_segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xcc._mlir import Type, Value, arith_d, memref_d
from xcc.passes.shared.regions import repeat
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import accumulator, constant, to_i32, to_index
from xcc.passes.xt_to_linalg.loops.loops import COLUMNS, LoopKernel, size_of
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

        low, _ = repeat([k.dim(0), count], lambda c: arith_d.cmpi(_I.ult, c[0], c[1]), halve)
        out.store(to_i32(low), c)

    k.rows(out.dims, element)


@converts_to_loops("combine_segments")
def combine_segments(k: LoopKernel) -> None:
    """Narrow floats are combined in f32 and rounded once."""
    (x, starts, order, updates), out = k.inputs, k.outputs[0]
    acc = accumulator(x.dtype)

    def segment(row: Value) -> tuple[Value, Value]:
        first, last = (to_index(starts.load([arith_d.addi(row, k.dim(n))])) for n in (0, 1))
        return first, last

    def begin(row: Value, at: Value) -> Value:
        return scalar.convert(x.load([k.dim(0) if d == 1 else i for d, i in zip(x.dims, (row, at), strict=True)]),
                              x.dtype, acc)

    def combined(total: Value, i: Value, at: Value) -> Value:
        value = updates.load([i, at])
        return binary(OPS[k.op.attr("reduction")], total, scalar.convert(value, updates.dtype, acc), acc)

    def finish(total: Value, coords: list[Value]) -> None:
        out.store(scalar.convert(total, acc, x.dtype), coords)

    steps = _Steps(segment, begin, lambda i: to_index(order.load([i])), combined, finish)
    if k.threads:
        _elements(k, steps)
    else:
        _neighbours(k, steps, acc)


@dataclass(frozen=True)
class _Steps:
    """What both walks over segments do: where a row's segment begins and ends, an element's first total, the row of the
    updates that a place of the order names, a total with an element of it, and the result."""

    segment: Callable[[Value], tuple[Value, Value]]
    begin: Callable[[Value, Value], Value]
    source: Callable[[Value], Value]
    combined: Callable[[Value, Value, Value], Value]
    finish: Callable[[Value, list[Value]], None]


def _elements(k: LoopKernel, steps: _Steps) -> None:
    """A thread an element, or a few."""
    places, width = k.outputs[0].dims
    together = TOGETHER if isinstance(width, int) and width >= 32 * TOGETHER else 1
    apart = ceildiv(width, together)    # columns between those of an iteration: neighbours are those of neighbours

    def element(c: list[Value]) -> None:
        row = c[0]
        columns = [arith_d.addi(c[1], k.dim(apart * n)) for n in range(together)]
        safe = [arith_d.minui(at, k.dim(width - 1)) if n else at for n, at in enumerate(columns)]
        first, last = steps.segment(row)

        def step(i: Value, carried: list[Value]) -> list[Value]:
            source = steps.source(i)
            return [steps.combined(total, source, at) for total, at in zip(carried, safe, strict=True)]

        totals = k.fold(last, [steps.begin(row, at) for at in safe], step, first)
        for at, total in zip(columns, totals, strict=True):
            def store(at: Any = at, total: Value = total) -> None:
                steps.finish(total, [row, at])

            k.when(arith_d.cmpi(_I.ult, at, k.dim(width)), store)

    k.rows([places, apart], element)


def _neighbours(k: LoopKernel, steps: _Steps, acc: Type) -> None:
    """Totals of neighbours in a row wait on the stack for the next update."""
    places, width = k.outputs[0].dims

    def row(c: list[Value]) -> None:
        left = arith_d.muli(c[1], k.dim(COLUMNS))
        count = arith_d.minsi(arith_d.subi(k.dim(width), left), k.dim(COLUMNS))
        totals = k.scratch(COLUMNS, acc)
        first, last = steps.segment(c[0])

        def at(j: Value) -> Value:
            return arith_d.addi(left, j)

        def update(i: Value) -> None:
            source = steps.source(i)
            k.loop(count, lambda j: memref_d.store(steps.combined(memref_d.load(totals, [j]), source, at(j)),
                                                   totals, [j]))

        k.loop(count, lambda j: memref_d.store(steps.begin(c[0], at(j)), totals, [j]))
        k.loop(last, update, first)
        k.loop(count, lambda j: steps.finish(memref_d.load(totals, [j]), [c[0], at(j)]))

    k.rows([places, ceildiv(width, COLUMNS)], row)
