"""Systems of equations whose matrix is triangular.

Blocks on the diagonal are inverted by products, all at once. With the inverses P and R of two and B below the first,

    [A 0; B C] has the inverse [P 0; -R B P  R], which is D - D [0 0; B 0] D with D = [P 0; 0 R]

The solution follows block by block. A block has about twice the root of the rows: as many products as blocks.
"""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import numpy_dtype
from xcc.frontends.shared.helpers import element, rank_of, scalar, slice_axis, squeeze, turned, unsqueeze
from xcc.frontends.shared.products import matmul
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten


@aten("linalg_solve_triangular")
def solve_triangular(cx: Context) -> Value:
    """X with A X = B, or with X A = B: self is A, of which one triangle is read. Leading dims are batches."""
    a, b = cx.tensor("self"), cx.tensor("B")
    left = cx.get("left", True)
    rows = xt.shape_of(a)[-1]
    if not isinstance(rows, int):
        cx.fail(f"the number of equations, {rows}, must be known")
    if not left:
        a, b = turned(a), turned(b)
    if not cx.get("unitriangular", False):
        diagonal = xt.select(xt.constant(np.eye(rows, dtype=bool)), a, scalar(0, a))
        diagonal = xt.reduce(diagonal, kind="sum", axes=(rank_of(a) - 1,), keepdims=True)
        a, b = xt.div(a, diagonal), xt.div(b, diagonal)
    x = _solved(a, b, rows, lower=bool(cx["upper"]) != left)
    return x if left else turned(x)


def _solved(a: Value, b: Value, rows: int, lower: bool) -> Value:
    """X with A X = B, where the diagonal of A is ones, whatever stands there: block by block, from what is known."""
    rank, block = rank_of(a), 1
    while block < rows and block * block < 4 * rows:
        block *= 2
    cuts = [(first, min(first + block, rows)) for first in range(0, rows, block)]
    inverses = _inverse(_on_diagonal(a, cuts, block), block, lower)
    x: Value | None = None
    for n, (first, last) in list(enumerate(cuts))[:: 1 if lower else -1]:
        own = xt.slice(inverses, starts=(n, *[0] * rank), limits=(n + 1, *xt.shape_of(a)[:-2], *[last - first] * 2))
        right = slice_axis(b, rank_of(b) - 2, first, last)
        if x is not None:
            known = slice_axis(slice_axis(a, rank - 2, first, last), rank - 1, *(0, first) if lower else (last, rows))
            right = xt.sub(right, matmul(known, x))
        part = matmul(squeeze(own, [0]), right)
        x = part if x is None else xt.concatenate(*(x, part) if lower else (part, x), axis=rank_of(part) - 2)
    return b if x is None else x


def _on_diagonal(a: Value, cuts: list[tuple[int, int]], block: int) -> Value:
    """The blocks on the diagonal, one behind the other in a new first dim; the last one may end in zeros."""
    rank, parts = rank_of(a), []
    for first, last in cuts:
        part = slice_axis(slice_axis(a, rank - 2, first, last), rank - 1, first, last)
        short = block - (last - first)
        if short:
            part = xt.pad(part, low=(0,) * rank, high=(*[0] * (rank - 2), short, short), value=0)
        parts.append(unsqueeze(part, [0]))
    return parts[0] if len(parts) == 1 else xt.concatenate(*parts, axis=0)


def _inverse(a: Value, rows: int, lower: bool) -> Value:
    """Of matrices of a few rows, with ones on the diagonal."""
    row, column = np.indices((rows, rows)) if lower else np.indices((rows, rows))[::-1]
    out = xt.broadcast(xt.constant(np.eye(rows, dtype=numpy_dtype(element(a)))), shape=xt.shape_of(a))
    size = 1
    while size < rows:
        below = (row // size == column // size + 1) & (row // (2 * size) == column // (2 * size))
        part = xt.select(xt.constant(below), a, scalar(0, a))
        out = xt.sub(out, part if size == 1 else matmul(matmul(out, part), out))
        size *= 2
    return out
