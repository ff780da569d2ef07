"""dft as products with matrices of roots of unity: one, or two where the length is a product a * b of large enough
numbers (Cooley and Tukey, 1965).

    x[b*i + j]  ->  over i, y[k, j]  ->  over j, X[k + a*l]
"""

from __future__ import annotations

import math

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.signal import roots_of_unity, rotations
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import dtype, shape, take, widened

_SHORT = 100
"""Up to here one product takes less time than two."""

_MOST = 32
"""Numbers that the second transforms; its matrices have 4 times as many elements as all numbers together."""


@decomposes("dft")
def dft(a: Attrs, x: Value) -> Value | None:
    """x [..., n, ..., c] times a constant [n, c, m, 2]; None when n is symbolic."""
    dims = shape(x)
    n, parts = a.length[0] if a.length else dims[a.axis], dims[-1]
    if not isinstance(n, int) or not isinstance(parts, int):
        return None
    right = next((d for d in range(min(_MOST, math.isqrt(n)), 3, -1) if n % d == 0), 0)
    if n <= _SHORT or not right:
        return widened(lambda v: _product(a.axis, v, roots_of_unity(a, n, parts)), x)
    if a.length:
        return take(xt.dft(completed(x, a.axis, n), axis=a.axis, inverse=True, onesided=False), -1, 0, 1)
    return widened(lambda v: _two_products(a, v, n // right, right), x)


def completed(x: Value, axis: int, n: int) -> Value:
    """All `n` frequencies of a real tensor, of which `x` has n//2 + 1: the others are the conjugates of these."""
    mirrored = xt.reverse(take(x, axis, 1, n - n // 2), axes=(axis,))
    conjugate = xt.concatenate(take(mirrored, -1, 0, 1), xt.neg(take(mirrored, -1, 1, 2)), axis=len(shape(x)) - 1)
    return xt.concatenate(x, conjugate, axis=axis)


def _product(axis: int, x: Value, table: Array) -> Value:
    """x [..., n, ..., c] times [n, c, m, 2], or [k, n, c, m, 2] where `k` is the dim before n: [..., m, ..., 2]; with k
    [..., m, k, ..., 2]."""
    rank, batch = len(shape(x)), table.ndim - 4
    y = xt.dot_general(x, xt.constant(table, dtype(x)), lhs_batch=tuple(range(axis, axis + batch)),
                       rhs_batch=tuple(range(batch)), lhs_contract=(axis + batch, rank - 1),
                       rhs_contract=(batch, batch + 1))
    free = rank - 2 - batch             # the dims between batch and [m, 2]
    perm = [*range(batch, batch + axis), batch + free, *range(batch), *range(batch + axis, batch + free),
            batch + free + 1]
    return xt.transpose(y, perm=perm)


def _two_products(a: Attrs, x: Value, left: int, right: int) -> Value:
    """The matrices of the second, one for each result of the first, turn by the twiddle factors, too."""
    dims, n = shape(x), left * right
    lead, rest = dims[:a.axis], dims[a.axis + 1:-1]
    x = xt.reshape(x, shape=(*lead, left, right, *rest, dims[-1]))
    x = xt.dft(x, axis=a.axis, inverse=a.inverse, onesided=False)
    columns = right // 2 + 1 if a.onesided else right
    k, j, m = np.ogrid[:left, :right, :columns]
    table = np.moveaxis(rotations(j * (k + left * m), n, a.inverse), 3, 2) / (right if a.inverse else 1)
    x = xt.reshape(_product(a.axis, x, table), shape=(*lead, columns * left, *rest, 2))
    return take(x, a.axis, 0, n // 2 + 1) if a.onesided else x
