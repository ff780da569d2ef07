"""Blocks of vectors transposed, interleaved and joined by shuffles."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Value, ir
from xcc.passes.shared.values import extract, pack, shuffle

__all__ = ["concatenated", "interleaved", "is_block", "picked", "transpose_block"]

PIECE_BITS = 128
INTERLEAVED = 7     # rows or columns of a block, no power of two, that LLVM finds good shuffles for


def concatenated(parts: list[Value]) -> Value:
    """Vectors of equal length one after the other."""
    while len(parts) > 1:
        n = ir.VectorType(parts[0].type).shape[0]
        m = ir.VectorType(parts[-1].type).shape[0]
        if m != n or len(parts) % 2:
            return _inserted(parts)
        parts = [shuffle(a, b, list(range(2 * n))) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _inserted(parts: list[Value]) -> Value:
    return pack([extract(p, i) for p in parts for i in range(ir.VectorType(p.type).shape[0])])


def is_block(height: int, width: int) -> bool:
    """Whether a block is transposed by a few shuffles."""
    return not (height & (height - 1) or width & (width - 1)) or 2 < min(height, width) <= INTERLEAVED


def transpose_block(rows: list[Value]) -> list[Value]:
    """r vectors of c lanes to c vectors of r lanes: log2(r) rounds of interleaving where r is a power of two.

    Rounds of a square are instructions of x86 and ARM, r of them each: what lies within 128 bits is interleaved there
    (unpcklps, unpcklpd, zip1), then pieces of 128 bits change places (shuff32x4, perm2f128).
    """
    height = len(rows)
    width = ir.VectorType(rows[0].type).shape[0]
    if height == 1:
        return [pack([extract(rows[0], i)]) for i in range(width)]
    if (height & (height - 1) or width & (width - 1)) and is_block(height, width):
        whole = concatenated(rows)
        return [shuffle(whole, whole, range(n, height * width, width)) for n in range(width)]
    if not is_block(height, width) or width == 1:
        return [pack([extract(r, i) for r in rows]) for i in range(width)]
    if height == width:
        piece = min(width, max(1, PIECE_BITS // ir.VectorType(rows[0].type).element_type.width))
        groups = [_interleaved(rows[i:i + piece], 1, piece) for i in range(0, height, piece)]
        columns = [_pieces_swapped([g[n] for g in groups], piece) for n in range(piece)]
        return [columns[i % piece][i // piece] for i in range(width)]
    whole = _woven(rows)
    return [shuffle(whole, whole, list(range(i * height, (i + 1) * height))) for i in range(width)]


def interleaved(rows: list[Value]) -> list[Value]:
    """The elements of the columns of r vectors of c lanes, one column after the other, in r vectors of c lanes.

    Each is shuffled from two rows, and that and the next one, where they are not two to the power of something.
    """
    height, width = len(rows), ir.VectorType(rows[0].type).shape[0]
    if height & (height - 1) == 0:
        whole = _woven(rows)
        return [shuffle(whole, whole, range(i, i + width)) for i in range(0, height * width, width)]
    return [picked(rows, [divmod(n, height)[::-1] for n in range(first, first + width)])
            for first in range(0, height * width, width)]


def picked(parts: list[Value], places: Sequence[tuple[int, int]]) -> Value:
    """A vector of lane b of parts[a] for each (a, b), of as many `places` as a part has lanes."""
    made, at = parts[0], [lane for _, lane in places]
    for number, part in enumerate(parts[1:], 1):
        made = shuffle(made, part, [len(places) + lane if n == number else kept
                                    for (n, lane), kept in zip(places, at, strict=True)])
        at = list(range(len(places)))
    return made


def _woven(rows: list[Value]) -> Value:
    """As `interleaved`, in one vector, of two to the power of something rows."""
    while len(rows) > 1:
        half = len(rows) // 2
        n = ir.VectorType(rows[0].type).shape[0]
        mask = [x for i in range(n) for x in (i, n + i)]
        rows = [shuffle(rows[i], rows[i + half], mask) for i in range(half)]
    return rows[0]


def _interleaved(rows: list[Value], run: int, piece: int) -> list[Value]:
    """Vector n has, in each piece, element n of that piece of each of the `rows`: these hold runs of `run` elements."""
    if len(rows) == 1:
        return rows
    width = ir.VectorType(rows[0].type).shape[0]

    def half(a: Value, b: Value, begin: int) -> Value:
        return shuffle(a, b, [side + p + r + i for p in range(0, width, piece)
                              for r in range(begin, begin + piece // 2, run)
                              for side in (0, width) for i in range(run)])

    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    return [v for begin in (0, piece // 2)
            for v in _interleaved([half(a, b, begin) for a, b in pairs], 2 * run, piece)]


def _pieces_swapped(rows: list[Value], piece: int) -> list[Value]:
    """Vector n has piece n of each of the `rows`."""
    if len(rows) == 1:
        return rows
    width = ir.VectorType(rows[0].type).shape[0]

    def every_other(a: Value, b: Value, first: int) -> Value:
        return shuffle(a, b, [p + i for p in range(first * piece, 2 * width, 2 * piece) for i in range(piece)])

    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    even, odd = (_pieces_swapped([every_other(a, b, first) for a, b in pairs], piece) for first in (0, 1))
    return [v for both in zip(even, odd, strict=True) for v in both]
