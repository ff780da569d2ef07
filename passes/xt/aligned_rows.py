"""Matrix products whose rows do not start at whole words of memory get longer rows, filled up with zeros, or columns.

    %y = xt.dot_general(%a, %b)          %y = xt.dot_general(xt.pad(%a), xt.pad(%b))
    : 333x1111, 777x1111 -> 333x777  ->  : 333x1152, 777x1152 -> 333x777

A row of 2222 bytes can only be read an element at a time, and each element is read by every tile it is part of; one
copy costs less, but where products by FMAs copy elements one by one in any case. Weights are padded at compile time.
Where the columns are whole words the copy is a transpose, which leaves the other operand as it is, and which products
share that sum over rows and over columns, as the gradients of a head of 50257 words do:

    xt.dot_general(%g : 2048x50257, %w : 50257x768)             xt.dot_general(%t : 50257x2048, %w)
    xt.dot_general(%g : 2048x50257, %x : 2048x768) over 2048 -> xt.dot_general(%t, %x), %t = xt.transpose(%g)
"""

from __future__ import annotations

import math

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import producer, rewrite
from xcc.passes.xt.products.rounded import by_fma

STEP = 64           # terms: whole steps of a product, where that makes the sum little longer
LONGER = 1.05
NARROW = 16         # bits: asynchronous copies take 4 bytes at least
READ_AGAIN = 64     # the least of the other dims: how often an element is used
SEVERAL = 256       # of them, of more than one tile: a transpose alone takes as long as to read elements one by one


@register_pass
class AlignedRows(Pass):
    """Pads the summed dim of matrix products whose rows lie along it and are no multiple of `word` bytes."""

    word: int = 16

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"dot_general": lambda op: self._aligned(op, by_fma(op, ctx))})

    def _aligned(self, op: Operation, single: bool) -> Value | None:
        """`single`: elements are copied one by one wherever rows start."""
        a = xt.attrs_of(op)
        if len(a.lhs_contract) == 1 and not a.lhs_batch:
            for side in (0, 1):
                if self._turns(op, side):
                    return _turned(op, side)
        return _padded(op, terms) if not single and (terms := self._terms(op)) else None

    def _turns(self, op: Operation, side: int) -> bool:
        """Whether rows of the operand are no whole words, its columns are, and a copy of these pays: of a weight, whose
        columns are summed, or of narrow elements, which asynchronous copies do not take one by one."""
        a, kind = xt.attrs_of(op), xt.TensorType.of(op.operands[side])
        shape, (k, other) = kind.shape, [(a.lhs_contract, a.rhs_contract)[s][0] for s in (side, 1 - side)]
        beside = xt.shape_of(op.operands[1 - side])
        last = len(shape) - 1
        if not all(isinstance(d, int) for d in (*shape, *beside)) or not xt.is_float(kind.dtype) or last < 1:
            return False
        odd = [isinstance(n, int) and n * xt.width(kind.dtype) // 8 % self.word != 0 for n in shape[-2:]]
        if odd != [False, True] or k != last and last > 1:
            return False
        if producer(op.operands[side], "weight") is not None:
            return side == 1 and k == 0
        read_again = math.prod(n for d, n in enumerate(beside) if d != other and isinstance(n, int))
        padded = k == last and (other == len(beside) - 1 or producer(op.operands[1 - side], "weight") is not None)
        return not padded and xt.width(kind.dtype) <= NARROW and shape[k] >= STEP \
            and read_again >= (READ_AGAIN if k == last else SEVERAL)

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


def _turned(op: Operation, side: int) -> Value:
    """The product with the last dim of an operand as its first. Operands that are reshapes of one value, which keep its
    last dim, have one copy."""
    a, operands = xt.attrs_of(op), list(op.operands)
    source, shape = operands[side], xt.shape_of(operands[side])
    while (view := producer(source, "reshape")) is not None and xt.shape_of(view.operands[0])[-1:] == shape[-1:]:
        source = view.operands[0]
    last = len(xt.shape_of(source)) - 1
    copy = xt.transpose(source, perm=(last, *range(last)))
    operands[side] = copy if source == operands[side] else xt.reshape(copy, shape=(shape[-1], *shape[:-1]))
    name = ("lhs_contract", "rhs_contract")[side]
    k = getattr(a, name)[0]
    return xt.dot_general(*operands, **(vars(a) | {name: (0 if k == len(shape) - 1 else k + 1,)}))


def _padded(op: Operation, terms: int) -> Value:
    a = xt.attrs_of(op)
    operands = []
    for value, k in zip(op.operands, (a.lhs_contract[0], a.rhs_contract[0]), strict=True):
        shape = xt.shape_of(value)
        high = [terms - n if d == k else 0 for d, n in enumerate(shape)]
        operands.append(xt.pad(value, low=[0] * len(shape), high=high))
    return xt.dot_general(*operands, **vars(a))
