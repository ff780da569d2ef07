"""Operands of products that lie across the order in which they are packed: `b.T`, whose columns lie along k, and groups
of `a.T`, whose columns lie along m. Registers are transposed.

    x_j = k, k + 1, ... of column j, for some columns        each a read of neighbours
    p_i = step k + i of all these columns                    transposed, and stored in the panel

What lies together in a panel is a word: an element, or a group of k as instructions take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Type, Value, arith_d, ir
from xcc.passes.shared.transposes import transpose_block
from xcc.passes.shared.values import op, vec
from xcc.passes.tile.lowering.views import add, mul
from xcc.passes.tile.nests.dots import in_turn
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.lines import lies_along
from xcc.passes.tile.nests.loops import loops
from xcc.passes.tile.nests.pieces import Pieces

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

LEAST = 4       # words of a side of a block that is transposed
WORDS = (32, 64)    # bits of a word that registers are transposed by


def turned_block(r: Retiler, value: Value, target: Kept, group: int) -> int:
    """Words of a side of the blocks that pack `value` into panels; 0 where its columns do not lie along k."""
    last = len(target.shape) - 1
    if isinstance(target.element, ir.IndexType) or lies_along(r, value, last) or not lies_along(r, value, last - 1):
        return 0
    bits = target.element.width * max(1, group)
    side = min(r.vector_bytes * 8 // bits, target.shape[-2] // max(1, group), target.panel)
    return side if bits in WORDS and side >= LEAST else 0


def fill_turned(r: Retiler, value: Value, target: Kept, unsigned: bool, group: int, side: int) -> None:
    """Packs a right operand, [..., k, n], into panels, a block of `side` words of `side` columns after the other."""
    *lead, rows, columns = target.shape
    last, each = len(lead) + 1, max(1, group)
    kept = vec(side * each, target.element)

    def column(coords: Coords) -> Value:
        piece = Pieces(r).of(value, coords, last - 1, side * each)
        if group:
            return op("vector.bitcast", [vec(side, ir.IntegerType.get_signless(target.element.width * group))], [piece])
        return piece if piece.type == kept else widened(piece, kept, unsigned)

    def body(places: list[Value | int]) -> None:
        *outer, panel, part, row = places
        first = add(panel, part)
        words = [column((*outer, row, add(first, i))) for i in range(side)]
        start = add(target.offset((*outer, row, panel)), mul(part, each))
        for i, line in enumerate(transpose_block(words)):
            line = op("vector.bitcast", [kept], [line]) if group else line
            op("vector.store", [], [line, target.memref, add(start, i * each * target.stride(last - 1))])

    steps = [*[1] * len(lead), target.panel, side, side * each]
    loops(r.wholes, [*lead, columns, target.panel, rows], steps, body)


def rows_block(r: Retiler, value: Value, target: Kept, group: int) -> int:
    """Words of a side of the blocks that pack a left operand in groups; 0 where its columns do not lie along m."""
    last = len(target.shape) - 1
    if not group or lies_along(r, value, last) or not lies_along(r, value, last - 1):
        return 0
    bits = target.element.width * group
    side = min(r.vector_bytes * 8 // bits, target.shape[-2], target.shape[-1] // group)
    return side if bits in WORDS and side >= LEAST else 0


def fill_rows(r: Retiler, value: Value, target: Kept, group: int, side: int) -> None:
    """Packs a left operand, [..., m, k], into rows: words of `side` columns of each group of k are transposed."""
    last = len(target.shape) - 1
    word = vec(side, ir.IntegerType.get_signless(target.element.width * group))
    kept = vec(side * group, target.element)

    def body(places: list[Value | int]) -> None:
        *outer, row, column = places
        pieces = Pieces(r)
        words = [in_turn([pieces.of(value, (*outer, row, add(column, i + n)), last - 1, side) for n in range(group)])
                 for i in range(0, side * group, group)]
        for i, line in enumerate(transpose_block([op("vector.bitcast", [word], [w]) for w in words])):
            target.store(op("vector.bitcast", [kept], [line]), (*outer, add(row, i), column), last)

    loops(r.wholes, target.shape, [*[1] * (last - 1), side, side * group], body)


def widened(piece: Value, kind: Type, unsigned: bool) -> Value:
    """A piece of an operand, its elements as wide as those of the vector type `kind`."""
    if isinstance(ir.VectorType(kind).element_type, ir.FloatType):
        return arith_d.extf(kind, piece)
    return (arith_d.extui if unsigned else arith_d.extsi)(kind, piece)
