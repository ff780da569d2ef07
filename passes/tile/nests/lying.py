"""Left operands of products that are read where they lie: rows of a buffer whose neighbours follow each other along k.

    %base, %at, %row = scf.if %inside { yield the buffer } else { packs; yield the copy }

A tile of which a part lies outside the buffer is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Type, Value, arith_d, ir, owner_op
from xcc.passes.shared.regions import any_of
from xcc.passes.shared.values import index
from xcc.passes.tile.lowering.views import add, mul, value_of
from xcc.passes.tile.nests.choice import dims_of, unit_reshape
from xcc.passes.tile.nests.kept import Coords, Kept

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

_I = arith_d.CmpIPredicate


@dataclass(frozen=True)
class Rows:
    """A block value of `shape`, [1, ..., m, k], in memory: from `origin` on, rows `row` elements apart."""

    memref: Value
    shape: tuple[int, ...]
    element: Type
    origin: Value
    row: Value

    def stride(self, dim: int) -> Value | int:
        """Elements between neighbours along `dim`."""
        return 1 if dim == len(self.shape) - 1 else self.row

    def offset(self, coords: Coords) -> Value:
        return value_of(add(add(self.origin, mul(coords[-2], self.row)), coords[-1]))


def read_of_rows(r: Retiler, value: Value) -> Operation | None:
    """The load of whose buffer `value`, [1, ..., m, k], is a part with k side by side; None where it is something
    else, or lets through others than the first places of the buffer."""
    want = list(range(ir.VectorType(value.type).rank))[-2:]
    shape = ir.VectorType(value.type).shape
    while value not in r.kept and not isinstance(value.owner, ir.Block) and value.owner.name == "vector.shape_cast" \
            and unit_reshape(value.owner.operation):
        value = value.owner.operands[0]
    if value in r.kept or isinstance(value.owner, ir.Block) or value.owner.name != "vector.transfer_read":
        return None
    read = value.owner.operation
    there = [d for d, n in enumerate(ir.VectorType(value.type).shape) if n > 1]
    kind = ir.MemRefType(read.operands[0].type)
    mask = _mask(read)
    lies = [d for d, n in enumerate(shape) if n > 1] == want and dims_of(read)[there[1]] == kind.rank - 1 \
        and kind.get_strides_and_offset()[0][-1] == 1
    masked = mask is None or (not isinstance(mask.owner, ir.Block) and mask.owner.name == "vector.create_mask")
    return read if lies and masked else None


def rows_or_copy(r: Retiler, read: Operation, copy: Kept, fill: Callable[[], None]) -> Rows:
    """The rows where `read` finds them, or `copy`, which `fill` writes."""
    base, start, strides = _lies(r.get(read.operands[0]))
    tile = ir.VectorType(read.results[0].type).shape
    dims = dims_of(read)
    row = strides[dims[next(d for d, n in enumerate(tile) if n > 1)]]
    places = [r.get(v) for v in list(read.operands)[1:1 + len(strides)]]
    origin = reduce(add, (mul(p, s) for p, s in zip(places, strides, strict=True)), start)
    mask = _mask(read)
    if mask is None:
        return Rows(base, copy.shape, copy.element, value_of(origin), row)
    ends = [r.get(v) for v in owner_op(mask).operands]
    sizes = [tile[i] for i in sorted(range(len(dims)), key=lambda i: dims[i])]
    tests = [arith_d.cmpi(_I.sge, end, index(n)) for end, n in zip(ends, sizes, strict=True)]

    def copied() -> list[Value]:
        fill()
        memory, at, _ = _lies(copy.memref)
        return [memory, at, index(copy.stride(len(copy.shape) - 2))]

    kinds = [base.type, row.type, row.type]
    found = any_of(reduce(arith_d.andi, tests), kinds, lambda: [base, value_of(origin), row], copied)
    return Rows(found[0], copy.shape, copy.element, found[1], found[2])


def _mask(read: Operation) -> Value | None:
    has = list(ir.DenseI32ArrayAttr(read.attributes["operandSegmentSizes"]))[-1]
    return read.operands[len(read.operands) - 1] if has else None


def _lies(memref: Value) -> tuple[Value, Value, list[Value]]:
    """Where a buffer begins: a memref of its first element, the offset in it, and the strides."""
    kind, i = ir.MemRefType(memref.type), ir.IndexType.get()
    first = ir.MemRefType.get([], kind.element_type)
    parts = list(ir.Operation.create("memref.extract_strided_metadata", operands=[memref],
                                     results=[first, *[i] * (1 + 2 * kind.rank)]).results)
    return parts[0], parts[1], parts[2 + kind.rank:]
