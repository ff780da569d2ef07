"""When the fragments of a matrix instruction are read from shared memory.

    vector.contract {xcc.staged = ...} ...  ->  vector.contract {xcc.fragments = "ahead", xcc.staged = ...} ...

Where LLVM orders the instructions it would read the fragments of all steps along k first, until registers are short.
On chips that name enough registers (CDNA) those of the next instruction's k are read ``ahead``, while one runs; on
others (RDNA) ``in_turn`` in a loop's last step, in which no loads wait, where registers do not suffice for two steps.
Dropped, they are read as they are needed, in the order that the code generator chooses.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.thread.compute import AHEAD, FRAGMENTS, IN_TURN
from xcc.targets.base import Chip

NAMED = 256         # registers that an instruction can name
OTHERS = 32         # of them for addresses


@register_pass
class PrefetchFragments(Pass):
    """Says of products by matrix instructions when they read their operands from shared memory."""

    def acts_on(self, chip: Chip | None) -> bool:
        return chip is not None and bool(chip.llvm_schedules)

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for op in k.ops("vector.contract"):
                if k.product(op).instruction is None:
                    continue
                if k.chip.reads_fragments_ahead:
                    op.attributes[FRAGMENTS] = ir.StringAttr.get(AHEAD)
                elif _two_steps(k, op) > min(k.chip.vector_registers, NAMED) - OTHERS:
                    op.attributes[FRAGMENTS] = ir.StringAttr.get(IN_TURN)


def _two_steps(k: TileKernel, op: Operation) -> int:
    """Registers of 4 bytes of the result and of the operands of two instructions' k, of those that are staged."""
    loop = op.parent.operation
    plan = LoadsAhead.of(k, loop) if loop.name == "scf.for" else None
    staged = dict(plan.staged) if plan is not None else {}
    product = k.product(op)
    sizes = []
    for value in list(op.operands)[:2]:
        steps = product.sizes[product.k[0]] // product.instruction.k if value in staged and product.instruction else 1
        sizes.append(k.words(value) // steps)
    return 2 * sum(sizes) + k.words(op.operands[2])
