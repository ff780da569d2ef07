"""Long reductions with few results are cut into parts, so that there is work for all cores.

    %y = xt.reduce(%x) {axes = [0], kind = "sum"}        %p = xt.reduce(%x as 1x512x65536x1) {axes = [2]}
    : 33554432 -> scalar                              -> %y = xt.reduce(%p) {axes = [1]}

Of everything, of long rows, and of long columns side by side. What is computed of %x on the way is computed of the
parts, so that it stays in the first kernel. What no number of parts divides is reduced apart, by the last kernel.
Narrow floats are summed in f32 through both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from xcc._mlir import Module, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import access_of, is_pointwise, producer, rebuilt, rewrite
from xcc.symbolic import Dim

COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "and": "and", "or": "or"}
ELEMENTS, PART = 3 << 15, 4096
BESIDE = 64         # columns of a block: as many of all types, so that sums of several may share a loop
ALIGNED = 16        # elements that the parts of rows of any size are multiples of, for whole vectors
BLOCKS = 3          # of a core


class Rows(NamedTuple):
    """Some of the n rows of a value, `lead` times as many in all: from `start` to `end`."""

    lead: int
    n: int
    start: int
    end: int

    def of(self, value: Value, tail: int) -> Value:
        value = _in_shape(value, (self.lead, self.n, tail), None)
        return xt.slice(value, starts=(0, self.start, 0), limits=(self.lead, self.end, tail), strides=(1, 1, 1))


@register_pass
class CutReductions(Pass):
    """Cuts the reduced dims, where they lie together, of reductions whose results keep few cores at work.

    elements: how many elements a block must have to be worth a second kernel; part: how many it keeps at least.
    where_it_lies: only what is cut without a copy, of what lies in memory.
    """

    elements: int = ELEMENTS
    part: int = PART
    where_it_lies: bool = False

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"reduce": lambda op: self._cut(op, ctx.chip.cores)})

    def _cut(self, op: Operation, cores: int) -> Value | None:
        a, x = xt.attrs_of(op), op.operands[0]
        kind, columns = xt.TensorType.of(x), columns_of(x, a.axes)
        parts = 1 if columns is None else parts_of(columns, cores, self.elements, self.part)
        if columns is None or parts == 1:
            return None
        lead, n, tail = columns
        size = n // parts
        size -= size % ALIGNED if n % parts and tail == 1 else 0
        rest = n - parts * size
        if self.where_it_lies and not is_cut_where_it_lies(x, (lead, parts, size, tail)):
            return None
        cut = _wide(reshaped(x, (lead, parts, size, tail), Rows(lead, n, 0, n - rest) if rest else None), a.kind)
        p = xt.reduce(cut, kind=a.kind, axes=(2,), keepdims=False)
        y = xt.reduce(p, kind=a.kind, axes=(1,), keepdims=False)
        if rest:
            left = _wide(reshaped(x, (lead, rest, tail), Rows(lead, n, n - rest, n)), a.kind)
            y = getattr(xt, COMBINE[a.kind])(y, xt.reduce(left, kind=a.kind, axes=(1,), keepdims=False))
        y = xt.reshape(y, shape=xt.shape_of(op.results[0]))
        return xt.convert(y, dtype=kind.dtype) if xt.TensorType.of(y).dtype != kind.dtype else y


def columns_of(x: Value, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Sizes of what lies ahead of the reduced `axes`, of these, and behind them, where they lie together."""
    shape = xt.shape_of(x)
    sizes, reduced = [d for d in shape if isinstance(d, int)], [d for d in axes if shape[d] != 1]
    if len(sizes) != len(shape) or not reduced or any(
            sizes[d] != 1 for d in range(reduced[0], reduced[-1]) if d not in reduced):
        return None
    return math.prod(sizes[:reduced[0]]), math.prod(sizes[d] for d in reduced), math.prod(sizes[reduced[-1] + 1:])


