"""What is read behind a loop is brought into the L2 cache while the loop runs.

    %r = scf.for ...                                memref.prefetch %residual[...]     a line of 128 bytes each
    %x = vector.transfer_read %residual[...]   ->   %r = scf.for ...
                                                    %x = vector.transfer_read %residual[...]

A product's loop reads its operands from the cache and leaves memory idle; its epilogue would wait for memory. Lines are
dealt out to the threads of a workgroup; coordinates behind the end of a dim are those of its last element. The code
generator has no such operation on memrefs: ``nvvm-prefetch`` writes the instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xcc._mlir import arith_d, ir, memref_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.analysis import Access
from xcc.passes.gpu.layout import blocked
from xcc.passes.gpu.thread_code import index

__all__ = ["prefetch_reads"]

LINE = 128          # bytes
MOST = 8            # lines of a thread; more are left to the loads


def prefetch_reads(k: Any, loop: Any) -> None:
    """Asks for the tiles that the operations behind `loop` read and whose places are known before it."""
    behind = False
    for op in loop.block.operations:
        if behind and op.operation.name == "vector.transfer_read":
            _prefetch(k, op)
        behind = behind or op.operation == loop


def _prefetch(k: Any, op: Any) -> None:
    access = Access(op, LINE)
    last = len(access.sizes) - 1
    if not access.sizes or last not in access.dims or any(v not in k.values for v in (access.memref, *access.indices)):
        return
    along, step = access.dims.index(last), LINE // access.bytes
    shape = [1 if memory < 0 else max(1, size // step) if d == along else size
             for d, (size, memory) in enumerate(zip(access.shape, access.dims, strict=True))]
    lines = blocked(shape, access.order, 1, k.chip.warp, k.threads // k.chip.warp)
    if lines.registers > MOST:
        return
    memref = k.get(access.memref)
    ends = [index(n - 1) if n >= 0 else arith_d.subi(memref_d.dim(memref, index(d)), index(1))
            for d, n in enumerate(access.sizes)]
    for register in range(lines.registers):
        at = [k.get(v) for v in access.indices]
        for d, memory in enumerate(access.dims):
            if memory >= 0 and shape[d] > 1:
                coordinate = k.code.coordinate(lines, register, d)
                at[memory] = arith_d.addi(at[memory],
                                          arith_d.muli(coordinate, index(step)) if d == along else coordinate)
        at = [arith_d.minsi(c, end) for c, end in zip(at, ends, strict=True)]
        ir.Operation.create("memref.prefetch", operands=[memref, *at], attributes={
            "isWrite": ir.BoolAttr.get(False), "isDataCache": ir.BoolAttr.get(True),
            "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2)})


@register_pass
@dataclass(frozen=True)
class NvvmPrefetch(Pass):
    """Writes prefetches, for which NVIDIA's code generator has no form, as inline assembly.

    Before: ``llvm.intr.prefetch %p``; after: ``llvm.inline_asm "prefetch.global.L2 [$0];" %p``.
    """

    name: ClassVar[str] = "nvvm-prefetch"

    def run(self, module: Any, ctx: PassContext) -> None:
        found: list[Any] = []

        def visit(op: Any) -> Any:
            if op.name == "llvm.intr.prefetch":
                found.append(op)
            return ir.WalkResult.ADVANCE

        with module.context:
            module.operation.walk(visit)
            for op in found:
                with op.location, ir.InsertionPoint(op):
                    ir.Operation.create("llvm.inline_asm", operands=[op.operands[0]], attributes={
                        "asm_string": ir.StringAttr.get("prefetch.global.L2 [$0];"),
                        "constraints": ir.StringAttr.get("l"), "has_side_effects": ir.UnitAttr.get(),
                        "asm_dialect": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)})
                op.erase()
