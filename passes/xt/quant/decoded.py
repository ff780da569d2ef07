"""What is decoded from weights: expressions of pointwise ops on weights and constants, and moves made on these instead.

    transpose(mul(convert(w), s))  ->  mul(convert(transpose(w)), transpose(s))

``xt-fold`` then moves the stored bytes, and the decode stays beside the product that reads it. An operand that is
broadcast has dims of 1 where it is, and a scale of blocks is ``stretch``ed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import is_pointwise, name_of, producer, rebuilt
from xcc.symbolic import Dim

Shape = tuple[int, ...]
MOST_OPS = 64


@dataclass(frozen=True)
class Move:
    """A move of a value of rank `rank`: how it is done to what has all elements, or one in some dims, or blocks.

    plain(x): `x` moved, whose dims are the value's or 1. stretched(x, axis, times, size): `x`, each of whose elements
    along `axis` stands for `times` of the value's, `size` of them, moved and stretched; None where that cannot be.
    """

    rank: int
    plain: Callable[[Value], Value | None]
    stretched: Callable[[Value, int, int, int], Value | None]


def is_decoded(value: Value) -> bool:
    """Whether `value` is computed, by few pointwise ops, from weights and constants of narrower elements alone."""
    left, seen, stored = [value], 0, list[Value]()
    while left and seen <= MOST_OPS:
        v = left.pop()
        op, seen = producer(v), seen + 1
        if op is None:
            return False
        if _is_stored(op):
            stored.append(v)
        elif name_of(op) == "stretch" or is_pointwise(op):
            left += list(op.operands)
        else:
            return False
    wide = xt.width(xt.TensorType.of(value).dtype)
    return seen <= MOST_OPS and any(xt.width(xt.TensorType.of(v).dtype) < wide for v in stored)


def made_with(value: Value, move: Move) -> Value | None:
    """`value`, which is decoded, with `move` made on its weights; None where one of these cannot be moved so."""
    op = producer(value)
    assert op is not None
    if len(xt.shape_of(value)) == 0:
        return value
    if _is_stored(op):
        return move.plain(_raised(value, move.rank))
    if name_of(op) == "stretch":
        if not _is_stored(producer(op.operands[0])):
            return None
        a, lead = xt.attrs_of(op), move.rank - len(xt.shape_of(value))
        return move.stretched(_raised(op.operands[0], move.rank), a.axis + lead, a.times, a.size[0])
    if not is_pointwise(op):
        return None
    operands = [made for v in op.operands if (made := made_with(v, move)) is not None]
    return rebuilt(op, operands) if len(operands) == len(op.operands) else None


def _is_stored(op: Operation | None) -> bool:
    """Whether the op is a weight or constant, perhaps moved, which ``xt-fold`` will do."""
    while op is not None and name_of(op) in ("reshape", "transpose", "pad", "unpack"):
        op = producer(op.operands[0])
    return op is not None and name_of(op) in ("weight", "constant")


def _raised(x: Value, rank: int) -> Value:
    """`x` with dims of 1 in front, `rank` dims in all."""
    shape = xt.shape_of(x)
    return x if len(shape) in (0, rank) else xt.reshape(x, shape=(*[1] * (rank - len(shape)), *shape))


def permute(rank: int, perm: Sequence[int]) -> Move:
    """The transpose by `perm`."""
    def stretched(x: Value, axis: int, times: int, size: int) -> Value:
        return xt.stretch(xt.transpose(x, perm=perm), axis=list(perm).index(axis), times=times, size=(size,))

    return Move(rank, lambda x: xt.transpose(x, perm=perm), stretched)


def pad_end(rank: int, axis: int, extra: int) -> Move:
    """`extra` elements more at the end of `axis`, whatever they decode to."""
    def more(x: Value, n: Dim) -> Value:
        high = tuple(n if d == axis else 0 for d in range(rank))
        return xt.pad(x, low=(0,) * rank, high=high) if n else x

    def stretched(x: Value, along: int, times: int, size: int) -> Value:
        if along != axis:
            return xt.stretch(more(x, extra if xt.shape_of(x)[axis] != 1 else 0), axis=along, times=times, size=(size,))
        count = xt.shape_of(x)[axis]
        return xt.stretch(more(x, -(-(size + extra) // times) - count), axis=axis, times=times, size=(size + extra,))

    return Move(rank, lambda x: more(x, extra if xt.shape_of(x)[axis] != 1 else 0), stretched)


def split(rank: int, axis: int, width: int) -> Move:
    """Dim `axis` as two, the second of `width`, which divides it."""
    def plain(x: Value) -> Value:
        shape = xt.shape_of(x)
        n = shape[axis]
        return xt.reshape(x, shape=(*shape[:axis], *((1, 1) if n == 1 else (n // width, width)), *shape[axis + 1:]))

    def stretched(x: Value, along: int, times: int, size: int) -> Value | None:
        if along != axis:
            return xt.stretch(plain(x), axis=along + (along > axis), times=times, size=(size,))
        shape = xt.shape_of(x)
        if times % width == 0:      # a block is some whole parts
            x = xt.reshape(x, shape=(*shape[:axis + 1], 1, *shape[axis + 1:]))
            return xt.stretch(x, axis=axis, times=times // width, size=(size // width,))
        if width % times or shape[axis] * times != size:
            return None
        x = xt.reshape(x, shape=(*shape[:axis], size // width, width // times, *shape[axis + 1:]))
        return xt.stretch(x, axis=axis + 1, times=times, size=(width,))

    return Move(rank, plain, stretched)


def merge(rank: int, axis: int, sizes: tuple[int, int]) -> Move:
    """Dims `axis` and the next one, of `sizes`, as one."""
    whole = sizes[0] * sizes[1]

    def joined(x: Value) -> Value:
        shape = xt.shape_of(x)
        return xt.reshape(x, shape=(*shape[:axis], symbolic.product(shape[axis:axis + 2]), *shape[axis + 2:]))

    def plain(x: Value) -> Value | None:
        outer, inner = (n == 1 for n in xt.shape_of(x)[axis:axis + 2])
        if inner and not outer and sizes[1] > 1:
            return xt.stretch(joined(x), axis=axis, times=sizes[1], size=(whole,))
        return None if outer and not inner and sizes[0] > 1 else joined(x)

    def stretched(x: Any, along: int, times: int, size: int) -> Any:
        if along not in (axis, axis + 1):
            x = plain(x)
            return None if x is None else xt.stretch(x, axis=along - (along > axis), times=times, size=(size,))
        outer, inner = xt.shape_of(x)[axis:axis + 2]
        if along == axis and inner == 1:
            return xt.stretch(joined(x), axis=axis, times=times * sizes[1], size=(whole,))
        return xt.stretch(joined(x), axis=axis, times=times, size=(whole,)) \
            if along == axis + 1 and inner * times == sizes[1] and outer == sizes[0] else None

    return Move(rank, plain, stretched)
