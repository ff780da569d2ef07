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
from xcc.symbolic import Dim, floordiv

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
        return widened(lambda v: _product(a.axis, v, _computed_roots(a, n, parts, dtype(v))), x)
    right = next((d for d in range(min(_MOST, math.isqrt(n)), 3, -1) if n % d == 0), 0)
    if n <= _SHORT or not right:
        return widened(lambda v: _product(a.axis, v, xt.constant(roots_of_unity(a, n, parts), dtype(v))), x)
    if a.length:
        return take(xt.dft(completed(x, a.axis, n), axis=a.axis, inverse=True, onesided=False), -1, 0, 1)
    return widened(lambda v: _two_products(a, v, n // right, right), x)


def completed(x: Value, axis: int, n: int) -> Value:
    """All `n` frequencies of a real tensor, of which `x` has n//2 + 1: the others are the conjugates of these."""
    mirrored = xt.reverse(take(x, axis, 1, n - n // 2), axes=(axis,))
    conjugate = xt.concatenate(take(mirrored, -1, 0, 1), xt.neg(take(mirrored, -1, 1, 2)), axis=len(shape(x)) - 1)
    return xt.concatenate(x, conjugate, axis=axis)


def _computed_roots(a: Attrs, n: Dim, parts: int, to: str) -> Value:
    """What `roots_of_unity` gives, of any `n`: the product of two places modulo n, in turns from -1/2 to 1/2, with a
    quarter for the other part; cos(2 pi t) is sin(2 pi (1/4 - |t|)), which is exact for quarters."""
    half, real = floordiv(n, 2) + 1, a.inverse and a.onesided
    rows, columns = (half, n) if real else (n, half if a.onesided else n)
    dims = (rows, parts, columns, 1 if real else 2)
    row, part, column, made = (xt.convert(xt.iota(shape=tuple(m if d == e else 1 for e in range(4)), axis=d,
                                                  dtype="i64"), dtype="f64") for d, m in enumerate(dims))
    count = dim_scalar(n, "f64")
    turns = xt.div(_near(xt.mul(row, column), count), count)
    turns = xt.neg(turns) if a.inverse else turns
    turns = _near(xt.add(turns, xt.mul(xt.sub(made, part), const(0.25, turns))), const(1, turns))
    angle = xt.mul(xt.sub(const(0.25, turns), xt.abs(turns)), const(2 * math.pi, turns))
    factor = xt.reciprocal(count) if a.inverse else const(1, turns)
    if real:        # all but the first and the middle one count for what symmetry makes equal to them, too
        once = getattr(xt, "or")(*(xt.compare(row, at, direction="eq")
                                   for at in (const(0, row), xt.mul(count, const(0.5, row)))))
        factor = xt.mul(factor, xt.select(once, const(1, row), const(2, row)))
    return xt.mul(xt.sin(convert(angle, to)), convert(factor, to))


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