def parts_of(columns: tuple[int, int, int], cores: int, elements: int = ELEMENTS, part: int = PART) -> int:
    """How many parts of columns, of sizes as in `columns_of`, give all cores work; 1 where there is enough of it."""
    lead, n, tail = columns
    beside = min(tail, BESIDE)
    blocks = lead * -(-tail // beside)
    if not blocks or blocks >= cores or n * beside < elements:
        return 1
    parts = 2
    while parts * blocks < BLOCKS * cores and n * beside >= 2 * parts * part:
        parts *= 2
    return next((p for p in range(parts, parts // 4, -1) if n % p == 0), parts)


def _wide(value: Value, kind: str) -> Value:
    narrow = xt.TensorType.of(value).dtype in NARROW and kind in ("sum", "prod")
    return xt.convert(value, dtype="f32") if narrow else value


def reshaped(value: Value, shape: tuple[int, ...], rows: Rows | None = None, shared: bool = False) -> Value:
    """`value`, or some `rows` of it, in another shape of as many columns, its last dim: what makes it element by
    element works in that shape.

    shared: others need it as well, in the shape that it has. So it is made twice where that reads no more than it has.
    """
    op = producer(value)
    if op is None or not is_pointwise(op) or len(op.results) != 1:
        return _in_shape(value, shape, rows)
    shared = _is_shared(value, shared)
    shapes = {v: to for v in op.operands if (to := _cut_shape(v, value, shape)) is not None}
    if shared and _reads_more(value) or any(v not in shapes for v in op.operands):
        return _in_shape(value, shape, rows)
    made = {v: reshaped(v, to, rows, shared) if xt.shape_of(v) == xt.shape_of(value)
            else _in_shape(v, to, rows if len(to) == len(shape) else None) for v, to in shapes.items()}
    return rebuilt(op, [made[v] for v in op.operands])


def _in_shape(value: Value, shape: tuple[int, ...], rows: Rows | None) -> Value:
    value = value if rows is None else rows.of(value, shape[-1])
    return value if xt.shape_of(value) == shape else xt.reshape(value, shape=shape)


def is_cut_where_it_lies(value: Value, shape: tuple[int, ...], shared: bool = False) -> bool:
    """Whether :func:`reshaped` puts nothing into memory: all that computes `value` is made in the other shape, of what
    lies there."""
    op = producer(value)
    if op is None or not is_pointwise(op) or len(op.results) != 1:
        return op is None or access_of(op) != "movement"
    shared = _is_shared(value, shared)
    if shared and _reads_more(value) or any(_cut_shape(v, value, shape) is None for v in op.operands):
        return False
    return all(is_cut_where_it_lies(v, shape, shared) for v in op.operands if xt.shape_of(v) == xt.shape_of(value))


def _is_shared(value: Value, shared: bool) -> bool:
    return shared or len({u.owner.operation for u in value.uses}) > 1


def _reads_more(value: Value) -> bool:
    """Whether making `value` once more reads more than it has."""
    operands = {v for v in owner_op(value).operands if xt.shape_of(v) == xt.shape_of(value)}
    return sum(map(_read, operands)) > _width(value)


def _cut_shape(v: Value, value: Value, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of the operand `v` of what makes `value` where that has `shape`; None where there is none."""
    given, own = xt.shape_of(v), xt.shape_of(value)
    if given == own:
        return shape
    if all(d == 1 for d in given) and math.prod(shape) != 1:
        return ()
    if given == (*own[:-1], 1) and own[-1] == shape[-1]:
        return (*shape[:-1], 1)
    return shape[-1:] if _is_columns(given, own, shape[-1]) else None


def _width(value: Value) -> int:
    return xt.width(xt.TensorType.of(value).dtype)


def _read(value: Value) -> int:
    """Bits of an element of `value`, or of what is converted to it."""
    op = producer(value, "convert")
    return _width(value if op is None else op.operands[0])


def _is_columns(given: tuple[Dim, ...], shape: tuple[Dim, ...], columns: int) -> bool:
    """Whether `given`, which is broadcast to `shape`, has an element for each of the `columns`."""
    sizes = [d for d in given if isinstance(d, int)]
    ones = next((n for n, d in enumerate(sizes) if d != 1), len(sizes))
    return len(sizes) == len(given) and math.prod(sizes) == columns \
        and tuple(sizes[ones:]) == tuple(shape[len(shape) - len(sizes) + ones:])
