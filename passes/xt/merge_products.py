"""Products of one left operand with several stored matrices become one product (horizontal fusion).

    %q = xt.reshape(xt.add(xt.dot_general(%x, %wq), %bq)) : 8x64 -> 8x4x16      (likewise %k: 8x2x16)
becomes
    %y = xt.add(xt.dot_general(%x, xt.concatenate(%wq, %wk)), xt.concatenate(%bq, %bk)) : 8x96
    %q = xt.slice(xt.reshape(%y : 8x6x16)) {starts = [0, 0, 0], limits = [8, 4, 16]}    (%k: 4 to 6)

One launch reads %x once and has the tiles of all. The matrices are joined at compile time. It pays where each reader
can read its part in place: a reshape that only splits the columns (into heads, say), a transpose or a slice. Pointwise
readers, which would have been fused, cost a further pass over the result: they are parted from their products where
these leave more cores idle in their last wave of tiles than that takes (the gate of a feed-forward block on few rows).
Any other reader leaves the products apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Module, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import (
    at,
    erase_dead,
    is_pointwise,
    is_stored,
    name_of,
    producer,
    replace,
    users_of,
    walk_ops,
)
from xcc.symbolic import Dim
from xcc.targets.base import Chip

READERS = ("transpose", "slice")
ROWS = 128              # of a tile of a large product
WIDTHS = {256: 1.0, 128: 1.1}       # its columns, for the number of waves, and times how long it takes by its size
FEWEST_ROWS = 128       # with fewer, memory is what a product waits for
SHARE = 0.6             # of the chip's peak that a product reaches
LAUNCH_SECONDS = 2e-6


@dataclass(frozen=True)
class _Part:
    """A product with the bias behind it; `rounded` is the type that the sum is rounded to ("": none), `value` is what
    the readers see. free: they can all read a slice of it."""

    product: Operation
    bias: Value | None
    rounded: str
    value: Value
    columns: int
    free: bool


@register_pass
class MergeProducts(Pass):
    """Joins the matrix products of one value with several weights, where their readers take slices."""

    def run(self, module: Module, ctx: PassContext) -> None:
        found: dict[tuple[object, ...], list[_Part]] = {}
        for op in walk_ops(module):
            part = _part(op) if name_of(op) == "dot_general" else None
            if part is not None:
                a = xt.attrs_of(op)
                found.setdefault((op.operands[0], op.block, a.lhs_contract, a.rhs_contract, a.dtype, a.precision,
                                  part.rounded, str(xt.element_type_of(op.operands[1]))), []).append(part)
        for parts in found.values():
            free = [p for p in parts if p.free]
            if len(free) > 1:
                _merge(free)
            elif len(parts) > 1 and _fills_waves(parts, ctx.chip):
                _merge(parts)
        erase_dead(module)


def _part(op: Operation) -> _Part | None:
    """The product with its bias, when its matrix is stored and every reader can take a slice."""
    a = xt.attrs_of(op)
    matrix = op.operands[1]
    shape = xt.shape_of(matrix)
    if a.lhs_batch or len(shape) != 2 or len(a.rhs_contract) != 1 or not is_stored(matrix) \
            or a.lhs_contract != (len(xt.shape_of(op.operands[0])) - 1,):
        return None
    columns = shape[1 - a.rhs_contract[0]]
    assert isinstance(columns, int)
    value, bias = op.results[0], None
    users = users_of(value)
    if len(users) == 1 and name_of(users[0]) == "add":
        other = next((v for v in users[0].operands if v != value), None)
        if other is not None and (is_stored(other) or _widened(other) is not None) \
                and xt.shape_of(other) == (columns,) and xt.element_type_of(other) == xt.element_type_of(value):
            value, bias = users[0].results[0], other
    users, rounded = users_of(value), ""
    if len(users) == 1 and name_of(users[0]) == "convert" and not xt.attrs_of(users[0]).saturate:
        value = users[0].results[0]
        users, rounded = users_of(value), xt.TensorType.of(value).dtype
    free = all(_reads_a_slice(u) for u in users)
    if not users or not free and not all(_reads_a_slice(u) or is_pointwise(u) for u in users):
        return None
    return _Part(op, bias, rounded, value, columns, free)


def _fills_waves(parts: Sequence[_Part], chip: Chip) -> bool:
    """Whether one product has fewer waves of tiles, and saves more by it than another pass over the result takes."""
    shape = xt.shape_of(parts[0].product.operands[0])
    rate = dict(chip.flops).get(xt.attrs_of(parts[0].product).dtype, 0)
    if not all(isinstance(d, int) for d in shape) or not rate:
        return False
    rows, terms = math.prod(d for d in shape[:-1] if isinstance(d, int)), shape[-1]
    assert isinstance(terms, int)
    if rows < FEWEST_ROWS:
        return False
    columns = [p.columns for p in parts]
    saved = sum(_columns_of_waves(rows, n, chip.cores) for n in columns)
    saved -= _columns_of_waves(rows, sum(columns), chip.cores)
    column = 2.0 * ROWS * terms / (SHARE * rate / chip.cores)
    moved = 2 * rows * sum(p.columns for p in parts) * xt.width(xt.attrs_of(parts[0].product).dtype) // 8
    return saved * column > moved / chip.bandwidth + LAUNCH_SECONDS


def _columns_of_waves(rows: int, columns: int, cores: int) -> float:
    """The columns of tiles that a core computes one behind the other, with the tiles that take the least time."""
    return min(math.ceil(math.ceil(rows / ROWS) * math.ceil(columns / width) / cores) * width * dearer
               for width, dearer in WIDTHS.items())


def _widened(value: Value) -> Value | None:
    """The weight or constant that `value` is a conversion of, else None."""
    op = producer(value, "convert")
    return op.operands[0] if op is not None and is_stored(op.operands[0]) else None


def _reads_a_slice(op: Operation) -> bool:
    return name_of(op) in READERS or name_of(op) == "reshape" and _inner(op) is not None


def _inner(op: Operation) -> tuple[Dim, ...] | None:
    """The dims behind the first that a reshape splits its last dim into; None when it does anything else."""
    old, new = ([d for d in xt.shape_of(v) if d != 1] for v in (op.operands[0], op.results[0]))
    lead = len(old) - 1
    if lead < 0 or xt.shape_of(op.operands[0])[-1] == 1 or new[:lead] != old[:lead] or len(new) < lead + 2:
        return None
    return tuple(new[lead + 1:])


def _merge(parts: Sequence[_Part]) -> None:
    total = sum(p.columns for p in parts)
    parts = [p for p in parts if _fits(p, parts, total)]
    if len(parts) < 2:
        return
    first = parts[0].product
    a = xt.attrs_of(first)
    with at(first):
        matrix = xt.concatenate(*(_here(p.product.operands[1], first) for p in parts), axis=1 - a.rhs_contract[0])
        merged = xt.dot_general(first.operands[0], matrix, lhs_contract=a.lhs_contract, rhs_contract=a.rhs_contract,
                                dtype=a.dtype, precision=a.precision)
        if any(p.bias is not None for p in parts):
            merged = xt.add(merged, _biases(parts, a.dtype))
        if parts[0].rounded:
            merged = xt.convert(merged, dtype=parts[0].rounded)
    start = 0
    for p in parts:
        for user in users_of(p.value):
            with at(user):
                if name_of(user) == "reshape":
                    replace(user, [_split(merged, p, start, _inner(user) or (), xt.shape_of(user.results[0]))])
                else:
                    _read_columns(user, p, merged, start)
        start += p.columns


def _fits(part: _Part, parts: Sequence[_Part], total: int) -> bool:
    """Whether every reader's split of the columns also splits those of the merged product, wherever the part begins."""
    steps = [symbolic.product(i) for u in users_of(part.value) if (i := _inner(u) if name_of(u) == "reshape" else None)]
    return all(isinstance(s, int) and all(p.columns % s == 0 for p in parts) and total % s == 0 for s in steps)


