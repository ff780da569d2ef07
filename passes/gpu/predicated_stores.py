"""Masked stores of 16 bytes as one instruction with a predicate.

    scf.if %m {                                    llvm.inline_asm "@$0 st.global.v4.b32 [$1], {$2, ...};" %m, ...
      vector.store %v, %x[%i]               ->
    }

Behind a branch, LLVM puts what only the store needs behind it, too, and nothing is ordered across: each store of a row
waits for what it is computed of. ptxas orders straight code across all of them. (It makes predicates of the branches
around loads by itself, and reads what is needed late as early as it can; statements in their place it puts off.)

Only where threads reduce rows together, without products: elsewhere the branch spares those beyond an edge the work.
Not where one of several threads stores what all of them hold: the branch spares the others what is done for the store.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, arith_d, ir, memref_d, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.distribute import PRODUCT
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.memory.transfers import ONE_OF_COPIES
from xcc.passes.gpu.vendor.inline_asm import inline_asm
from xcc.passes.walk import ops_where

WIDE, WORDS = 16, 4         # bytes and words of a store
STORE = "@$0 st.global.v4.b32 [$1], {$2, $3, $4, $5};"
MOVABLE = ("arith.", "memref.", "vector.", "builtin.unrealized_conversion_cast")
ACCESSES = (".load", ".store")


@register_pass
class PredicatedStores(Pass):
    """Takes the branches away from wide stores to global memory."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for kernel in ops_where(module, lambda op: op.name == "gpu.func" and PRODUCT not in op.attributes):
            if ops_where(kernel, lambda op: op.name == "gpu.shuffle"):
                for branch in ops_where(kernel, lambda op: op.name == "scf.if" and _only_stores(op)):
                    with branch.location:
                        _predicate(branch)


def _only_stores(branch: Operation) -> bool:
    """Whether a wide store to global memory is all that an scf.if does."""
    *rest, last = [op.operation for op in branch.regions[0].blocks[0].operations]
    store = rest.pop() if rest else last
    if store.name != "vector.store" or ONE_OF_COPIES in store.attributes or len(branch.regions[1].blocks) \
            or not all(op.name.startswith(MOVABLE) and not op.name.endswith(ACCESSES) for op in rest):
        return False
    kind, memory = ir.VectorType(store.operands[0].type), ir.MemRefType(store.operands[1].type)
    aligned = ir.IntegerAttr(store.attributes["alignment"]).value if "alignment" in store.attributes else 1
    wide = kind.rank == 1 and kind.shape[0] * element_bytes(kind.element_type) == WIDE and aligned % WIDE == 0
    strides, offset = memory.get_strides_and_offset()
    known = offset == 0 and ir.ShapedType.get_dynamic_stride_or_offset() not in strides
    return bool(wide and known and memory.memory_space is None)


def _predicate(branch: Operation) -> None:
    *rest, store, _ = [op.operation for op in branch.regions[0].blocks[0].operations]
    for op in rest:
        op.move_before(branch)
    value, memory, *indices = store.operands
    kind, index = ir.MemRefType(memory.type), ir.IndexType.get()
    with ir.InsertionPoint(branch):
        at = memref_d.extract_aligned_pointer_as_index(memory)
        for i, stride in zip(indices, kind.get_strides_and_offset()[0], strict=True):
            step = arith_d.constant(index, stride * element_bytes(kind.element_type))
            at = arith_d.addi(at, arith_d.muli(i, step))
        whole = arith_d.index_cast(ir.IntegerType.get_signless(64), at)
        pointer = ir.Operation.create("llvm.inttoptr", [ir.Type.parse("!llvm.ptr<1>")], [whole]).results[0]
        words = vector_d.bitcast(ir.VectorType.get([WORDS], ir.IntegerType.get_signless(32)), value)
        parts = [vector_d.extract(words, [], [n]) for n in range(WORDS)]
        inline_asm(STORE, "b,l,r,r,r,r,~{memory}", operands=[branch.operands[0], pointer, *parts])
    branch.erase()
