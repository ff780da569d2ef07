"""Products of block values: both operands are packed into memory, then blocks of sums in registers go over k."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir, math_d
from xcc.passes.shared.regions import for_loop
from xcc.passes.shared.values import index, splat, splat_constant, vec
from xcc.passes.tile.lowering.views import add
from xcc.passes.tile.nests.dots import dot_of, dot_step
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.loops import carried_loops, loops
from xcc.passes.tile.nests.needed import Needed
from xcc.passes.tile.nests.operands import group_of, packed, rows_of, unsigned_of
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.tile_registers import multiply_tiles, tile_group

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

ROWS = {64: 13, 32: 6}  # of a block of sums, by the bytes of a vector: 26 and 12 vectors of 32 and 16, two a row
SHORT = 4       # rows of a block behind the last whole one: no fewer, as so many sums hide how long one takes


def _contract(r: Retiler, source: Operation) -> None:
    """vector.contract of [..., m, k] and [..., k, n]"""
    lhs, _, acc = source.operands
    kind = ir.VectorType(acc.type)
    signs = unsigned_of(source)
    group = group_of(r, source)
    if tile_group(r, source):
        left, right = rows_of(r, source, group), packed(r, source, 1, False, group)
        multiply_tiles(r, source, group, left, right, _sums(r, source))
        return
    a, b = (packed(r, source, i, i in signs, group) for i in range(2))
    target = _sums(r, source)
    dot = dot_of(r, source, signs)
    shifted = dot is not None and dot.unsigned != signs
    *batch, m, n = list(kind.shape)
    k = ir.VectorType(lhs.type).shape[-1]
    most = ROWS.get(r.vector_bytes, 4) - shifted
    last = len(kind.shape) - 1
    needed = Needed(r, source.results[0], [last - 1, last])
    end = needed.ends[0]
    height = _height(m, most, end is not None)
    width = r.width(n, kind.element_type)
    each = r.lanes if dot else width

    def block(lead: Coords, row: Value | int, column: Value | int, height: int) -> None:
        with needed.block(row, column):
            sums_of(lead, [add(row, i) for i in range(height)], column)

    def sums_of(lead: Coords, rows: list[Value | int], column: Value | int) -> None:
        pieces = Pieces(r)
        there = [(*lead, i, add(column, c)) for i in rows for c in range(0, width, each)]
        start = [pieces.of(acc, at, last, each) for at in there]
        if shifted:
            start += [splat_constant(vec(each, kind.element_type), 0)] * (width // each)

        def step(places: list[Value], sums: list[Value]) -> list[Value]:
            left, right = [(*lead, i, places[0]) for i in rows], (*lead, places[0], column)
            if dot:
                return dot_step(r, dot, a, b, left, right, sums, shifted)
            line = b.load(right, last, width)
            return [_multiply_add(splat(a.load(at, last, 0), width), line, s) for at, s in zip(left, sums, strict=True)]

        made = carried_loops(r.wholes, [k], [dot.group if dot else 1], start, step)
        more = made[len(there):]
        for n, (at, s) in enumerate(zip(there, made, strict=False)):
            target.store(arith_d.subi(s, more[n % len(more)]) if shifted else s, at, last)

    def columns(places: list[Value | int]) -> None:
        *lead, column = places
        if end is not None and _has_short(m, most):
            with needed.block(0, column):
                for begin, behind, size in _strips(end, m, height):
                    with for_loop(begin, behind, index(size)) as row:
                        sums_of(tuple(lead), [add(row, i) for i in range(size)], column)
            return
        loops(r.wholes, [m - m % height], [height], lambda row: block(tuple(lead), row[0], column, height))
        if m % height:
            block(tuple(lead), m - m % height, column, m % height)

    # columns outside, so that a strip of the right operand stays near
    loops(r.wholes, [*batch, n], [*[1] * len(batch), width], columns)


def _sums(r: Retiler, product: Operation) -> Kept:
    """Where the result of a product goes."""
    result = product.results[0]
    kind = ir.VectorType(result.type)
    r.kept[result] = r.targets.get(result) or r.buffer(kind.shape, kind.element_type)
    return r.kept[result]


def _has_short(m: int, most: int) -> bool:
    """Whether rows behind the last whole block are short ones: these are less than half of a block."""
    return m > most >= 2 * SHORT and m % SHORT == 0


def _height(m: int, most: int, ends: bool) -> int:
    """Rows of a block of sums: all have about as many, or, where rows may end early, a multiple of SHORT."""
    even = -(-m // -(-m // most))
    return min(-(-even // SHORT) * SHORT, most - most % SHORT) if ends and _has_short(m, most) else even


def _strips(end: Value, m: int, height: int) -> list[tuple[Value, Value, int]]:
    """The rows up to `end` of `m`, as blocks of `height`, and what is left of them in short ones: begin, end, rows."""
    last = arith_d.minsi(arith_d.maxsi(end, index(0)), index(m))
    whole = arith_d.subi(last, arith_d.remui(last, index(height)))
    return [(index(0), whole, height), (whole, last, SHORT)]


def _multiply_add(x: Value, y: Value, total: Value) -> Value:
    if isinstance(ir.VectorType(total.type).element_type, ir.FloatType):
        return math_d.fma(x, y, total)
    return arith_d.addi(total, arith_d.muli(x, y))


HANDLERS: dict[str, Callable[..., None]] = {"vector.contract": _contract}
