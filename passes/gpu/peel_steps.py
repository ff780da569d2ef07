"""The last steps of pipelined loops stand behind them, and what is left of a loop is unrolled.

    scf.for ... { ... } {xcc.stages = 4}  ->  scf.for ... { ... } {xcc.peeled = 3, xcc.stages = 4}

Loads run ahead of their steps, so that the last ones have nothing to load: behind the loop they stand without. That is
as many as are copied ahead; an H100 then takes, of f16 models, 1 to 5 % less time. Where the run alone knows how many
steps there are, there may be fewer, whose copies write zeros: only sums of products bear that. Where LLVM orders the
instructions (``Chip.llvm_schedules``) and loads wait in registers, the loop is unrolled by the two slots (``xcc.unroll
= 2``), whose offsets are then constants (no further: barriers cannot be in what is left over), and the last of an odd
number of steps stands behind it, the last two of a small even number, or all of few. Dropped, the loop loads for steps
that are not there, which costs time alone.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import set_int
from xcc.passes.gpu.pipeline.loads_ahead import PEELED, UNROLL, LoadsAhead
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.gpu.pipeline.staging_rules import LOADS, adds_alone, products

NAMED = 256     # registers that an instruction can name


@register_pass
class PeelSteps(Pass):
    """Lets the last steps of pipelined loops stand behind them."""

    straight: int = 4       # steps: to count fewer costs more than to read their code once
    few: int = 16           # steps: to load one more to no purpose costs more than the code of two that stand twice

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for loop in k.ops("scf.for"):
                plan = LoadsAhead.of(k, loop)
                if plan is not None and _one_product(k, loop):
                    self._peel(k, loop, plan)

    def _peel(self, k: TileKernel, loop: Operation, plan: LoadsAhead) -> None:
        count = Steps.of(loop).count
        if count is None:
            if adds_alone(loop, len(plan.copied)):
                set_int(loop, PEELED, plan.ahead)
            return
        in_registers = k.chip.llvm_schedules and not plan.copied
        peeled = self._odd_ones(k, plan, count) if in_registers else _without_copies(plan, count)
        if peeled:
            set_int(loop, PEELED, peeled)
        if k.chip.llvm_schedules and count - peeled > 2 and (count - peeled) % 2 == 0:
            set_int(loop, UNROLL, 2)

    def _odd_ones(self, k: TileKernel, plan: LoadsAhead, count: int) -> int:
        """Addresses and masks of gathers are kept from one step for the next where no loop is between them: that takes
        the registers that CDNA has beyond those of a thread's own."""
        gathers = any(op.name != "vector.transfer_read" for t in plan.held for op in t.slice if op.name in LOADS)
        if gathers and k.chip.vector_registers <= NAMED:
            return count % 2 if count > 2 else 0
        if count <= self.straight:
            return count
        return 1 if count % 2 else 2 if count <= self.few else 0


def _one_product(k: TileKernel, loop: Operation) -> bool:
    """Not with FMAs or several products (attention): what they hold may all be live at once."""
    contractions = products(loop)
    return len(contractions) == 1 and k.product(contractions[0]).instruction is not None


def _without_copies(plan: LoadsAhead, count: int) -> int:
    return plan.ahead if plan.copied and not plan.held and count > plan.slots else 0
