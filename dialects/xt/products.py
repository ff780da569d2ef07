"""Matrix products of arrays, the same bits on every machine.

A library of matrix products sums in an order that depends on the CPU. Here what it sums are whole numbers of so few
bits that all its sums are exact: each matrix is a sum of such, row by row or column by column times a power of two
(K. Ozaki et al., "Error-free transformations of matrix multiplication by using fast routines of matrix multiplication",
2012). The products of these parts are added in one order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST_PARTS = 4      # of a matrix; with wider ranges of numbers the product is summed term by term


def matmul(a: Array, b: Array) -> Array:
    """numpy's matmul of arrays of one element type and of rank 2 and more."""
    if a.dtype.kind != "f":
        return np.asarray(np.matmul(a, b))
    depth = a.shape[-1]
    if depth == 0 or not a.size or not b.size:
        return np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)
    with np.errstate(all="ignore"):
        bits = (53 - depth.bit_length()) // 2
        left, right = _parts(a, bits, -1), _parts(b, bits, -2)
        if left is None or right is None or depth <= len(left[0]) * len(right[0]):
            return _in_order(a, b)
        sums = [(i + j, np.matmul(x, y)) for i, x in enumerate(left[0], 1) for j, y in enumerate(right[0], 1)]
        total = np.zeros_like(sums[0][1])
        for n, part in sorted(sums, key=lambda s: -s[0]):
            total += np.ldexp(part, -bits * n)
        return np.ldexp(np.ldexp(total, left[1]), right[1]).astype(a.dtype)


def _parts(x: Array, bits: int, axis: int) -> tuple[list[Array], Array] | None:
    """(whole numbers of `bits` bits, exponents) whose sum, the n-th times 2**(exponent - n * bits), is `x`.

    None where it takes more than MOST_PARTS, or a number is not finite.
    """
    top = np.abs(x).max(axis, keepdims=True)
    if not np.isfinite(top).all():
        return None
    exponents = np.frexp(top)[1]
    rest = np.ldexp(x.astype(np.float64), -exponents)
    parts: list[Array] = []
    while rest.any():
        if len(parts) == MOST_PARTS:
            return None
        rest = np.ldexp(rest, bits)
        parts.append(np.rint(rest))
        rest -= parts[-1]
    return parts or [rest], exponents


def _in_order(a: Array, b: Array) -> Array:
    """The product, summed in the order of the contracted dim."""
    wide = (v.astype(np.float64) for v in (a, b))
    rows, columns = next(wide), next(wide)
    total = rows[..., :1] * columns[..., :1, :]
    for k in range(1, a.shape[-1]):
        total += rows[..., k:k + 1] * columns[..., k:k + 1, :]
    return total.astype(a.dtype)
