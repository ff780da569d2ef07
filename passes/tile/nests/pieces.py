"""Pieces of block values: some neighbours along one dim as a machine vector, or one element as a scalar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir, owner_op
from xcc.diagnostics import CompilerBug
from xcc.passes.shared.regions import either
from xcc.passes.shared.values import index, is_elementwise, is_vector, op, splat, splat_constant, vec, with_operands
from xcc.passes.tile.lowering.views import add, mul, value_of
from xcc.passes.tile.nests.choice import dims_of
from xcc.passes.tile.nests.kept import Coords, gathered, stepped
from xcc.passes.tile.nests.lines import compared_line, first_lanes, run_along

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

_I = arith_d.CmpIPredicate


class Pieces:
    """Computes pieces of the values of a program; in one place a piece is computed once."""

    def __init__(self, r: Retiler) -> None:
        self.r = r
        self.made: dict[tuple[Value, tuple[Value | int, ...], int, int], Value] = {}

    def of(self, value: Value, coords: Coords, lane: int, width: int) -> Value:
        """`width` neighbours along dim `lane` from `coords` on; the element at `coords` where width is 0."""
        if not is_vector(value):
            scalar = self.r.get(value)
            return splat(scalar, width) if width else scalar
        key = (value, coords, lane if width else 0, width)
        if key not in self.made:
            self.made[key] = self._make(value, coords, lane, width)
            if value in self.r.joined:
                self.r.joined[value].store(self.made[key], coords, lane)
        return self.made[key]

    def _make(self, value: Value, coords: Coords, lane: int, width: int) -> Value:
        if value in self.r.kept:
            return self.r.kept[value].load(coords, lane, width)
        source = owner_op(value)
        name = source.name
        element = ir.VectorType(value.type).element_type
        if name == "arith.constant":
            return self._constant(source, element, width)
        if name == "vector.step":
            return arith_d.addi(stepped(width, 1), splat(value_of(coords[0]), width)) if width else value_of(coords[0])
        if name in ("vector.create_mask", "vector.constant_mask"):
            return self._mask(source, coords, lane, width)
        if name == "vector.broadcast":
            return self._broadcast(source, coords, lane, width)
        if name == "vector.transpose":
            order = list(ir.DenseI64ArrayAttr(source.attributes["permutation"]))
            there = tuple(coords[order.index(d)] for d in range(len(order)))
            return self.of(source.operands[0], there, order[lane], width)
        if name == "vector.shape_cast":
            return self._reshaped(source, coords, lane, width)
        if name == "vector.transfer_read":
            return self._read(source, coords, lane, width)
        if name == "vector.scan":
            return self.r.scans[source].of(self.of(source.operands[0], coords, lane, width))
        if name == "vector.gather":
            return self._gather(source, coords, lane, width)
        if is_elementwise(source):
            mask = compared_line(self, source, coords, lane, width)
            if mask is not None:
                return mask
            operands = [self.of(v, coords, lane, width) for v in source.operands]
            if name == "arith.select" and width and not is_vector(source.operands[0]):
                operands[0] = self.r.get(source.operands[0])
            elements = [ir.VectorType(r.type).element_type for r in source.results]
            kinds = [vec(width, e) if width else e for e in elements]
            return with_operands(source, operands, kinds).results[list(source.results).index(value)]
        raise CompilerBug(f"retile: no rule for '{name}'")

    @staticmethod
    def _constant(source: Operation, element: Type, width: int) -> Value:
        data = ir.DenseElementsAttr(source.attributes["value"])
        one = data.get_splat_value()
        kind = vec(width, element) if width else element
        attribute = ir.DenseElementsAttr.get_splat(kind, one) if width else one
        return op("arith.constant", [kind], [], value=attribute)

    def _mask(self, source: Operation, coords: Coords, lane: int, width: int) -> Value:
        if source.name == "vector.create_mask":
            ends = [self.r.get(v) for v in source.operands]
        else:
            ends = list(ir.DenseI64ArrayAttr(source.attributes["mask_dim_sizes"]))
        known = self.r.whole and source.name == "vector.create_mask"
        if known or self._whole(source, ends, coords, lane, width):
            bit = ir.IntegerType.get_signless(1)
            return splat_constant(vec(width, bit) if width else bit, 1)
        there: Any = None
        for d, end in enumerate(ends):
            if d == lane and width:
                continue
            test = arith_d.cmpi(_I.slt, value_of(coords[d]), value_of(end))
            there = test if there is None else arith_d.andi(there, test)
        if not width:
            return there
        left = arith_d.subi(value_of(ends[lane]), value_of(coords[lane]))
        if there is not None:
            left = arith_d.select(there, left, index(0))
        return first_lanes(left, width)

    def _whole(self, source: Operation, ends: list[Value], coords: Coords, lane: int, width: int) -> bool:
        """Whether the loop around ends where the mask does."""
        loop = self.r.wholes.open
        if loop is None:
            return False
        return all([loop.let(coords[d], width if d == lane and width else 1, end) for d, end in enumerate(ends)])

    def _broadcast(self, source: Operation, coords: Coords, lane: int, width: int) -> Value:
        operand = source.operands[0]
        if not is_vector(operand):
            return self.of(operand, (), 0, width)
        shape = ir.VectorType(operand.type).shape
        lead = len(coords) - len(shape)
        there = tuple(0 if n == 1 else c for n, c in zip(shape, coords[lead:], strict=True))
        if width and (lane < lead or shape[lane - lead] == 1):
            return splat(self.of(operand, there, 0, 0), width)
        return self.of(operand, there, lane - lead if width else 0, width)

    def _reshaped(self, source: Operation, coords: Coords, lane: int, width: int) -> Value:
        """Dims of size 1 added or dropped."""
        have, want = (list(ir.VectorType(v.type).shape) for v in (source.operands[0], source.results[0]))
        left = [d for d, n in enumerate(want) if n > 1]
        there: list[Value | int] = []
        at = 0
        for d, n in enumerate(have):
            if n == 1:
                there.append(0)
                continue
            if left[0] == lane:
                at = d
            there.append(coords[left.pop(0)])
        if width and want[lane] == 1:       # one lane
            return splat(self.of(source.operands[0], tuple(there), 0, 0), width)
        return self.of(source.operands[0], tuple(there), at, width)

    def _read(self, source: Operation, coords: Coords, lane: int, width: int) -> Value:
        memref, places, dims = transfer_place(self.r, source, coords, 1)
        pad = self.r.get(source.operands[1 + len(places)])
        mask = transfer_mask(self, source, coords, lane, width, dims)
        element = ir.VectorType(source.results[0].type).element_type
        if not width:
            return _guarded_load(mask, memref, places, pad, element)
        if dims[lane] == len(places) - 1:
            if mask is None:
                return op("vector.load", [vec(width, element)], [memref, *places])
            return op("vector.maskedload", [vec(width, element)], [memref, *places, mask, splat(pad, width)])
        stride = memref_stride(memref, dims[lane])
        return gathered(memref, places, stepped(width, stride), width, element, mask, splat(pad, width))

    def _gather(self, source: Operation, coords: Coords, lane: int, width: int) -> Value:
        memref, start, places, mask, other = source.operands
        element = ir.VectorType(source.results[0].type).element_type
        line, first = self.r.get(memref), self.r.get(start)
        if not width:
            at = arith_d.addi(first, self.of(places, coords, lane, 0))
            return _guarded_load(self.of(mask, coords, lane, 0), line, [at], self.of(other, coords, lane, 0), element)
        chosen, rest = self.of(mask, coords, lane, width), self.of(other, coords, lane, width)
        if run_along(self.r, places, lane) == 1:
            at = arith_d.addi(first, self.of(places, coords, lane, 0))
            return op("vector.maskedload", [vec(width, element)], [line, at, chosen, rest])
        return gathered(line, [first], self.of(places, coords, lane, width), width, element, chosen, rest)


def _guarded_load(condition: Any, memref: Value, places: list[Any], other: Any, element: Type) -> Any:
    if condition is None:
        return op("memref.load", [element], [memref, *places])
    return either(condition, element, lambda: op("memref.load", [element], [memref, *places]), lambda: other)


def transfer_place(r: Retiler, source: Operation, coords: Coords, first: int) -> tuple[Value, list[Value], list[int]]:
    """(memref, the place of the element at `coords`, the memref's dim that each dim walks) of a transfer whose indices
    are the operands from `first` on."""
    memref = r.get(source.operands[first - 1])
    places: list[Value] = [r.get(v) for v in list(source.operands)[first:first + ir.MemRefType(memref.type).rank]]
    dims = dims_of(source)
    for c, d in zip(coords, dims, strict=True):
        places[d] = value_of(add(places[d], c))
    return memref, places, dims


def transfer_mask(pieces: Pieces, source: Operation, coords: Coords, lane: int, width: int,
                  dims: list[int]) -> Value | None:
    """The mask of a transfer there, None where it has none. Its dims are in the memory's order."""
    if not list(ir.DenseI32ArrayAttr(source.attributes["operandSegmentSizes"]))[-1]:
        return None
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    mask = source.operands[len(source.operands) - 1]
    return pieces.of(mask, tuple(coords[i] for i in order), order.index(lane) if width else 0, width)


def memref_stride(memref: Value, dim: int) -> int:
    """Elements from one of a contiguous memref's dim `dim` to the next."""
    kind = ir.MemRefType(memref.type)
    total: Any = 1
    for d in range(dim + 1, kind.rank):
        n = kind.shape[d]
        total = mul(total, n if n >= 0 else op("memref.dim", [ir.IndexType.get()], [memref, index(d)]))
    return total
