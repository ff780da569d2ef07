"""Torch's type promotion, on element types by name.

Operands count in three ranks: tensors with dims, tensors without, Python numbers. A lower rank decides only where it is
of a higher category (bool, integer, float) than those above it.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["category", "promote", "result_type"]

DEFAULT_FLOAT = "f32"


def category(dtype: str) -> int:
    """0 for bool, 1 for integers, 2 for floats."""
    return 2 if dtype.startswith(("f", "bf")) else 0 if dtype == "i1" else 1


def promote(a: str, b: str) -> str:
    """The least type that holds both, as torch has it: f16 and bf16 give f32, ui8 and i8 give i16."""
    if a == b or category(a) != category(b):
        return a if category(a) >= category(b) else b
    if category(a) == 2:
        wide, other = (a, b) if _bits(a) > _bits(b) else (b, a)
        return "f32" if _bits(wide) == _bits(other) else wide
    if a[0] == b[0]:
        return a if _bits(a) > _bits(b) else b
    signed, unsigned = (a, b) if a[0] == "i" else (b, a)
    return signed if _bits(signed) > _bits(unsigned) else f"i{min(64, 2 * _bits(unsigned))}"


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("buif").split("E")[0])


def result_type(operands: Iterable[tuple[str, int]]) -> str:
    """The type that an op computes in; each operand is (element type, rank), rank 0 for dims, 1 for none, 2 a number.

    A number of type f64 or i64 is a Python float or int: it has the default type of its category.
    """
    ranks = ["", "", ""]
    for dtype, rank in operands:
        if rank == 2 and category(dtype) == 2:
            dtype = DEFAULT_FLOAT
        ranks[rank] = promote(ranks[rank], dtype) if ranks[rank] else dtype
    out = ""
    for dtype in ranks:
        if dtype and (not out or category(dtype) > category(out)):
            out = dtype
    return out
