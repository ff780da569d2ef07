"""Loop kernels that write at computed positions: scatter_elements, scatter_nd. The last of equal positions wins.
In place, dynamic_update_slice, too: then the result holds the operand already, and only what changes is written.

Where iterations are threads, the places that are written are cut into ranges: a thread walks all indices, in order, and
takes those of its own range, so that the result is the same however threads run, and equal positions keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir, math_d
from xcc.passes.shared.regions import repeat
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import constant
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel
from xcc.passes.xt_to_linalg.ops.elementwise import binary
from xcc.symbolic import Dim

_I = arith_d.CmpIPredicate
COPIED = 8
WARP = 32           # neighbours whose indices are words of memory side by side
TOGETHER = 32       # bits of a mask: indices that a thread compares ahead of the first write
_OPS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def _copy(k: LoopKernel) -> None:
    if IN_PLACE in k.op.operation.attributes:
        return
    x, out = k.inputs[0], k.outputs[0]
    outer = x.dims[:-1]
    if k.threads:
        _copy_strided(k)
        return

    def row(c: list[Value]) -> None:
        k.nest(x.dims, lambda at: out.store(x.load(at), at), c[:len(outer)])

    k.rows(outer, row)


def _copy_strided(k: LoopKernel) -> None:
    """Each thread copies COPIED elements, which it reads together, so that neighbours are copied by neighbours."""
    x, out = k.inputs[0], k.outputs[0]
    total = symbolic.product(x.dims)
    threads = symbolic.ceildiv(total, COPIED)

    def thread(c: list[Value]) -> None:
        size = k.dim(total)
        flat = [arith_d.addi(c[0], k.dim(threads * n)) for n in range(COPIED)]
        at = [k.unflat(arith_d.minui(f, arith_d.subi(size, k.dim(1))), x.dims) for f in flat]
        for f, value, place in zip(flat, [x.load(a) for a in at], at, strict=True):
            inside = arith_d.cmpi(_I.ult, f, size)
            k.when(inside, lambda value=value, place=place: out.store(value, place))  # type: ignore[misc]

    k.rows([threads], thread)


def _ranges(k: LoopKernel, others: Dim, places: Dim) -> tuple[Dim, Dim]:
    """How many ranges to cut `places` into for each of `others` independent rows, and the places of a range.

    With R ranges a warp waits for a write some 3 times in TOGETHER indices at R = 45, 2 times at 128, each a trip to
    memory (600 ns). The cores walk R times `others` lists of indices, in 8 cycles an index for 32 threads, 500 such
    groups at once, so that R * R * others = 2^22 balances both.
    """
    if not k.threads:
        return 1, places
    rows = others if isinstance(others, int) else 1 << 10
    count = max(1, math.isqrt((1 << 22) // max(1, rows)))
    return (min(count, places) if isinstance(places, int) else count), symbolic.ceildiv(places, count)


def _walk(k: LoopKernel, dims: Sequence[Dim], part: Any, size: Dim, number: Callable[[list[Value]], Value],
          write: Callable[[list[Value]], None]) -> None:
    """``write(c)``, in order, for all `c` of `dims` whose place, ``number(c)``, is in range `part` of `size`.

    The numbers of TOGETHER neighbours are read and compared first; then those in the range are written, so that the
    threads of a warp wait for their first writes together, for their second, and so on.
    """
    if part is None:
        k.nest(dims, write)
        return

    def mine(c: list[Value]) -> Value:
        at = number(c)
        first, limit = arith_d.muli(part, k.dim(size)), k.dim(size)
        if not isinstance(at.type, ir.IndexType):
            first, limit = arith_d.index_cast(at.type, first), arith_d.index_cast(at.type, limit)
        return arith_d.cmpi(_I.ult, arith_d.subi(at, first), limit)

    def step(outer: list[Value]) -> None:
        length = k.dim(dims[-1])
        groups = arith_d.divui(length, k.dim(TOGETHER))

        def group(i: Value) -> None:
            start = arith_d.muli(i, k.dim(TOGETHER))
            tests = [mine([*outer, arith_d.addi(start, k.dim(n))]) for n in range(TOGETHER)]
            i32 = ir.IntegerType.get_signless(32)
            left = none = constant(i32, 0)
            for n, test in enumerate(tests):
                bit = constant(i32, 1 << n if n < 31 else -1 << 31)
                left = arith_d.ori(left, arith_d.select(test, bit, none))

            def next_(carried: list[Value]) -> list[Value]:
                less = arith_d.subi(carried[0], constant(i32, 1))
                below = arith_d.andi(less, arith_d.xori(carried[0], constant(i32, -1)))
                at = arith_d.index_cast(ir.IndexType.get(), math_d.ctpop(below))
                write([*outer, arith_d.addi(start, at)])
                return [arith_d.andi(carried[0], less)]

            repeat([left], lambda c: arith_d.cmpi(_I.ne, c[0], none), next_)

        def single(i: Value) -> None:
            k.when(mine([*outer, i]), lambda: write([*outer, i]))

        k.loop(groups, group)
        k.loop(length, single, first=arith_d.muli(groups, k.dim(TOGETHER)))

    if dims:
        k.nest(dims[:-1], step)
    else:
        k.when(mine([]), lambda: write([]))


def _wrapped(k: LoopKernel, value: Value, dtype: Type, extent: Dim) -> Value:
    """`LoopKernel.wrapped` for comparisons alone: in 32 bits where the data has them and any place fits."""
    if not isinstance(dtype, ir.IntegerType) or dtype.width != 32 or dtype.is_unsigned or not isinstance(extent, int):
        return k.wrapped(value, dtype, extent)
    zero = constant(dtype, 0)
    negative = arith_d.cmpi(_I.slt, value, zero)
    value = arith_d.select(negative, arith_d.addi(value, constant(dtype, extent)), value)
    return arith_d.maxsi(arith_d.minsi(value, constant(dtype, extent - 1)), zero)


def _combine(k: LoopKernel) -> Callable[[Value, list[Value]], None]:
    out, reduction = k.outputs[0], k.op.attr("reduction", "none")

    def write(value: Value, coords: list[Value]) -> None:
        if reduction != "none":
            value = binary(_OPS[reduction], out.load(coords), value, out.dtype)
        out.store(value, coords)

    return write


@converts_to_loops("scatter_elements")
def scatter_elements(k: LoopKernel) -> None:
    """Rows along the axis are independent; within one, updates are applied in order."""
    x, indices, updates = k.inputs
    axis, store = k.op.attr("axis"), _combine(k)
    others = [d for i, d in enumerate(updates.dims) if i != axis]
    ranges, size = _ranges(k, symbolic.product(others), x.dims[axis])
    _copy(k)

    def row(part: Any, rest: list[Value]) -> None:
        def number(i: list[Value]) -> Value:
            index = _index_of(k, axis, [*rest[:axis], *i, *rest[axis:]])
            return _wrapped(k, index, indices.dtype, x.dims[axis])

        _walk(k, [updates.dims[axis]], part, size, number, lambda i: _write_element(k, store, axis, rest, i[0]))

    if not k.threads and axis == len(x.dims) - 1:
        k.rows(others, lambda c: row(None, c[:len(others)]))
    elif not k.threads:
        def neighbours(rest: list[Value], each: Callable[[Callable[[Value], None]], None]) -> None:
            def write(i: Value) -> None:      # a place for all columns is computed ahead of them
                at = _place_of(k, axis, [*rest, k.dim(0)], i) if indices.dims[-1] == 1 else None
                each(lambda j: _write_element(k, store, axis, [*rest, j], i, at))

            k.loop(updates.dims[axis], write)

        k.columns(others, neighbours)
    elif axis == len(x.dims) - 1 or not others:      # the ranges of a row read its indices together
        k.rows([*others, ranges], lambda c: row(c[len(others)], c[:len(others)]))
    else:       # so do those of WARP neighbours along the last dim
        near = symbolic.ceildiv(others[-1], WARP)

        def columns(c: list[Value]) -> None:
            *outer, high, part, low = c
            last = arith_d.addi(arith_d.muli(high, k.dim(WARP)), low)
            k.when(arith_d.cmpi(_I.ult, last, k.dim(others[-1])), lambda: row(part, [*outer, last]))

        k.rows([*others[:-1], near, ranges, WARP], columns)


def _place_of(k: LoopKernel, axis: int, rest: list[Value], i: Value) -> Value:
    """Where along `axis` update `i` of the row `rest` goes."""
    x, indices, _ = k.inputs
    return k.wrapped(_index_of(k, axis, [*rest[:axis], i, *rest[axis:]]), indices.dtype, x.dims[axis])


def _write_element(k: LoopKernel, store: Callable[[Value, list[Value]], None], axis: int, rest: list[Value], i: Value,
                   at: Any = None) -> None:
    """Update `i` along `axis` of the row `rest`; `at` is its place, where that is known."""
    place = _place_of(k, axis, rest, i) if at is None else at
    store(k.inputs[2].load([*rest[:axis], i, *rest[axis:]]), [*rest[:axis], place, *rest[axis:]])


def _index_of(k: LoopKernel, axis: int, coords: list[Value]) -> Value:
    """The index of the update at `coords`; indices have one for all of a row where their dim is 1."""
    indices = k.inputs[1]
    return indices.load([k.dim(0) if n == 1 and d != axis else at
                         for d, (n, at) in enumerate(zip(indices.dims, coords, strict=True))])


@converts_to_loops("scatter_nd")
def scatter_nd(k: LoopKernel) -> None:
    """Elements of a slice are independent; index vectors are applied in order."""
    x, indices, updates = k.inputs
    depth, outer, store = symbolic.evaluate(indices.dims[-1], {}), indices.dims[:-1], _combine(k)
    lead: list[Dim] = list(x.dims[:depth])
    inner: list[Dim] = list(x.dims[depth:])
    ranges, size = _ranges(k, symbolic.product(inner), symbolic.product(lead))
    _copy(k)

    def place(vector: list[Value]) -> list[Value]:
        return [k.wrapped(indices.load([*vector, k.dim(d)]), indices.dtype, x.dims[d]) for d in range(depth)]

    def element(part: Any, rest: list[Value]) -> None:
        def write(vector: list[Value]) -> None:
            store(updates.load([*vector, *rest]), [*place(vector), *rest])

        _walk(k, outer, part, size, lambda vector: k.flat(place(vector), lead), write)

    def columns(rest: list[Value], each: Callable[[Callable[[Value], None]], None]) -> None:
        def write(vector: list[Value]) -> None:
            at = place(vector)
            each(lambda j: store(updates.load([*vector, *rest, j]), [*at, *rest, j]))

        k.nest(outer, write)

    if k.threads:
        k.rows([ranges, *inner], lambda c: element(c[0], c[1:len(inner) + 1]))
    elif inner:
        k.columns(inner, columns)
    else:
        k.rows([], lambda _: element(None, []))


@converts_to_loops("dynamic_update_slice")
def dynamic_update_slice(k: LoopKernel) -> None:
    """The box alone, in place: a row an iteration on CPUs, an element a thread on GPUs."""
    x, update, *starts = k.inputs
    out, rank = k.outputs[0], len(update.dims)
    begins: list[Value] = []

    def place(value: Value, size: Dim, extent: Dim) -> Value:
        at = arith_d.index_cast(ir.IndexType.get(), value)
        return arith_d.maxsi(arith_d.minsi(at, k.dim(extent - size)), k.dim(0))

    def write(c: list[Value]) -> None:
        out.store(update.load(c), [arith_d.addi(b, i) for b, i in zip(begins, c, strict=True)])

    def row(c: list[Value]) -> None:
        begins[:] = [place(s.load([]), n, d) for s, n, d in zip(starts, update.dims, x.dims, strict=True)]
        k.nest(update.dims, write, c[:rank if k.threads else rank - 1])

    k.rows(update.dims if k.threads else update.dims[:-1], row)
