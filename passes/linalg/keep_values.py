"""Values that a chunk computes first, into memory of its own, as many of its tiles need them (Halide's compute_at).

    %p = linalg.generic (patches of an image)
    ->
    %p = linalg.generic (...) {xcc.kept = {order = array<i64: 2, 0, 1, 3>, vector = array<i64: 6, 6, 1, 16>}}

of which `tile` makes a nest of its own at the chunk's top, with tiles of `vector` in loops of `order` over the dims of
the value (as the kernel's dims are merged), that fills a buffer on the stack (passes/linalg/evaluate/keep.py). Left
out, each tile computes what it needs of the value.
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.decisions import keep, op_number, scheduled


@register_pass
class KeepValues(Pass):
    """Has chunks keep values, where the schedule wishes it."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function, schedule in scheduled(module):
            if schedule.cpu.kept:
                kernel = read(function)
                for kept in schedule.cpu.kept:
                    keep(op_number(kernel, kept.op), kept)
