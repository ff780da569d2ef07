"""Which symbolic dims of a kernel are numbers, since an op of it takes them to be equal to one.

    %y = "xt.dot_general"(%x, %w)       x: [m, k], w: [33, 20]: in this kernel k is 33, and 2*k + 1 is 67

What a kernel relies on is checked before it runs (passes/xt/sizes/equal_dims.py). A kernel whose values keep ``k``
beside 33 would have two types for one loop, which upstream's canonicalisation brings together by casts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xcc._mlir import Operation
from xcc.dialects import xt
from xcc.symbolic import Dim, Expr, replace


def known_sizes(ops: Iterable[Operation]) -> Callable[[Dim], Dim]:
    """Gives what a dim is in a kernel of `ops`; one that can never run keeps its dims."""
    sizes: dict[Expr, Dim] = {}
    pairs = _assumed(ops)
    while found := next((p for p in pairs if isinstance(p[0], int) != isinstance(p[1], int)), None):
        dim, size = _solved(*found)
        sizes[dim] = size
        pairs = [(replace(a, sizes), replace(b, sizes)) for a, b in pairs]
    never = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
    return (lambda d: d) if never else lambda d: _size(d, replace(d, sizes))


def _size(dim: Dim, known: Dim) -> Dim:
    """`known`, where it can be a size."""
    return dim if isinstance(known, int) and known < 0 else known


def _assumed(ops: Iterable[Operation]) -> list[tuple[Dim, Dim]]:
    """The dims that ops with symbolic sizes take to be equal."""
    with xt.assumed_equal() as pairs:
        for op in ops:
            definition = xt.op_class(op)
            symbolic = any(isinstance(d, Expr) for v in (*op.operands, *op.results) for d in xt.shape_of(v))
            if definition is not None and symbolic:
                definition.problem(op)
    return list(dict.fromkeys(pairs))


def _solved(a: Dim, b: Dim) -> tuple[Expr, int]:
    """A dim and its size, where one of `a` and `b` is a number: of ``2*k + 1`` and 67 it is k, 33."""
    dim, size = (a, b) if isinstance(b, int) else (b, a)
    assert isinstance(dim, Expr) and isinstance(size, int)
    (atoms, factor), *rest = dim.terms
    if len(atoms) == 1 and all(not m for m, _ in rest):
        quotient, remainder = divmod(size - sum(c for _, c in rest), factor)
        if not remainder:
            return Expr({atoms: 1}), quotient
    return dim, size
