"""Vectors of places: what their elements differ by, and the masks that comparisons with them make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir, owner_op
from xcc.passes.shared.values import (
    as_index,
    dense_constant,
    index,
    is_elementwise,
    is_vector,
    splat,
    splat_constant,
    vec,
)
from xcc.passes.tile.nests.choice import dims_of, reads_nothing, unit_reshape
from xcc.passes.tile.nests.kept import Coords

if TYPE_CHECKING:
    from xcc.passes.tile.nests.pieces import Pieces
    from xcc.passes.tile.nests.program import Retiler

_I = arith_d.CmpIPredicate
_BELOW = {int(_I.slt): (0, 1, 0), int(_I.sle): (0, 1, 1), int(_I.sgt): (1, 0, 0), int(_I.sge): (1, 0, 1)}
"""Of a comparison that asks whether a line of places is below an end: which operand is the line, which the end, and
what is added to the end."""


def first_lanes(count: Value, width: int) -> Value:
    """A mask of the first `count` lanes."""
    i32 = ir.IntegerType.get_signless(32)
    few = arith_d.index_cast(i32, arith_d.maxsi(arith_d.minsi(count, index(width)), index(0)))
    numbers = dense_constant(i32, list(range(width)))
    return arith_d.cmpi(_I.slt, numbers, splat(few, width))


def compared_line(pieces: Pieces, source: Operation, coords: Coords, lane: int, width: int) -> Value | None:
    """The piece of `source` where it compares neighbours with one end, as `arange(n) < end` does: its first lanes; all
    where the loop around ends with them. None where it is something else."""
    kind = ir.VectorType(source.operands[0].type).element_type if source.name == "arith.cmpi" else None
    wide = isinstance(kind, ir.IndexType) or (isinstance(kind, ir.IntegerType) and kind.width == 64)
    found = _BELOW.get(ir.IntegerAttr(source.attributes["predicate"]).value) if wide and width else None
    if found is None:
        return None
    line, end = source.operands[found[0]], source.operands[found[1]]
    if run_along(pieces.r, line, lane) != 1 or run_along(pieces.r, end, lane) != 0 \
            or not all(reads_nothing(owner_op(v)) for v in (line, end)):
        return None
    start = tuple(0 if d == lane else c for d, c in enumerate(coords))

    def reach() -> Value:
        """How many places of the line, from its first on, are below the end."""
        last, first = (as_index(type(pieces)(pieces.r).of(v, start, lane, 0)) for v in (end, line))
        left = arith_d.subi(last, first)
        return arith_d.addi(left, index(1)) if found[2] else left

    loop = pieces.r.wholes.open
    if loop is not None and loop.lets(start, coords[lane], width, reach):
        return splat_constant(vec(width, ir.IntegerType.get_signless(1)), 1)
    place = coords[lane]
    return first_lanes(arith_d.subi(reach(), index(place) if isinstance(place, int) else place), width)


def run_along(r: Retiler, value: Value, lane: int) -> int | None:
    """What the elements of a vector of places differ by along `lane`, where that is known."""
    if not is_vector(value):
        return 0
    if value in r.kept or isinstance(value.owner, ir.Block):
        return None
    source = value.owner.operation
    if source.name == "vector.step":
        return 1
    if source.name == "arith.constant":
        return 0 if ir.DenseElementsAttr(source.attributes["value"]).is_splat else None
    if source.name == "vector.broadcast":
        operand = source.operands[0]
        if not is_vector(operand):
            return 0
        shape = ir.VectorType(operand.type).shape
        at = lane - (ir.VectorType(value.type).rank - len(shape))
        return 0 if at < 0 or shape[at] == 1 else run_along(r, operand, at)
    if source.name == "vector.shape_cast" and unit_reshape(source):
        before = lane_before(source, lane)
        return 0 if before is None else run_along(r, source.operands[0], before)
    if source.name == "arith.index_cast":
        return run_along(r, source.operands[0], lane)
    if not is_elementwise(source):
        return None
    runs = [run_along(r, v, lane) for v in source.operands]
    if all(n == 0 for n in runs):
        return 0
    a, b = runs if source.name in ("arith.addi", "arith.subi") else (None, None)
    return None if a is None or b is None else a + b if source.name == "arith.addi" else a - b


def lies_along(r: Retiler, value: Value, lane: int) -> bool:
    """Whether what is read for neighbours along `lane` of a block value lies side by side in memory."""
    if value in r.kept:
        return r.kept[value].stride(lane) == 1
    if isinstance(value.owner, ir.Block):
        return False
    source = owner_op(value)
    if source.name == "vector.gather":
        return run_along(r, source.operands[2], lane) == 1
    if source.name == "vector.transfer_read":
        return dims_of(source)[lane] == ir.MemRefType(source.operands[0].type).rank - 1
    if source.name == "vector.transpose":
        return lies_along(r, source.operands[0], list(ir.DenseI64ArrayAttr(source.attributes["permutation"]))[lane])
    if source.name == "vector.shape_cast" and unit_reshape(source):
        before = lane_before(source, lane)
        return before is not None and lies_along(r, source.operands[0], before)
    return is_elementwise(source) and any(is_vector(v) and lies_along(r, v, lane) for v in source.operands)


def lane_before(reshape: Operation, lane: int) -> int | None:
    """The dim that `lane` is before a reshape that adds or drops dims of size 1; None where it is one of these."""
    have, want = (list(ir.VectorType(v.type).shape) for v in (reshape.operands[0], reshape.results[0]))
    if want[lane] == 1:
        return None
    return [d for d, n in enumerate(have) if n > 1][sum(n > 1 for n in want[:lane])]
