"""A vector.transfer_read or transfer_write, decoded: where its elements lie and which are masked."""

from __future__ import annotations

from typing import Any

from xcc._mlir import AffineExpr, AffineMap, Attribute, Operation, Type, Value, ir, maker
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.transposes import concatenated
from xcc.passes.shared.values import index, op, pack, with_operands
from xcc.passes.vector.unroll.group_tiles import read_group, widened_mask
from xcc.passes.vector.unroll.tiles import Key, MaskTile, Tile
from xcc.passes.vector.unroll.unroller import Unroller

COLUMNS = 4       # elements at most of rows of which whole vectors are read for a column


class Transfer:
    """One transfer_read or transfer_write, decoded. `dims[v]` is the memory dimension of vector dim v, or None."""

    def __init__(self, u: Unroller, o: Operation, memory: Value, first_index: int, vector_type: Type,
                 mask: Value | None) -> None:
        self.u = u
        self.memory = memory
        rank = ir.MemRefType(memory.type).rank
        self.rank = rank
        strides, _ = ir.MemRefType(memory.type).get_strides_and_offset()
        self.contiguous = not rank or strides[-1] == 1
        self.indices = list(o.operands)[first_index:first_index + rank]
        t = ir.VectorType(vector_type)
        self.shape, self.elem = tuple(t.shape), t.element_type
        self.dims = [_position(r) for r in _affine_map(o.attributes["permutation_map"]).results]
        self.mask: Tile | None = u.tiles[mask] if mask is not None else None
        if isinstance(self.mask, MaskTile) and self.mask.full():
            self.mask = None
        used = sorted(d for d in self.dims if d is not None)
        self.mask_order = [self.dims.index(d) for d in used]

    def permuted(self, order: list[int]) -> Transfer:
        """The same transfer with the vector's dimensions in another order."""
        out = object.__new__(Transfer)
        out.__dict__.update(self.__dict__)
        out.shape = tuple(self.shape[i] for i in order)
        out.dims = [self.dims[i] for i in order]
        used = sorted(d for d in out.dims if d is not None)
        out.mask_order = [out.dims.index(d) for d in used]
        return out

    def straight(self) -> bool:
        return bool(self.dims) and self.contiguous and self.dims[-1] == self.rank - 1

    def memory_order(self) -> list[int] | None:
        """An order of the vector's dims that ends with the contiguous one, if there is one worth a transpose."""
        if self.rank - 1 not in self.dims or not self.contiguous:
            return None
        inner = self.dims.index(self.rank - 1)
        if self.shape[inner] < 2:
            return None
        return [i for i in range(len(self.dims)) if i != inner] + [inner]

    def tile(self) -> Tile:
        return Tile(self.shape, self.elem, self.u.lanes)

    def mask_lane(self, at: Key) -> Any:
        assert self.mask is not None
        return self.mask.lane(tuple(at[i] for i in self.mask_order))

    def mask_chunk(self, key: Key, width: int) -> Value:
        """The mask of one chunk of data, whatever way the mask's own lanes run."""
        assert self.mask is not None
        if self.mask_order and self.mask_order[-1] == len(self.shape) - 1:
            return self.mask.chunk(tuple(key[i] for i in self.mask_order))
        first = key[-1] * self.u.lanes
        lanes = [self.mask_lane(key[:-1] + (first + i,)) for i in range(width)]
        return pack(lanes)

    def address(self, at: Key) -> list[Value]:
        """The memory indices of the element at full vector coordinates `at`."""
        out = list(self.indices)
        for v, d in enumerate(self.dims):
            if d is not None and at[v]:
                out[d] = op("arith.addi", [out[d].type], [out[d], index(at[v])])
        return out

    def masked_address(self, at: Key) -> list[Value]:
        """As `address`; a row that is wholly masked is the first one instead.

        No lane of it is touched, but where it lies in a page that the program does not have, the processor takes
        hundreds of cycles to find that out.
        """
        out = list(self.indices)
        for v, d in enumerate(self.dims):
            if d is None or not at[v]:
                continue
            on = self.mask.within(self.mask_order.index(v), at[v]) \
                if isinstance(self.mask, MaskTile) and v + 1 < len(self.dims) else None
            step = index(at[v]) if on is None else op("arith.select", [out[d].type], [on, index(at[v]), index(0)])
            out[d] = op("arith.addi", [out[d].type], [out[d], step])
        return out

    def chunk_start(self, key: Key) -> Key:
        return key[:-1] + (key[-1] * self.u.lanes,) if self.shape else ()

    def load_scalar(self, at: Key, padding: Value) -> Value:
        """One element, or `padding` where the mask is off; never reads outside the buffer."""
        address = self.address(at)
        if self.mask is None:
            return op("memref.load", [self.elem], [self.memory, *address])
        on = self.mask_lane(at)
        zero = index(0)
        safe = [op("arith.select", [i.type], [on, i, zero]) for i in address]
        loaded = op("memref.load", [self.elem], [self.memory, *safe])
        return op("arith.select", [self.elem], [on, loaded, padding])

    def short_rows(self) -> bool:
        """Whether rows of a tile lie one after the other and are shorter than a vector; they may be masked whole."""
        if not self.straight() or len(self.dims) < 2 or self.dims[-2] != self.rank - 2:
            return False
        strides, _ = ir.MemRefType(self.memory.type).get_strides_and_offset()
        rows, row = self.shape[-2:]
        if strides[-2] != row or row >= self.u.lanes or isinstance(self.elem, ir.BF16Type) and row % 2:
            return False        # of bf16, LLVM dies of some odd numbers
        return self.mask is None or isinstance(self.mask, MaskTile) and self.mask.bounds[-1] == row \
            and self.mask_order == list(range(len(self.shape))) and rows % min(rows, self.u.lanes) == 0

    def around_column(self) -> Transfer | None:
        """The transfer of `short_rows` of which this one has a column; None where it has none."""
        row = ir.MemRefType(self.memory.type).shape[-1] if self.rank > 1 else 1
        if not 1 < row <= COLUMNS or not self.dims or self.dims[-1] != self.rank - 2 or self.rank - 1 in self.dims \
                or int_constant(self.indices[-1]) is None:
            return None
        out = self.permuted(list(range(len(self.dims))))
        out.shape, out.dims = (*self.shape, row), [*self.dims, self.rank - 1]
        out.indices = [*self.indices[:-1], index(0)]
        out.mask_order = [*self.mask_order, len(self.dims)]
        if isinstance(self.mask, MaskTile):
            out.mask = MaskTile((*self.mask.shape, row), [*self.mask.bounds, row], self.u.lanes, self.mask.at)
        return out if out.short_rows() else None

    def apart(self) -> int:
        """How far apart the elements of a view of one dim lie, where a few whole vectors hold those of one; else 1."""
        strides, _ = ir.MemRefType(self.memory.type).get_strides_and_offset()
        if self.rank != 1 or self.dims != [0] or not 1 < strides[0] <= COLUMNS or self.shape[0] % self.u.lanes \
                or maker(self.memory, "memref.reinterpret_cast") is None \
                or not (self.mask is None or isinstance(self.mask, MaskTile)):
            return 1
        return int(strides[0])

    def together(self, step: int) -> Value:
        """The memory of `apart` with what lies between the elements."""
        view = maker(self.memory)
        assert view is not None
        size, offset = self.shape[0] * step, ir.MemRefType(self.memory.type).get_strides_and_offset()[1]
        kind = ir.MemRefType.get([size], self.elem, layout=ir.StridedLayoutAttr.get(offset, [1]))
        numbers = {"static_sizes": [size], "static_strides": [1]}
        return with_operands(view, list(view.operands), [kind], dict(view.attributes.items()) | {
            name: ir.DenseI64ArrayAttr.get(values) for name, values in numbers.items()}).result

    def mask_of_rows(self) -> MaskTile | None:
        """The mask of `short_rows` with these one after the other in its last dim."""
        if self.mask is None:
            return None
        assert isinstance(self.mask, MaskTile)
        *outer, rows, row = self.mask.shape
        *bounds, count, _ = self.mask.bounds
        with self.mask.at:
            last = count * row if isinstance(count, int) else op("arith.muli", [count.type], [count, index(row)])
        return MaskTile((*outer, rows * row), [*bounds, last], min(rows, self.u.lanes), self.mask.at)

    def whole_rows(self) -> int:
        """How many of `short_rows` are one access where none is masked: as many as a vector has, or all of them where
        that is no whole number. 1: each row is its own."""
        if self.mask is not None or not self.short_rows():
            return 1
        row, lanes = self.shape[-1], self.u.lanes
        return lanes // row if lanes % row == 0 else self.shape[-2]

    def grouped(self) -> bool:
        """Whether whole groups, the last dim of the vector, lie in memory one after the other, masked along one dim."""
        if not self.straight() or None in self.dims:
            return False
        strides, _ = ir.MemRefType(self.memory.type).get_strides_and_offset()
        lane = self.dims[-2] if len(self.dims) > 1 else None
        self.adjacent = lane is not None and strides[lane] == self.shape[-1]
        return self.mask is None or (isinstance(self.mask, MaskTile) and lane is not None and self.adjacent
                                     and self._masks_lanes(lane))

    def _masks_lanes(self, lane: int) -> bool:
        assert isinstance(self.mask, MaskTile)
        at = [self.mask_order.index(v) for v in range(len(self.dims)) if self.dims[v] != lane]
        bounds, shape = self.mask.bounds, self.mask.shape
        return all(isinstance(bound := bounds[i], int) and bound >= shape[i] for i in at)

    def load_group(self, at: Key) -> Value:
        """The group at outer coordinates `at`."""
        return read_group(self.memory, self.address((*at, 0)), self.shape[-1])

    def load_groups(self, at: Key, width: int) -> Value:
        """`width` groups from number at[-1] * lanes of the last outer dim on."""
        first = (*at[:-1], at[-1] * self.u.lanes)
        if not self.adjacent:
            return concatenated([self.load_group((*first[:-1], first[-1] + i)) for i in range(width)])
        mask = None
        if self.mask is not None:
            lanes = [self.mask_lane((*first[:-1], first[-1] + i, 0)) for i in range(width)]
            mask = widened_mask(pack(lanes), self.shape[-1])
        return read_group(self.memory, self.address((*first, 0)), width * self.shape[-1], mask)


def _affine_map(attr: Attribute) -> AffineMap:
    return ir.AffineMapAttr(attr).value


def _position(expr: AffineExpr) -> int | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return None
    return int(ir.AffineDimExpr(expr).position)
