"""Multi-versioning: schedules for few rows and one for many, a function each, of which one is launched.

    func.func private @k(%x, %d0: index) attributes {xt.kernel, xcc.config = {block = [256, 128]}}
    ->
    func.func private @k(...) attributes {xt.kernel, xcc.config = {block = [256, 128]},
                                          xcc.launched = "min(1, floordiv(d0, 5632))"}
    func.func private @k_few(...) attributes {xt.kernel, xcc.config = {block = [32, 64]}, xcc.of = "k",
                                              xcc.launched = "1 - min(1, floordiv(d0, 5632))"}

``distribute`` multiplies a function's number of workgroups by ``xcc.launched``, and no workgroups are no launch; both
become kernels of the gpu.module of ``xcc.of``. On a CPU ``join-sizes`` makes one function of them, with a branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Operation, ir
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim

LAUNCHED, OF = "xcc.launched", "xcc.of"


@dataclass(frozen=True)
class Few:
    """`schedule` is that of sizes for which `rows` is below `limit`, and not below that of another one."""

    rows: Dim
    limit: int
    schedule: Schedule


def by_size(function: Operation, *few: Few) -> None:
    """Gives the kernel `function` a further function for each of `few`, whose limits fall, of the same sizes."""
    name = ir.StringAttr(function.attributes["sym_name"]).value
    rows = few[0].rows
    below: Dim = 0          # 1 where the sizes are of a further function
    for n, one in enumerate(reversed(few)):
        second = function.operation.clone(ip=ir.InsertionPoint.after(function.operation))
        mine = 1 - symbolic.dim_min(1, symbolic.floordiv(rows, one.limit))
        number = "" if n + 1 == len(few) else str(len(few) - n)
        second.attributes["sym_name"] = ir.StringAttr.get(f"{name}_few{number}")
        second.attributes["xcc.config"], second.attributes[OF] = one.schedule.to_attr(), ir.StringAttr.get(name)
        second.attributes[LAUNCHED] = ir.StringAttr.get(str(mine - below))
        below = mine
    function.attributes[LAUNCHED] = ir.StringAttr.get(str(1 - below))
