"""AMD buffer instructions in place of branches and of 64-bit addresses in every lane.

    %v = scf.if %m { %l = vector.load %x[%row, %k + %lane * 8] } else { zeros }
    ->
    %b = amdgpu.fat_raw_buffer_cast (%x from the workgroup's own element on)     a scalar address, 64 bits wide
    %v = vector.load %b[select(%m, %lane * 8, past the end)]                      32 bits a lane

The hardware compares a lane's offset with the buffer's size: loads past it give zeros, stores past it do nothing. Where
a mask only limits rows, the buffer ends behind the last of them (`buffer_bounds`). The address is split into what is
equal in the whole workgroup, which the scalar unit adds to the base, and what differs by lane, which must be known to
stay below 2 GiB: the strides that a lane moves along are static, or the whole array is smaller than that. Else what is
equal in a wave goes to the scalar unit: rows of unknown length, one or several a wave. Other accesses stay as they are.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Block, Module, Operation, Value, arith_d, ir, maker, memref_d, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.address import WAVE, Address, address_of, is_memory_access
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.vendor.buffer_bounds import Bounds, bounds

END = 1 << 31           # bytes: an offset that is behind every buffer
SPACE = "#amdgpu.address_space<fat_raw_buffer>"
MOVABLE = ("arith.", "affine.apply", "vector.extract", "vector.shuffle", "vector.from_elements", "vector.broadcast",
           "memref.dim")


@register_pass
class BufferAccesses(Pass):
    """Loads and stores of global memory by lane become AMD buffer accesses, their branches comparisons of offsets."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for target in module.body.operations:
            if target.operation.name == "gpu.module":
                for kernel in target.regions[0].blocks[0].operations:
                    if kernel.operation.name == "gpu.func":
                        _Kernel(kernel.operation, ctx.chip.warp).run()


