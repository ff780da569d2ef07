"""Masked accesses as one instruction with a predicate, where they are 16 bytes wide.

    scf.if %m {                                    llvm.inline_asm "@$0 st.global.v4.b32 [$1], {$2, ...};" %m, ...
      vector.store %v, %x[%i]               ->
    }

Likewise ``scf.if`` with a load, whose result without the mask is what the instruction leaves as it is. Behind a branch,
LLVM puts what only the access needs behind it, too, and nothing is ordered across: each store of a row waits for what
it is computed of, and what is read late is read early or holds registers. ptxas orders straight code across all of a
thread's accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xcc._mlir import Block, Module, Operation, Type, Value, arith_d, ir, memref_d, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.vendor.inline_asm import inline_asm
from xcc.passes.walk import ops_where

__all__ = ["PredicatedAccesses"]

WIDE, WORDS = 16, 4         # bytes and words of an access
STORE = "@$0 st.global.v4.b32 [$1], {$2, $3, $4, $5};"
LOAD = "@$4 ld.global.v4.b32 {$0, $1, $2, $3}, [$5];"
MOVABLE = ("arith.", "memref.", "vector.", "builtin.unrealized_conversion_cast")
ACCESSES = ("vector.load", "vector.store")


@register_pass
@dataclass(frozen=True)
class PredicatedAccesses(Pass):
    """Takes the branches away from wide accesses to global memory."""

    name: ClassVar[str] = "predicated-accesses"

    def run(self, module: Module, ctx: PassContext) -> None:
        with module.context:
            for branch in ops_where(module, lambda op: op.name == "scf.if"):
                access = _only_access(branch)
                if access is not None:
                    with branch.location:
                        _predicate(branch, access)


def _operations(branch: Operation) -> list[Operation]:
    """Of both sides, without what ends them."""
    return [op.operation for region in branch.regions for block in region.blocks for op in list(block.operations)[:-1]]


def _only_access(branch: Operation) -> Operation | None:
    """The wide access to global memory which is all that an scf.if does; None for others."""
    found = _operations(branch)
    accesses = [op for op in found if op.name in ACCESSES]
    then = branch.regions[0].blocks[0]
    if len(accesses) != 1 or accesses[0].block != then or not all(
            op == accesses[0] or op.name.startswith(MOVABLE) and not op.name.endswith((".load", ".store"))
            for op in found):
        return None
    access = accesses[0]
    if list(_given(then)) != list(access.results):
        return None
    value, place = (access.results[0], access.operands[0]) if len(access.results) else list(access.operands)[:2]
    kind, memory = ir.VectorType(value.type), ir.MemRefType(place.type)
    aligned = ir.IntegerAttr(access.attributes["alignment"]).value if "alignment" in access.attributes else 1
    wide = kind.rank == 1 and kind.shape[0] * element_bytes(kind.element_type) == WIDE and aligned % WIDE == 0
    strides, offset = memory.get_strides_and_offset()
    known = offset == 0 and ir.ShapedType.get_dynamic_stride_or_offset() not in strides
    return access if wide and known and memory.memory_space is None else None


def _given(block: Block) -> Sequence[Value]:
    """What a side of an scf.if ends with."""
    return list(list(block.operations)[-1].operands)


def _predicate(branch: Operation, access: Operation) -> None:
    for op in _operations(branch):
        op.move_before(branch)
    mask = branch.operands[0]
    with ir.InsertionPoint(branch):
        if access.name == "vector.store":
            value, *place = access.operands
            inline_asm(STORE, "b,l,r,r,r,r,~{memory}", operands=[mask, _pointer(place), *_words(value)])
        else:
            other, = _given(branch.regions[1].blocks[0])
            struct = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>")
            loaded = inline_asm(LOAD, "=r,=r,=r,=r,b,l,0,1,2,3,~{memory}", [struct],
                                [mask, _pointer(list(access.operands)), *_words(other)])
            parts = [ir.Operation.create("llvm.extractvalue", [_i32()], [loaded], {
                "position": ir.DenseI64ArrayAttr.get([n])}).results[0] for n in range(WORDS)]
            whole = vector_d.from_elements(ir.VectorType.get([WORDS], _i32()), parts)
            branch.results[0].replace_all_uses_with(vector_d.bitcast(other.type, whole))
    branch.erase()
    access.erase()


def _pointer(place: Sequence[Value]) -> Value:
    """The address of an access, for `place`: the memory and the indices."""
    memory, *indices = place
    kind, index = ir.MemRefType(memory.type), ir.IndexType.get()
    at = memref_d.extract_aligned_pointer_as_index(memory)
    for i, stride in zip(indices, kind.get_strides_and_offset()[0], strict=True):
        step = arith_d.constant(index, stride * element_bytes(kind.element_type))
        at = arith_d.addi(at, arith_d.muli(i, step))
    whole = arith_d.index_cast(ir.IntegerType.get_signless(64), at)
    return ir.Operation.create("llvm.inttoptr", [ir.Type.parse("!llvm.ptr<1>")], [whole]).results[0]


def _words(value: Value) -> list[Value]:
    whole = vector_d.bitcast(ir.VectorType.get([WORDS], _i32()), value)
    return [vector_d.extract(whole, [], [n]) for n in range(WORDS)]


def _i32() -> Type:
    return ir.IntegerType.get_signless(32)
