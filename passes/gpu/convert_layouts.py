"""How values get from one layout to another.

    %y = builtin.unrealized_conversion_cast %x {xcc.layout = ["..."]}
    ->
    %y = builtin.unrealized_conversion_cast %x {xcc.exchange = {by = "shared", memory = "tile=[1024] ..."}, ...}

Whichever takes the fewest cycles: ``registers`` of a thread are renamed where it holds all that it needs, ``shuffles``
move elements inside a warp, else they go through ``shared`` memory, in the swizzle for which writes and reads take the
fewest cycles, or through it in ``pieces`` where a tile has no room beside what a pipelined loop keeps there. Dropped,
all go through shared memory, row by row. What a contraction reads from shared memory (``xcc.staged``) is not converted.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.exchange.conversions import Exchange
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import CONVERT
from xcc.passes.gpu.pipeline.exchanges import is_staged, write_exchange
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.pipeline.rounds import PERSISTENT
from xcc.passes.shared.values import is_vector


@register_pass
class ConvertLayouts(Pass):
    """Chooses how values are converted between layouts."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            plans = {loop: LoadsAhead.of(k, loop) for loop in k.ops("scf.for")}
            for cast in k.ops(CONVERT):
                if is_vector(cast.results[0]) and not is_staged(cast, plans.get):
                    _choose(k, cast, plans)


def _choose(k: TileKernel, cast: Operation, plans: dict[Operation, LoadsAhead | None]) -> None:
    source, target = k.layout(cast.operands[0]), k.layout(cast.results[0])
    if source != target:
        element = ir.VectorType(cast.results[0].type).element_type
        room = k.chip.shared_bytes - _kept(cast, plans)
        write_exchange(cast, Exchange.choose(k.chip, source, target, element, room))


def _kept(cast: Operation, plans: dict[Operation, LoadsAhead | None]) -> int:
    """Bytes of shared memory that pipelined loops around `cast` keep, or that of a persistent kernel."""
    around = cast.parent.operation
    while around.name != "func.func":
        plan = plans.get(around)
        if plan is not None:
            return plan.end
        if PERSISTENT in around.attributes:
            return next(p.end for loop, p in plans.items() if p is not None and loop.parent.operation == around)
        around = around.parent.operation
    return 0
