"""Fourier transforms of pairs: tensors whose last dim is (real, imaginary)."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import rank_of
from xcc.symbolic import Dim

__all__ = ["cut_or_padded"]


def cut_or_padded(x: Value, axis: int, length: Dim) -> Value:
    """Cut, or padded with zeros, to `length`."""
    size = xt.shape_of(x)[axis]
    if size == length:
        return x
    high: list[Dim] = [0] * rank_of(x)
    high[axis] = length - size
    return xt.pad(x, low=(0,) * len(high), high=tuple(high))