def _here(value: Value, before: Operation) -> Value:
    """A copy of the weight or constant `value`, or of a conversion of one, at the insertion point, in front of all
    products."""
    op, narrow = owner_op(value), _widened(value)
    if narrow is not None:
        return xt.convert(_here(narrow, before), dtype=xt.TensorType.of(value).dtype)
    return op.clone().results[0] if op.block == before.block else value


def _biases(parts: Sequence[_Part], dtype: str) -> Value:
    """The biases of all parts as one; conversions of stored ones are one conversion."""
    first = parts[0].product
    narrow = [v for p in parts if p.bias is not None and (v := _widened(p.bias)) is not None]
    if len(narrow) == len(parts) and len({str(xt.element_type_of(v)) for v in narrow}) == 1:
        return xt.convert(xt.concatenate(*(_here(v, first) for v in narrow), axis=0), dtype=dtype)
    nothing = xt.constant(0.0, dtype=dtype)
    return xt.concatenate(*(_here(p.bias, first) if p.bias is not None else xt.broadcast(nothing, shape=(p.columns,))
                            for p in parts), axis=0)


def _read_columns(user: Operation, part: _Part, merged: Value, start: int) -> None:
    columns = _columns(merged, start, part.columns)
    for n, v in enumerate(list(user.operands)):
        if v == part.value:
            user.operands[n] = columns


def _columns(value: Value, start: int, count: int) -> Value:
    shape = xt.shape_of(value)
    zeros = (0,) * (len(shape) - 1)
    return xt.slice(value, starts=(*zeros, start), limits=(*shape[:-1], start + count), strides=(1,) * len(shape))


def _split(value: Value, part: _Part, start: int, inner: tuple[Dim, ...], result: tuple[Dim, ...]) -> Value:
    """The part's columns as (..., heads, *inner): a slice of whole heads, so that nothing moves."""
    shape, step = xt.shape_of(value), symbolic.product(inner)
    assert isinstance(step, int) and isinstance(shape[-1], int)
    wide = xt.reshape(value, shape=(*shape[:-1], shape[-1] // step, *inner))
    lead, rank = len(shape) - 1, len(shape) + len(inner)
    heads = xt.slice(wide, starts=(*(0,) * lead, start // step, *(0,) * len(inner)),
                     limits=(*shape[:-1], (start + part.columns) // step, *inner), strides=(1,) * rank)
    return xt.reshape(heads, shape=result)
