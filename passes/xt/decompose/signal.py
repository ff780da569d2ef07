"""dft as products with matrices of roots of unity: one, or two where the length is a product a * b of large enough
numbers (Cooley and Tukey, 1965).

    x[b*i + j]  ->  over i, y[k, j]  ->  over j, X[k + a*l]
"""

from __future__ import annotations

import math

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.signal import roots_of_unity, rotations
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, convert, dim_scalar, dtype, shape, take, widened
from xcc.symbolic import Dim, divisor, floordiv, root

_SHORT = 100
"""Up to here one product takes less time than two."""

_MOST = 32
"""Numbers that the second transforms; its matrices have 4 times as many elements as all numbers together."""


@decomposes("dft")
def dft(a: Attrs, x: Value) -> Value | None:
    """x [..., n, ..., c] times a constant [n, c, m, 2], or one that is computed where only a run tells n."""
    dims = shape(x)
    n, parts = a.length[0] if a.length else dims[a.axis], dims[-1]
    assert isinstance(parts, int)
    if not isinstance(n, int):
        return _of_any_length(a, x, n, parts)
    right = next((d for d in range(min(_MOST, math.isqrt(n)), 3, -1) if n % d == 0), 0)
    if n <= _SHORT or not right:
        return widened(lambda v: _product(a.axis, v, xt.constant(roots_of_unity(a, n, parts), dtype(v))), x)
    if a.length:
        return _real_inverse(a, x, n)
    return widened(lambda v: _two_products(a, v, n // right, right), x)


def _real_inverse(a: Attrs, x: Value, n: Dim) -> Value:
    """The inverse transform of one side, of both."""
    return take(xt.dft(completed(x, a.axis, n), axis=a.axis, inverse=True, onesided=False), -1, 0, 1)


def _of_any_length(a: Attrs, x: Value, n: Dim, parts: int) -> Value:
    """Two products with matrices that are computed, as only a run tells n: of its divisor next to the root, and of what
    is left; of a prime number one is of 1."""
    if a.length:
        return _real_inverse(a, x, n)
    right = divisor(n, root(n))
    left, dims = floordiv(n, right), shape(x)
    columns = floordiv(right, 2) + 1 if a.onesided else right
    lead, rest = dims[:a.axis], dims[a.axis + 1:-1]

    def transformed(v: Value) -> Value:
        to = dtype(v)
        v = xt.reshape(v, shape=(*lead, left, right, *rest, parts))
        v = _turned(a, _product(a.axis, v, _computed_roots(a.inverse, left, parts, left, to)), n)
        v = _product(a.axis + 1, v, _computed_roots(a.inverse, right, 2, columns, to))
        order = [d + (d == a.axis) - (d == a.axis + 1) for d in range(len(dims) + 1)]
        return xt.reshape(xt.transpose(v, perm=order), shape=(*lead, columns * left if a.onesided else n, *rest, 2))

    y = widened(transformed, x)
    return take(y, a.axis, 0, floordiv(n, 2) + 1) if a.onesided else y


def _turned(a: Attrs, x: Value, n: Dim) -> Value:
    """x [..., k, j, ..., 2] times the twiddle factors, the powers k * j of the root of unity."""
    dims = shape(x)
    k, j = (xt.convert(xt.iota(shape=tuple(m if d == e else 1 for d, m in enumerate(dims)), axis=e, dtype="i64"),
                       dtype="f64") for e in (a.axis, a.axis + 1))
    turns = xt.div(xt.mul(k, j), dim_scalar(n, "f64"))
    angle = convert(xt.mul(turns, const((2 if a.inverse else -2) * math.pi, turns)), dtype(x))
    c, s = xt.cos(angle), xt.sin(angle)
    real, imaginary = (take(x, -1, p, p + 1) for p in (0, 1))
    return xt.concatenate(xt.sub(xt.mul(real, c), xt.mul(imaginary, s)),
                          xt.add(xt.mul(real, s), xt.mul(imaginary, c)), axis=len(dims) - 1)


def completed(x: Value, axis: int, n: Dim) -> Value:
    """All `n` frequencies of a real tensor, of which `x` has n//2 + 1: the others are the conjugates of these."""
    mirrored = xt.reverse(take(x, axis, 1, n - floordiv(n, 2)), axes=(axis,))
    conjugate = xt.concatenate(take(mirrored, -1, 0, 1), xt.neg(take(mirrored, -1, 1, 2)), axis=len(shape(x)) - 1)
    return xt.concatenate(x, conjugate, axis=axis)


def _computed_roots(inverse: bool, n: Dim, parts: int, columns: Dim, to: str) -> Value:
    """What `roots_of_unity` gives, of any `n` and `columns` of it: the product of two places modulo n, in turns from
    -1/2 to 1/2, with a quarter for the other part; cos(2 pi t) is sin(2 pi (1/4 - |t|)), exact for quarters."""
    row, column = (xt.convert(xt.iota(shape=dims, axis=d, dtype="i64"), dtype="f64")
                   for d, dims in ((0, (n, 1, 1, 1)), (2, (1, 1, columns, 1))))
    count = dim_scalar(n, "f64")
    turns = xt.div(_near(xt.mul(row, column), count), count)
    turns = xt.neg(turns) if inverse else turns

    def cosine(turns: Value) -> Value:
        turns = _near(turns, const(1, turns))
        angle = xt.mul(xt.sub(const(0.25, turns), xt.abs(turns)), const(2 * math.pi, turns))
        sine = xt.sin(convert(angle, to))
        return xt.div(sine, convert(count, to)) if inverse else sine

    real, imaginary = cosine(turns), cosine(xt.add(turns, const(0.25, turns)))
    table = xt.concatenate(real, imaginary, axis=3)
    return table if parts == 1 else xt.concatenate(
        table, xt.concatenate(xt.neg(imaginary), real, axis=3), axis=1)


def _near(x: Value, n: Value) -> Value:
    """What is left of whole numbers x modulo `n`, between -n/2 and n/2."""
    return xt.sub(x, xt.mul(xt.floor(xt.add(xt.div(x, n), const(0.5, x))), n))


def _product(axis: int, x: Value, table: Value) -> Value:
    """x [..., n, ..., c] times [n, c, m, 2], or [k, n, c, m, 2] where `k` is the dim before n: [..., m, ..., 2]; with k
    [..., m, k, ..., 2]."""
    rank, batch = len(shape(x)), len(shape(table)) - 4
    y = xt.dot_general(x, table, lhs_batch=tuple(range(axis, axis + batch)),
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
    x = xt.reshape(_product(a.axis, x, xt.constant(table, dtype(x))), shape=(*lead, columns * left, *rest, 2))
    return take(x, a.axis, 0, n // 2 + 1) if a.onesided else x
