"""One element of each sorted row is found by halving what it may be: a median, a k-th value.

    %s, %i = xt.sort(%x) {axis = 1}                           p = the lowest number, of as many bits as x has
    %y = xt.slice(%s) {starts = [0, 299], limits = [n, 300]}  for each bit from the highest: p = p + bit where at most
                                                                299 elements of the row are below p + bit
                                                              %y = x where it is the p-th number, and its place

Numbers are counted in the order of their bits, floats by the floats that p stands for, so that a pass over the rows
compares and adds alone. 32 such passes take a third to a tenth of a sort of long rows. Of equal elements it is the
first, and NaN come last. It needs all that reads the sort to read an element a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import name_of, producer, rewrite

LEAST = 256         # elements of a row, for each 32 bits of them
WHOLE = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64", "i16": "i16", "i32": "i32", "i64": "i64"}
"""The integers that have the bits of an element."""
INFINITE = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}


@register_pass
class HalvedRanks(Pass):
    """Finds what is read of a sort by halving, where that is one element of each long row."""

    least: int = LEAST

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"slice": partial(_picked, rank=_slice_rank, least=self.least),
                         "gather_elements": partial(_picked, rank=_gather_rank, least=self.least)})


Rank = Callable[[Operation, Operation], Value | None]
"""The place of the element of each sorted row that an op reads of a sort, i64; None where it reads others."""


def _picked(op: Operation, rank: Rank, least: int) -> Value | None:
    sort = producer(op.operands[0], "sort")
    if sort is None or not _pays(sort, least):
        return None
    x, axis = sort.operands[0], xt.attrs_of(sort).axis
    k = rank(op, sort)
    if k is None:
        return None
    place = _place(x, xt.convert(k, dtype="i32"), axis)
    return place if op.operands[0] == sort.results[1] else xt.gather_elements(x, place, axis=axis)


def _pays(sort: Operation, least: int) -> bool:
    kind, a = xt.TensorType.of(sort.operands[0]), xt.attrs_of(sort)
    size = kind.shape[a.axis]
    if kind.dtype not in WHOLE or a.descending or not isinstance(size, int) or size * 32 < least * xt.width(kind.dtype):
        return False
    ranks = {"slice": _slice_rank, "gather_elements": _gather_rank}
    readers = [use.owner.operation for v in sort.results for use in v.uses]
    return all(name_of(o) in ranks and ranks[name_of(o)](o, sort) is not None for o in readers)


def _slice_rank(op: Operation, sort: Operation) -> Value | None:
    a, axis = xt.attrs_of(op), xt.attrs_of(sort).axis
    shape = xt.shape_of(sort.operands[0])
    k = a.starts[axis]
    wanted = tuple(1 if d == axis else n for d, n in enumerate(shape))
    return xt.constant(k, dtype="i64") if isinstance(k, int) and xt.shape_of(op.results[0]) == wanted else None


def _gather_rank(op: Operation, sort: Operation) -> Value | None:
    axis, shape = xt.attrs_of(sort).axis, xt.shape_of(sort.operands[0])
    wanted = tuple(1 if d == axis else n for d, n in enumerate(shape))
    alike = op.operands[1] not in sort.results and xt.attrs_of(op).axis == axis
    return op.operands[1] if alike and xt.shape_of(op.operands[1]) == wanted else None


def _place(x: Value, k: Value, axis: int) -> Value:
    """Where the k-th smallest of each row is first; k is i32."""
    dtype = xt.TensorType.of(x).dtype
    whole, bits = WHOLE[dtype], xt.width(dtype)

    def count(hit: Value) -> Value:
        return xt.reduce(xt.convert(hit, dtype="i32"), kind="sum", axes=(axis,), keepdims=True)

    found = xt.constant(-(1 << (bits - 1)), dtype=whole)
    for bit in range(bits - 1, -1, -1):
        tried = xt.constant(0, dtype=whole) if bit == bits - 1 else xt.add(found, xt.constant(1 << bit, dtype=whole))
        few = xt.compare(count(xt.compare(x, _number(tried, dtype), direction="lt")), k, direction="le")
        found = xt.select(few, tried, found)
    hit = xt.compare(x, _number(found, dtype), direction="eq")
    if xt.is_float(dtype):
        number = xt.compare(k, count(xt.compare(x, x, direction="eq")), direction="lt")
        hit = xt.select(number, hit, xt.is_nan(x))
    shape = xt.shape_of(x)
    size = shape[axis]
    assert isinstance(size, int)
    line = xt.iota(shape=tuple(n if d == axis else 1 for d, n in enumerate(shape)), axis=axis, dtype="i32")
    first = xt.reduce(xt.select(hit, line, xt.constant(size - 1, dtype="i32")), kind="min", axes=(axis,), keepdims=True)
    return xt.convert(first, dtype="i64")


def _number(key: Value, dtype: str) -> Value:
    """The number that is in the order of numbers where `key` is among integers, at most infinite."""
    if not xt.is_float(dtype):
        return key
    key = xt.minimum(key, xt.constant(INFINITE[dtype], dtype=WHOLE[dtype]))
    most = xt.constant((1 << (xt.width(dtype) - 1)) - 1, dtype=WHOLE[dtype])
    below = xt.compare(key, xt.constant(0, dtype=WHOLE[dtype]), direction="lt")
    return xt.bitcast(xt.select(below, xt.xor(key, most), key), dtype=dtype)
