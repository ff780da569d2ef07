"""Fourier transforms of many rows as loops of butterflies that have a row in each lane.

    xt.dft(%x: [m, n, 1]) {onesided}    ->    xt.fourier_rows(%x: [m, n], %roots: [n, 2]) {kind = "real"}: [m, n + 2]

Transforms of short rows, of lengths with large prime factors, and of rows of which a group would not fit a stack stay
products by matrices of roots of unity (xt-decompose).
"""

from __future__ import annotations

import numpy as np

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.dialects.xt.reading import Attrs
from xcc.dialects.xt.signal import rotations
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dims import pow2_above
from xcc.passes.shared.factors import butterfly_factors
from xcc.passes.xt.decompose.build import convert, dtype, shape, take
from xcc.passes.xt.decompose.signal import completed
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim, floordiv, product

SHORTEST = 32           # elements of a row that a product by a matrix does not transform in the same time
FEWEST = 4              # lanes
STACK = 1 << 20         # bytes of the numbers of a group of rows, twice


@register_pass
class FourierRows(Pass):
    """Turns Fourier transforms of rows into `fourier_rows` of as many lanes as fit a vector, and the stack."""

    def run(self, module: Module, ctx: PassContext) -> None:
        width = ctx.chip.vector_bytes if ctx.chip is not None else 16

        def rows(op: Operation) -> Value | None:
            return _rows(xt.attrs_of(op), op.operands[0], width)

        rewrite(module, {"dft": rows})


def _rows(a: Attrs, x: Value, width: int) -> Value | None:
    dims, parts = shape(x), shape(x)[-1]
    n = a.length[0] if a.length else dims[a.axis]
    if not isinstance(n, int) or n < SHORTEST:
        return None
    halved = a.onesided and (a.inverse or parts == 1) and n % 2 == 0
    count = n // 2 if halved else n
    element = "f32" if dtype(x) in NARROW else dtype(x)
    bytes_ = 8 if element == "f64" else 4
    lanes = _lanes(product(d for i, d in enumerate(dims[:-1]) if i != a.axis), count, bytes_, width)
    if lanes < FEWEST or not butterfly_factors(count):
        return None
    inward = [d for d in range(len(dims) - 1) if d != a.axis] + [a.axis, len(dims) - 1]
    x = xt.transpose(convert(x, element), perm=inward)
    if halved:
        made = _transformed(x, "real_inverse" if a.inverse else "real", n, lanes)
    else:
        made = _of_pairs(x, a, n, lanes)
    return convert(xt.transpose(made, perm=[inward.index(d) for d in range(len(dims))]), dtype(x))


def _of_pairs(x: Value, a: Attrs, n: int, lanes: int) -> Value:
    """x [..., n, parts] as pairs; of the result what is asked for."""
    axis = len(shape(x)) - 2
    if a.length:
        x = completed(x, axis, n)
    elif shape(x)[-1] == 1:
        x = xt.pad(x, low=[0] * (axis + 2), high=[0] * (axis + 1) + [1])
    made = _transformed(x, "inverse" if a.inverse else "forward", n, lanes)
    if a.length:
        return take(made, axis + 1, 0, 1)
    return take(made, axis, 0, n // 2 + 1) if a.onesided else made


def _transformed(x: Value, kind: str, n: int, lanes: int) -> Value:
    """x [..., numbers, parts] along the last but one."""
    dims = shape(x)
    rows = xt.reshape(x, shape=(product(dims[:-2]), product(dims[-2:])))
    roots = xt.constant(rotations(np.arange(n), n, kind.endswith("inverse"))[:, 0], dtype(x))
    made = xt.fourier_rows(rows, roots, kind=kind, lanes=lanes)
    parts = 1 if kind == "real_inverse" else 2
    return xt.reshape(made, shape=(*dims[:-2], floordiv(shape(made)[1], parts), parts))


def _lanes(rows: Dim, count: int, element: int, width: int) -> int:
    """As many as a vector has, and no more than rows; as many as the stack holds numbers of."""
    most = width // element
    if isinstance(rows, int):
        most = min(most, max(FEWEST, pow2_above(rows)))
    while most > 1 and 2 * 2 * (count + 1) * most * element > STACK:
        most //= 2
    return most
