"""Fourier transforms of pairs: tensors whose last dim is (real, imaginary)."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import rank_of, slice_axis
from xcc.symbolic import Dim

__all__ = ["cut_or_padded", "real_inverse"]


def real_inverse(x: Value, axis: int, length: Dim) -> Value:
    """The inverse transform of `length` numbers, of which `x` has the first half [..., length // 2 + 1, ..., 2], as
    that of a real tensor has: completed by symmetry. The real part [..., length, ..., 1]."""
    half = symbolic.floordiv(length, 2) + 1
    mirrored = xt.reverse(slice_axis(x, axis, 1, length - half + 1), axes=(axis,))
    last = rank_of(x) - 1
    conjugate = xt.concatenate(slice_axis(mirrored, last, 0, 1), xt.neg(slice_axis(mirrored, last, 1, 2)), axis=last)
    whole = xt.dft(xt.concatenate(x, conjugate, axis=axis), axis=axis, inverse=True, onesided=False)
    return slice_axis(whole, last, 0, 1)


def cut_or_padded(x: Value, axis: int, length: Dim) -> Value:
    """Cut, or padded with zeros, to `length`."""
    size = xt.shape_of(x)[axis]
    if size == length:
        return x
    high: list[Dim] = [0] * rank_of(x)
    high[axis] = length - size
    return xt.pad(x, low=(0,) * len(high), high=tuple(high))
