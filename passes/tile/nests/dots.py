"""Products of narrow elements by dot product instructions: each lane of a sum gets a group of products at once.

The left operand is in rows, of which a group of neighbours goes to all lanes; the right one in panels, in which groups
of rows are interleaved, so that the group of a column lies together.

Signed bytes are multiplied by instructions that take the left ones as unsigned, too: those are then more by 128, and
128 times the sum of a column, one more row of the block, is taken away at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.dot_instructions import DotProduct
from xcc.passes.shared.values import extract, op, shuffle, splat, splat_constant, vec
from xcc.passes.tile.lowering.views import add
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.loops import FEW, loops
from xcc.passes.tile.nests.pieces import Pieces

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


def dot_of(r: Retiler, product: Operation, unsigned: set[int]) -> DotProduct | None:
    """The instruction for a product; None where there is none for its types and sizes."""
    lhs, rhs, acc = (ir.VectorType(v.type) for v in product.operands)
    taken = {"bf16": "f32", "i8": "i32"}.get(str(lhs.element_type))
    if taken != str(acc.element_type) or rhs.shape[-1] % r.lanes:
        return None
    fitting = [d for d in r.dots if d.element == str(lhs.element_type) and r.lanes in d.intrinsics and not d.pairs
               and (d.unsigned == unsigned or not unsigned and d.unsigned == {0}) and lhs.shape[-1] % d.group == 0]
    return min(fitting, key=lambda d: d.unsigned != unsigned, default=None)


def fill_groups(r: Retiler, value: Value, target: Kept, group: int) -> None:
    """Packs a right operand into panels of interleaved groups of rows."""
    *lead, rows, columns = target.shape

    def body(places: list[Value | int]) -> None:
        *_, row, column = places
        pieces = Pieces(r)
        parts = [pieces.of(value, (*places[:-2], add(row, n), column), len(places) - 1, target.panel)
                 for n in range(group)]
        target.store(in_turn(parts), tuple(places), len(places) - 1)

    loops(r.wholes, [*lead, rows, columns], [*[1] * len(lead), group, target.panel], body, FEW)


def in_turn(parts: list[Value]) -> Value:
    """The first elements of all parts, then the second ones, ..."""
    if len(parts) == 1:
        return parts[0]
    even, odd = in_turn(parts[::2]), in_turn(parts[1::2])
    width = ir.VectorType(even.type).shape[0]
    return shuffle(even, odd, [n for i in range(width) for n in (i, width + i)])


def dot_step(r: Retiler, dot: DotProduct, a: Kept, b: Kept, rows: list[Coords], right: Coords,
             sums: list[Value], shifted: bool) -> list[Value]:
    """The next sums, of `lanes` columns each, row after row: those of groups of `a` at `rows` with that of `b`.
    shifted: `a` is signed, and taken as unsigned; the last sums are those of the columns, times what it is more."""
    lanes, group, last = r.lanes, dot.group, len(right) - 1
    count = len(sums) // (len(rows) + shifted)
    line = b.load(right, last, b.panel * group)
    columns = [line] if count == 1 else [shuffle(line, line, range(n * lanes * group, (n + 1) * lanes * group))
                                         for n in range(count)]
    word = ir.IntegerType.get_signless(8 * group if str(a.element) == "i8" else 16 * group)
    more = splat_constant(word, int.from_bytes([128] * group, "little", signed=True)) if shifted else None
    words = [extract(op("vector.bitcast", [vec(1, word)], [a.load(place, last, group)]), 0) for place in rows]
    out = []
    for i, pair in enumerate(words if more is None else [*(op("arith.xori", [word], [w, more]) for w in words), more]):
        every = op("vector.bitcast", [vec(lanes * group, a.element)], [splat(pair, lanes)])
        for n, column in enumerate(columns):
            out.append(op("llvm.call_intrinsic", [sums[0].type], [sums[i * count + n], every, column],
                          intrin=ir.StringAttr.get(dot.intrinsics[lanes]),
                          operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0]),
                          op_bundle_sizes=ir.DenseI32ArrayAttr.get([])))
    return out
