"""Masks of accesses as sizes of AMD buffers: what lies behind a row limit lies behind the end of the buffer.

    scf.if (row < %rows and %col < 32) { vector.load %x[%tile + row, %col] }      of memref<?x64xf16>
    ->
    a buffer from row %tile on, of %rows * 128 bytes: no comparison and no choice of an offset in any lane

A comparison is a row limit where its left side is what a lane adds to one index of the access, its right side is the
same in all lanes and known to be small (the scalar unit has no minimum of 64 bits), further indices stay inside a row,
and lanes add nothing to those before. A comparison that is the same in all lanes makes an empty buffer. One that always
holds is dropped. What remains of a mask is for the lanes.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from xcc._mlir import Operation, Value, arith_d, ir, maker, owner_op
from xcc.passes.gpu.index.address import LIMIT, Address, lane_terms, linear_terms, same_in_workgroup
from xcc.passes.gpu.index.upper_bounds import largest
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import conjunction

SIGNED, UNSIGNED = 2, 6     # arith.cmpi: slt, ult


class Bounds:
    """What a mask asks of an access.

    Attributes:
        limit: (rows, elements of a row): the buffer's size; None: no limit.
        all: conditions that are the same in all lanes.
        lanes: conditions that are not.
    """

    def __init__(self) -> None:
        self.limit: tuple[Value, int] | None = None
        self.all: list[Value] = []
        self.lanes: list[Value] = []

    def lane_mask(self) -> Value | None:
        """The conditions of lanes as one, built at the insertion point; None without any."""
        return conjunction(self.lanes)

    def valid_bytes(self, size: int, most: int, known: dict[tuple[Value, int, int], Value]) -> Value:
        """Bytes of the buffer, at most `most`, for elements of `size` bytes; built at the insertion point.

        known: sizes by limit, each computed where its limit is.
        """
        i32 = ir.IntegerType.get_signless(32)
        end = arith_d.constant(i32, most)
        if self.limit is not None:
            if (*self.limit, size) not in known:
                with ir.InsertionPoint.after(maker(self.limit[0])):
                    known[(*self.limit, size)] = _row_bytes(self.limit[0], self.limit[1] * size)
            end = known[(*self.limit, size)]
        if self.all:
            end = _scalar(arith_d.select(conjunction(self.all), end, arith_d.constant(i32, 0)))
        return arith_d.extui(ir.IntegerType.get_signless(64), end)


def _row_bytes(rows: Value, row: int) -> Value:
    """Bytes of `rows` rows of `row` bytes."""
    i32 = ir.IntegerType.get_signless(32)
    count = arith_d.index_cast(i32, rows) if isinstance(rows.type, ir.IndexType) else rows
    return _scalar(arith_d.muli(arith_d.maxsi(count, arith_d.constant(i32, 0)), arith_d.constant(i32, row)))


def _scalar(value: Value) -> Value:
    """`value`, which is the same in all lanes, where LLVM took the vector unit for any of it."""
    return ir.Operation.create("rocdl.readfirstlane", results=[value.type], operands=[value]).result


def bounds(mask: Value, address: Address, width: int, size: int, known: dict[Any, int]) -> Bounds:
    """What `mask` asks of the access of `width` elements of `size` bytes at `address`."""
    out = Bounds()
    for condition in _conditions(mask):
        if _always(condition, known):
            continue
        row = _row(condition, address, width, known) if out.limit is None else None
        rows = owner_op(condition).operands[1] if row is not None else None
        most = _most_rows(rows) if rows is not None else None
        if row is not None and rows is not None and most is not None and most * row * size < LIMIT:
            out.limit = (rows, row)
        elif same_in_workgroup(condition, known):
            out.all.append(condition)
        else:
            out.lanes.append(condition)
    return out


def _conditions(mask: Value) -> list[Value]:
    op = maker(mask)
    if op is not None and op.name == "arith.andi":
        return [c for v in op.operands for c in _conditions(v)]
    return [mask]


def _is_less(op: Operation | None, *predicates: int) -> TypeGuard[Operation]:
    return op is not None and op.name == "arith.cmpi" and op.attributes["predicate"].value in predicates


def _always(condition: Value, known: dict[Any, int]) -> bool:
    op = maker(condition)
    if int_constant(condition) is not None:
        return bool(int_constant(condition))
    if not _is_less(op, SIGNED, UNSIGNED):
        return False
    most, limit = largest(op.operands[0], known), int_constant(op.operands[1])
    return most is not None and limit is not None and most < limit


def _most_rows(value: Value) -> int | None:
    """An upper bound of the limit `value`: it is a constant, or the size of a tile, min(start + size, end) - start."""
    while (op := maker(value)) is not None and op.name == "arith.index_cast":
        value = op.operands[0]
    if op is None or op.name != "arith.subi":
        return int_constant(value)
    end, start = maker(op.operands[0]), op.operands[1]
    for v in end.operands if end is not None and end.name == "arith.minsi" else ():
        sides = list(added.operands) if (added := maker(v, "arith.addi")) is not None else []
        if start in sides:
            return int_constant(sides[1 - sides.index(start)])
    return None


def _row(condition: Value, address: Address, width: int, known: dict[Any, int]) -> int | None:
    """Elements of a row, where `condition` limits the rows that `address` has; None for any other condition."""
    op = maker(condition)
    if not _is_less(op, SIGNED) or not same_in_workgroup(op.operands[1], known):
        return None
    compared = {v: f for v, f in linear_terms(op.operands[0]).items() if f}
    if compared != lane_terms(compared, known):
        return None
    for d, part in enumerate(address.dims):
        if part.terms != compared:
            if part.terms and (part.stride or set(part.terms) != {None}):
                return None     # lanes reach further rows by an index before
            continue
        inner = address.dims[d + 1:]
        inside = all(p.reach >= 0 for p in inner) and sum(p.reach * p.stride for p in inner) < part.stride
        return part.stride if part.reach >= 0 and inside and part.stride % width == 0 else None
    return None
