"""block-loops: a loop over elements that reads something a block of them shares becomes one over blocks.

    scf.for %k = 0 to 2048 {                        scf.for %b = 0 to 2048 step 32 {
      %g = arith.floordivsi %k, 32                    %g = arith.floordivsi %b, 32
      %s = vector.transfer_read %scale[%g, 0]   ->    %s = vector.transfer_read %scale[%g, 0]
      ... %s ...                                      scf.for %k = %b to %b + 32 { ... %s ... }
    }                                               }

What depends on the block alone (its scale, its decoded zero point) is computed once a block. This moves reads of the
kernel's arguments out of loops that write to nothing but their own memory.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Module, Operation, Value, arith_d, ir, owner_op, scf_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.patterns import int_constant
from xcc.passes.walk import ops_where

LEAST = 8           # elements of a block: shorter loops cost more than they save
_READS = ("memref.load", "vector.transfer_read", "vector.load")
_WRITES = ("memref.store", "vector.transfer_write", "vector.store")


@register_pass
class BlockLoops(Pass):
    """Splits innermost loops by the blocks that their bodies divide the index by."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for loop in ops_where(module, lambda o: o.name == "scf.for"):
            block = _block_of(loop)
            moved = _of_a_block(loop, block) if block and _may_move(loop) else []
            if any(op.name in _READS for op in moved):
                _split(loop, block, moved)


def _block_of(loop: Operation) -> int:
    """The largest number that the index is divided by, a divisor of the loop's bounds; 0 for none."""
    low, high, step = map(int_constant, list(loop.operands)[:3])
    if low is None or high is None or step != 1:
        return 0
    sizes = [n for op in _body(loop) if LEAST <= (n := _divisor(op, loop)) < high - low]
    return max((n for n in sizes if low % n == 0 == high % n), default=0)


def _divisor(op: Operation, loop: Operation) -> int:
    """n where `op` is the loop's index divided by a constant n, else 0."""
    if op.name not in ("arith.floordivsi", "arith.divui", "arith.divsi"):
        return 0
    return int_constant(op.operands[1]) or 0 if op.operands[0] == loop.regions[0].blocks[0].arguments[0] else 0


def _body(loop: Operation) -> list[Operation]:
    return [op.operation for op in loop.regions[0].blocks[0]]


def _may_move(loop: Operation) -> bool:
    """Whether the body is plain, and writes only to memory that the kernel allocated."""
    for op in _body(loop):
        if op.name in _WRITES:
            memory = [v for v in op.operands if isinstance(v.type, ir.MemRefType)]
            if any(_is_argument(v) or owner_op(v).name != "memref.alloca" for v in memory):
                return False
        elif op.name not in (*_READS, "scf.yield") and not _is_pure(op):
            return False
    return True


def _is_pure(op: Operation) -> bool:
    return op.name.startswith(("arith.", "math.", "vector.")) and not list(op.regions) \
        and not any(isinstance(v.type, ir.MemRefType) for v in op.operands)


def _is_argument(value: Value) -> bool:
    return isinstance(value.owner, ir.Block)


def _of_a_block(loop: Operation, block: int) -> list[Operation]:
    """The ops of the body that depend on the index's block alone, and read nothing but arguments of the kernel."""
    inside, found = loop.regions[0].blocks[0], list[Any]()
    for op in _body(loop):
        memory = [v for v in op.operands if isinstance(v.type, ir.MemRefType)]
        if _divisor(op, loop) == block or op.name not in (*_WRITES, "scf.yield") and all(map(_is_argument, memory)) \
                and all(v.owner != inside if _is_argument(v) else owner_op(v).block != inside
                        or owner_op(v) in found for v in op.operands):
            found.append(op)
    return found


def _split(loop: Operation, block: int, moved: list[Operation]) -> None:
    """Puts `loop` into a loop over its blocks, and `moved` in front of it."""
    low, high, step, *first = loop.operands
    with loop.location, ir.InsertionPoint(loop):
        size = arith_d.constant(ir.IndexType.get(), block)
        outer = scf_d.ForOp(low, high, size, first)
        for old, new in zip(loop.results, outer.results, strict=True):
            old.replace_all_uses_with(new)
        at = outer.induction_variable
        with ir.InsertionPoint(outer.body):
            end = arith_d.addi(at, size)
            yielded = scf_d.YieldOp(list(loop.results))
        loop.move_before(yielded)
        for i, value in enumerate((at, end, step, *outer.inner_iter_args)):
            loop.operands[i] = value
        for op in moved:
            if _divisor(op, loop) == block:
                op.operands[0] = at
            op.move_before(loop)
