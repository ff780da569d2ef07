"""dft as a product with the matrix of roots of unity."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.signal import roots_of_unity
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import dtype, shape, widened


@decomposes("dft")
def dft(a: Attrs, x: Value) -> Value | None:
    """x [..., n, ..., c] times a constant [n, c, m, 2]; None when n is symbolic."""
    dims = shape(x)
    n, parts = dims[a.axis], dims[-1]
    if not isinstance(n, int) or not isinstance(parts, int):
        return None
    table = roots_of_unity(a, n, parts)
    rank = len(dims)

    def f(v: Value) -> Value:
        kernel = xt.constant(table, dtype(v))
        y = xt.dot_general(v, kernel, lhs_contract=(a.axis, rank - 1), rhs_contract=(0, 1))
        perm = [*range(a.axis), rank - 2, *range(a.axis, rank - 2), rank - 1]
        return xt.transpose(y, perm=perm)

    return widened(f, x)
