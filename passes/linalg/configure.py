"""Attaches a schedule (``xcc.config``) to every linalg kernel that has none, as the target's strategy chooses."""

from __future__ import annotations

from dataclasses import replace

from xcc._mlir import Module
from xcc.diagnostics import UserError
from xcc.options import CompileOptions
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.by_size import by_size
from xcc.passes.linalg.schedule.smaller import smaller
from xcc.passes.linalg.schedule.tuning import Database, database
from xcc.passes.shared.attributes import PART
from xcc.targets.folders import part


@register_pass
class Configure(Pass):
    """Chooses tile sizes: the tuning database's, else strategy(kernel, chip). A config that is there already is kept.

    target: whose strategy; default: the compilation's target.
    tuned: whether to look into the tuning database.
    smaller: how often tiles are made smaller than that (passes/linalg/schedule/smaller.py), for kernels without room
        otherwise.
    """

    target: str = ""
    tuned: bool = True
    smaller: int = 0

    def run(self, module: Module, ctx: PassContext) -> None:
        target = self.target or (ctx.options or CompileOptions()).target
        strategy = part(target, "strategy")
        if strategy is None:
            raise UserError(f"pass 'configure': there is no target '{target}'")
        few_rows = getattr(strategy, "few_rows", None)
        path = ctx.options.tuning if ctx.options is not None else ""
        entries = database(target, path) if self.tuned else Database()
        for function in list(module.body.operations):
            attributes = function.operation.attributes
            if function.operation.name != "func.func" or "xt.kernel" not in attributes \
                    or "xcc.loops" in attributes or "xcc.config" in attributes:
                continue
            kernel = read(function)
            chip = ctx.chip.name if ctx.chip is not None else ""
            schedule = smaller(entries.find(chip, kernel) or strategy.configure(kernel, ctx.chip), self.smaller)
            function.attributes["xcc.config"] = schedule.to_attr()
            few = few_rows(kernel, schedule, ctx.chip) if few_rows is not None and PART not in attributes else ()
            if few:
                by_size(function, *(replace(f, schedule=smaller(f.schedule, self.smaller)) for f in few))
