"""Arrays that nobody has written yet: ``xcc.empty``. ``XCC_KERNEL=check`` finds what reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.frontends.kernel.types import DTYPES, dtype_of

__all__ = ["empty", "unwritten"]

_MARKS = {("float", 16): 0x7FA5, ("float", 32): 0x7FA5A5A5, ("float", 64): 0x7FF5A5A5A5A5A5A5}     # each a NaN
_MARKS |= {(kind, bits): 0xA5A5A5A5A5A5A5A5 >> 64 - bits for kind in ("int", "uint") for bits in (32, 64)}


def empty(shape: Any, dtype: Any = DTYPES["f32"]) -> Any:
    """Like ``numpy.empty``, with a mark in each element by which a check knows that nobody has written it: a NaN, or a
    number that is hardly ever computed. Integers below 32 bits and floats below 16 have no room for one.
    """
    kind = dtype_of(dtype)
    if kind is None:
        raise UserError(f"{dtype!r} is no element type: give one of xcc.f32, xcc.f16, xcc.bf16, xcc.i32, ...")
    made = np.empty(shape, kind.numpy)
    mark = _mark(made.dtype)
    if mark is not None:
        made.view(mark.dtype)[...] = mark
    return made


def unwritten(values: Any) -> Any:
    """Which elements of an array still have the mark."""
    mark = _mark(values.dtype)
    return np.zeros(values.shape, np.bool_) if mark is None else np.ascontiguousarray(values).view(mark.dtype) == mark


def _mark(dtype: Any) -> Any:
    kind = dtype_of(dtype)
    bits = _MARKS.get((kind.kind, kind.bits)) if kind is not None else None
    return None if bits is None else np.dtype(f"u{dtype.itemsize}").type(bits)
