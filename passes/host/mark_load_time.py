"""Which kernels run once, when the model is loaded.

    %1 = "xtv.dispatch"(%w) {kernel = @pack_0}  ->  %1 = "xtv.dispatch"(%w) {host.at_load, kernel = @pack_0}

Those that read weights alone, and make no more than memory is worth. Dropped, they run in each run.
"""

from __future__ import annotations

from xcc._mlir import Module, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.places import AT_LOAD
from xcc.passes.xt.graph.load_time import made_at_load


@register_pass
class MarkLoadTime(Pass):
    """Marks the dispatches of @main that run once, when the model is loaded, with ``host.at_load``."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in made_at_load(module):
            op.attributes[AT_LOAD] = ir.UnitAttr.get()
