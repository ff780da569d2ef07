"""In which order workgroups take tiles: grouped (GROUP_SIZE_M of Triton's tutorial, threadblock swizzle of CUTLASS),
and the longest first.

    scf.forall (%i, %j) ... { ... }  ->  scf.forall (%i, %j) ... { ... } {xcc.group = 8}

Workgroups walk eight tiles along ``%i``, then go one on along ``%j``, so that those which run together share tiles of
both operands in the L2 cache. Dropped, they take them row by row.

    scf.forall (%i, %j) ... { scf.for %k = 0 to min(%j + 64, %n) ... }
    ->
    scf.forall (%i, %j) ... { ... } {xcc.group = 16, xcc.descending = 1}

Where a loop takes longer the larger ``%j`` is (causal attention), the largest come first, of 16 ``%i`` (heads) at a
time: what runs at the end is short, and no core waits long for another. More at a time read more keys and values than
the L2 cache holds.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.index_values import forall_bounds
from xcc.passes.gpu.layout.tile_kernel import tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, set_int
from xcc.passes.gpu.pipeline.rounds import DESCENDING, GROUP
from xcc.passes.shared.patterns import int_constant

LONGEST_TOGETHER = 16
RISING = ("arith.addi", "arith.minsi", "arith.minui", "arith.maxsi", "arith.maxui", "arith.index_cast")


@register_pass
class GroupTiles(Pass):
    """Says of grids of two dims and more how many rows of tiles neighbouring workgroups take together, and along which
    dim work grows, whose last tiles come first."""

    rows: int = 0               # 0: as many as the kernel's schedule says

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            given = self.rows or config_int(k.func, "group", 0)
            for forall in k.ops("scf.forall"):
                dims = len(forall_bounds(forall)[2])
                growing = _growing(forall)
                if growing is not None:
                    set_int(forall, DESCENDING, growing)
                rows = given or (LONGEST_TOGETHER if growing == dims - 1 else 0)
                if rows > 1 and dims > 1:
                    set_int(forall, GROUP, rows)


def _growing(forall: Operation) -> int | None:
    """The dim of `forall` along which a loop in it takes longer; None where there is none."""
    block = forall.regions[0].blocks[0]
    loops = [op.operation for op in block.operations if op.operation.name == "scf.for"]
    return next((n for n, arg in enumerate(block.arguments) for loop in loops
                 if _rises(loop.operands[1], arg) and not _depends(loop.operands[0], arg)), None)


def _rises(value: Value, arg: Value) -> bool:
    """Whether `value` rises with `arg`, and never falls."""
    op = maker(value)
    if value == arg or op is None:
        return value == arg
    if op.name == "arith.subi":
        return _rises(op.operands[0], arg) and not _depends(op.operands[1], arg)
    if op.name == "arith.muli":
        return _rises(op.operands[0], arg) and (int_constant(op.operands[1]) or 0) > 0
    moving = [v for v in op.operands if _depends(v, arg)]
    return op.name in RISING and bool(moving) and all(_rises(v, arg) for v in moving)


def _depends(value: Value, arg: Value) -> bool:
    op = maker(value)
    return value == arg or op is not None and any(_depends(v, arg) for v in op.operands)
