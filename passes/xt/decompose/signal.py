"""dft as a product with the matrix of roots of unity."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc.dialects import xt
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import dtype, shape, widened


@decomposes("dft")
def dft(a: Any, x: Any) -> Any:
    """x [..., n, ..., c] times a constant [n, c, m, 2]; None when n is symbolic."""
    dims = shape(x)
    n = dims[a.axis]
    if not isinstance(n, int):
        return None
    m = n // 2 + 1 if a.onesided else n
    sign = 1 if a.inverse else -1
    angle = sign * 2 * np.pi * (np.outer(np.arange(n), np.arange(m)) % max(n, 1)) / max(n, 1)
    cos, sin = np.cos(angle), np.sin(angle)
    real = np.stack([cos, sin], -1)
    imaginary = np.stack([-sin, cos], -1)
    table = np.stack([real, imaginary], 1)[:, :dims[-1]] / (n if a.inverse else 1)
    rank = len(dims)

    def f(v: Any) -> Any:
        kernel = xt.constant(table, dtype(v))
        y = xt.dot_general(v, kernel, lhs_contract=(a.axis, rank - 1), rhs_contract=(0, 1))
        perm = [*range(a.axis), rank - 2, *range(a.axis, rank - 2), rank - 1]
        return xt.transpose(y, perm=perm)

    return widened(f, x)
