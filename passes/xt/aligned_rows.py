"""Matrix products whose rows do not start at whole words of memory get longer rows, filled up with zeros.

    %y = xt.dot_general(%a, %b)          %y = xt.dot_general(xt.pad(%a), xt.pad(%b))
    : 333x1111, 777x1111 -> 333x777  ->  : 333x1152, 777x1152 -> 333x777

A row of 2222 bytes can only be read an element at a time, and each element is read by every tile it is part of; one
copy costs less. Weights are padded at compile time. A weight whose rows are columns of the product, [K, N], is turned
where those of [N, K] start at whole words.
"""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import producer, rewrite

__all__ = ["AlignedRows"]

STEP = 64           # terms: whole steps of a product, where that makes the sum little longer
LONGER = 1.05
READ_AGAIN = 64     # the least of the other dims: how often an element is used


@register_pass
class AlignedRows(Pass):
    """Pads the summed dim of matrix products whose rows lie along it and are no multiple of `word` bytes."""

    word: int = 16

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"dot_general": self._aligned})

    def _aligned(self, op: Operation) -> Value | None:
        if (turned := self._turned(op)) is not None:
            return turned
        return _padded(op, terms) if (terms := self._terms(op)) else None

    def _turned(self, op: Operation) -> Value | None:
        """The product with its weight [K, N] as [N, K]; None where its rows stay."""
        a, (lhs, rhs) = xt.attrs_of(op), op.operands
        kind = xt.TensorType.of(rhs)
        if producer(rhs, "weight") is None or tuple(a.rhs_contract) != (0,) or len(kind.shape) != 2:
            return None
        odd = [isinstance(n, int) and n * xt.width(kind.dtype) // 8 % self.word != 0 for n in kind.shape]
        if odd != [False, True] or not xt.is_float(kind.dtype):
            return None
        return xt.dot_general(lhs, xt.transpose(rhs, perm=(1, 0)), **(vars(a) | {"rhs_contract": (1,)}))

    def _terms(self, op: Operation) -> int:
        """How long the sum of `op` is to be made; 0: as it is."""
        a = xt.attrs_of(op)
        types = [xt.TensorType.of(v) for v in op.operands]
        shapes = [[d for d in t.shape if isinstance(d, int)] for t in types]
        if len(a.lhs_contract) != 1 or any(len(s) != len(t.shape) for s, t in zip(shapes, types, strict=True)):
            return 0
        summed = (a.lhs_contract[0], a.rhs_contract[0])
        terms = shapes[0][summed[0]]
        free = [math.prod(n for d, n in enumerate(shape) if d != k and d not in batch)
                for shape, batch, k in zip(shapes, (a.lhs_batch, a.rhs_batch), summed, strict=True)]
        odd = [t for t, k in zip(types, summed, strict=True)
               if k == len(t.shape) - 1 and xt.is_float(t.dtype) and terms * xt.width(t.dtype) // 8 % self.word]
        if not odd or min(free) < READ_AGAIN or terms < STEP:
            return 0
        whole = -(-terms // STEP) * STEP
        unit = max(8 * self.word // xt.width(t.dtype) for t in odd)
        return whole if whole <= LONGER * terms else -(-terms // unit) * unit


def _padded(op: Operation, terms: int) -> Value:
    a = xt.attrs_of(op)
    operands = []
    for value, k in zip(op.operands, (a.lhs_contract[0], a.rhs_contract[0]), strict=True):
        shape = xt.shape_of(value)
        high = [terms - n if d == k else 0 for d, n in enumerate(shape)]
        operands.append(xt.pad(value, low=[0] * len(shape), high=high))
    return xt.dot_general(*operands, **vars(a))