class _Kernel:
    def __init__(self, kernel: Operation, lanes: int) -> None:
        self.entry = kernel.regions[0].blocks[0]
        # of address_of, by value: nothing is erased before the end; what a workgroup shares, and what a wave does
        self.known: tuple[dict[tuple[str, Value], int], dict[str, int]] = ({}, {WAVE: lanes})
        self.dead: list[Operation] = []
        self.sizes: dict[tuple[Value, int, int], Value] = {}     # of buffers, by row limit and bytes of a row

    def run(self) -> None:
        self.block(self.entry)
        for op in self.dead:
            op.erase()

    def block(self, block: Block) -> None:
        for op in [o.operation for o in block.operations]:
            if is_memory_access(op):
                self.plain(op)
            elif op.name != "scf.if" or not self.masked(op):
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)

    def plain(self, op: Operation) -> None:
        """An access without a mask."""
        address, _ = self.address(op)
        if address is not None:
            with op.location, ir.InsertionPoint(op):
                self.replace(op, address, Bounds())

    def address(self, op: Operation) -> tuple[Address | None, dict[Any, int]]:
        """The address of an access, and what is known of values in it."""
        found = ((address_of(op, self.entry, known), known) for known in self.known)
        return next((pair for pair in found if pair[0] is not None), (None, {}))

    def masked(self, op: Operation) -> bool:
        """scf.if of one access, or of loads: they alone, their offsets past the end where the mask is off. False for
        others."""
        accesses = _only_accesses(op)
        found = [self.address(access) for access in accesses]
        if not accesses or any(address is None for address, _ in found):
            return False
        for inner in [o.operation for o in op.regions[0].blocks[0].operations][:-1]:
            inner.move_before(op)
        otherwise: list[Value] = []
        if op.results:
            other = op.regions[1].blocks[0]
            for inner in [o.operation for o in other.operations][:-1]:
                inner.move_before(op)
            otherwise = list(list(other.operations)[-1].operands)
        values = list(list(op.regions[0].blocks[0].operations)[-1].operands)
        with op.location, ir.InsertionPoint(op):
            for access, (address, known) in zip(accesses, found, strict=True):
                assert address is not None
                made = self.replace(access, address, self.mask(op.operands[0], access, address, known))
                values = [made if made is not None and v == access.results[0] else v for v in values]
            for result, value, other_value in zip(op.results, values, otherwise, strict=True):
                if not _is_zero(other_value):
                    value = arith_d.select(op.operands[0], value, other_value)
                result.replace_all_uses_with(value)
        self.dead.append(op)
        return True

    def mask(self, value: Value, access: Operation, address: Address, known: dict[Any, int]) -> Bounds:
        size = element_bytes(ir.MemRefType(address.memref.type).element_type)
        return bounds(value, address, _width(access), size, known)

    def replace(self, op: Operation, address: Address, mask: Bounds) -> Value | None:
        """The access `op` through a buffer at the insertion point; returns what it loads."""
        element = ir.MemRefType(address.memref.type).element_type
        size = element_bytes(element)
        count = END // size
        flat = ir.MemRefType.get([count], element, ir.Attribute.parse("strided<[1], offset: ?>"))
        buffer = ir.MemRefType.get([count], element, memory_space=ir.Attribute.parse(SPACE))
        base = memref_d.ReinterpretCastOp(flat, address.memref, [address.uniform()], [], [],
                                          [ir.ShapedType.get_dynamic_size()], [count], [1]).result
        valid = mask.valid_bytes(size, END - 1, self.sizes)
        cast = ir.Operation.create(
            "amdgpu.fat_raw_buffer_cast", results=[buffer], operands=[base, valid],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0]), "resetOffset": ir.UnitAttr.get(),
                        "boundsCheck": ir.BoolAttr.get(True)}).result
        offset = address.lane(mask.lane_mask(), count)
        aligned = op.attributes["alignment"] if "alignment" in op.attributes else None
        if op.name in ("vector.store", "memref.store"):
            if op.name == "vector.store":
                vector_d.store(op.operands[0], cast, [offset], alignment=aligned and aligned.value)
            else:
                memref_d.store(op.operands[0], cast, [offset])
            self.dead.append(op)
            return None
        if op.name == "vector.load":
            new = vector_d.load(op.results[0].type, cast, [offset], alignment=aligned and aligned.value)
        else:
            new = memref_d.load(cast, [offset])
        op.results[0].replace_all_uses_with(new)
        self.dead.append(op)
        return new


def _width(op: Operation) -> int:
    """Elements of an access."""
    value = op.operands[0] if op.name.endswith(".store") else op.results[0]
    return int(ir.VectorType(value.type).shape[0]) if isinstance(value.type, ir.VectorType) else 1


def _only_accesses(op: Operation) -> list[Operation]:
    """The one access of an scf.if that computes nothing else, or its loads, and it gives what they load; none for any
    other. Stores of several rows keep their branch: in it, their offsets differ by constants."""
    then = [o.operation for o in op.regions[0].blocks[0].operations]
    accesses = [o for o in then if is_memory_access(o)]
    other = [o.operation for o in op.regions[1].blocks[0].operations] if len(op.regions[1].blocks) else []
    alone = all(o in accesses or o.name.startswith(MOVABLE) for o in then[:-1]) \
        and all(o.name.startswith(MOVABLE) for o in other[:-1])
    loads = [o.results[0] for o in accesses if o.name.endswith(".load")]
    if not alone or len(loads) < len(accesses) and (len(accesses) > 1 or other[:-1]):
        return []
    return accesses if all(v in loads for v in then[-1].operands) else []


def _is_zero(value: Value) -> bool:
    op = maker(value)
    if op is not None and op.name == "vector.broadcast":
        return _is_zero(op.operands[0])
    if op is not None and op.name == "vector.from_elements":
        return all(_is_zero(v) for v in op.operands)
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return bool(attribute.is_splat and _no_bits(ir.DenseElementsAttr(attribute).get_splat_value().value))
    return _no_bits(attribute.value)


def _no_bits(value: float) -> bool:
    return bool(value == 0 and not str(value).startswith("-"))
