"""Loop kernels that write at computed positions: scatter_elements, scatter_nd. The last of equal positions wins.

Where iterations are threads, the places that are written are cut into ranges: a thread walks all indices, in order, and
takes those of its own range, so that the result is the same however threads run, and equal positions keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import arith_d
from xcc.passes.xt_to_linalg.elementwise import binary
from xcc.passes.xt_to_linalg.loops import LoopKernel
from xcc.passes.xt_to_linalg.registry import converts_to_loops
from xcc.symbolic import Dim

_I = arith_d.CmpIPredicate
COPIED = 8
WARP = 32           # neighbours whose indices are words of memory side by side
TOGETHER = 16       # indices that a thread reads ahead of the first test
_OPS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def _copy(k: LoopKernel) -> None:
    x, out = k.inputs[0], k.outputs[0]
    outer = x.dims[:-1]
    if k.threads:
        _copy_strided(k)
        return

    def row(c: list[Any]) -> None:
        k.nest(x.dims, lambda at: out.store(x.load(at), at), c[:len(outer)])

    k.rows(outer, row)


def _copy_strided(k: LoopKernel) -> None:
    """Each thread copies COPIED elements, which it reads together, so that neighbours are copied by neighbours."""
    x, out = k.inputs[0], k.outputs[0]
    total = symbolic.product(x.dims)
    threads = symbolic.ceildiv(total, COPIED)

    def thread(c: list[Any]) -> None:
        size = k.dim(total)
        flat = [arith_d.addi(c[0], k.dim(threads * n)) for n in range(COPIED)]
        at = [k.unflat(arith_d.minui(f, arith_d.subi(size, k.dim(1))), x.dims) for f in flat]
        for f, value, place in zip(flat, [x.load(a) for a in at], at, strict=True):
            inside = arith_d.cmpi(_I.ult, f, size)
            k.when(inside, lambda value=value, place=place: out.store(value, place))  # type: ignore[misc]

    k.rows([threads], thread)


def _ranges(k: LoopKernel, others: Dim, places: Dim) -> tuple[Dim, Dim]:
    """How many ranges to cut `places` into for each of `others` independent rows, and the places of a range.

    With R ranges a thread waits for 1 / R of the writes, each a trip to memory (600 ns). The cores walk R times
    `others` lists of indices, in 10 cycles an index for 32 threads, 500 such groups at once, so that R * R * others =
    2^21 balances both.
    """
    if not k.threads:
        return 1, places
    rows = others if isinstance(others, int) else 1 << 10
    count = max(1, math.isqrt((1 << 21) // max(1, rows)))
    return (min(count, places) if isinstance(places, int) else count), symbolic.ceildiv(places, count)


def _walk(k: LoopKernel, dims: Sequence[Dim], part: Any, size: Dim, lead: Sequence[Dim],
          place: Callable[[list[Any]], list[Any]], write: Callable[[list[Any], list[Any]], None]) -> None:
    """``write(c, place(c))`` for all `c` of `dims` whose place (coordinates of `lead`) is in range `part` of `size`."""
    if part is None:
        k.nest(dims, lambda c: write(c, place(c)))
        return
    first = arith_d.muli(part, k.dim(size))

    def take(coords: list[list[Any]]) -> None:
        """The places of all `coords` are read ahead of the first test."""
        for c, at in zip(coords, [place(c) for c in coords], strict=True):
            mine = arith_d.cmpi(_I.ult, arith_d.subi(k.flat(at, lead), first), k.dim(size))
            k.when(mine, lambda c=c, at=at: write(c, at))  # type: ignore[misc]

    def step(outer: list[Any]) -> None:
        length = k.dim(dims[-1])
        groups = arith_d.divui(length, k.dim(TOGETHER))

        def group(i: Any) -> None:
            start = arith_d.muli(i, k.dim(TOGETHER))
            take([[*outer, arith_d.addi(start, k.dim(n))] for n in range(TOGETHER)])

        k.loop(groups, group)
        k.loop(length, lambda i: take([[*outer, i]]), first=arith_d.muli(groups, k.dim(TOGETHER)))

    if dims:
        k.nest(dims[:-1], step)
    else:
        take([[]])


def _combine(k: LoopKernel) -> Callable[[Any, list[Any]], None]:
    out, reduction = k.outputs[0], k.op.attr("reduction", "none")

    def write(value: Any, coords: list[Any]) -> None:
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

    def row(part: Any, rest: list[Any]) -> None:
        def place(i: list[Any]) -> list[Any]:
            return [k.wrapped(indices.load([*rest[:axis], *i, *rest[axis:]]), indices.dtype, x.dims[axis])]

        def write(i: list[Any], at: list[Any]) -> None:
            store(updates.load([*rest[:axis], *i, *rest[axis:]]), [*rest[:axis], *at, *rest[axis:]])

        _walk(k, [updates.dims[axis]], part, size, [x.dims[axis]], place, write)

    if not k.threads:
        k.rows(others, lambda c: row(None, c[:len(others)]))
    elif axis == len(x.dims) - 1 or not others:      # the ranges of a row read its indices together
        k.rows([*others, ranges], lambda c: row(c[len(others)], c[:len(others)]))
    else:       # so do those of WARP neighbours along the last dim
        near = symbolic.ceildiv(others[-1], WARP)

        def columns(c: list[Any]) -> None:
            *outer, high, part, low = c
            last = arith_d.addi(arith_d.muli(high, k.dim(WARP)), low)
            k.when(arith_d.cmpi(_I.ult, last, k.dim(others[-1])), lambda: row(part, [*outer, last]))

        k.rows([*others[:-1], near, ranges, WARP], columns)


@converts_to_loops("scatter_nd")
def scatter_nd(k: LoopKernel) -> None:
    """Elements of a slice are independent; index vectors are applied in order."""
    x, indices, updates = k.inputs
    depth, outer, store = symbolic.evaluate(indices.dims[-1], {}), indices.dims[:-1], _combine(k)
    lead: list[Dim] = list(x.dims[:depth])
    inner: list[Dim] = list(x.dims[depth:])
    ranges, size = _ranges(k, symbolic.product(inner), symbolic.product(lead))
    _copy(k)

    def element(c: list[Any]) -> None:
        part, rest = (c[0], c[1:len(inner) + 1]) if k.threads else (None, c[:len(inner)])

        def place(vector: list[Any]) -> list[Any]:
            return [k.wrapped(indices.load([*vector, k.dim(d)]), indices.dtype, x.dims[d]) for d in range(depth)]

        def write(vector: list[Any], at: list[Any]) -> None:
            store(updates.load([*vector, *rest]), [*at, *rest])

        _walk(k, outer, part, size, lead, place, write)

    k.rows([ranges, *inner] if k.threads else inner, element)
