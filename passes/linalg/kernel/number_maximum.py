"""Maxima for which any comparison serves, whatever it makes of NaN.

A softmax subtracts the row's maximum, exponentiates and divides by the sum. A NaN in the row makes its own exponential
NaN, so the sum and every result: the maximum need not be NaN too. One instruction then does what arith.maximumf, which
also tells -0 from 0, takes six for on x86.
"""

from __future__ import annotations

from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor, ops_behind
from xcc.passes.linalg.kernel.online import find_groups
from xcc.passes.linalg.kernel.reduction_body import combiner

KEEPS_NAN = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.extf", "arith.truncf",
             "math.exp", "math.log", "math.fma", "arith.constant", "linalg.yield")


def number_maxima(kernel: Kernel) -> set[Op]:
    """The maxima of `kernel` such that all results that depend on one are NaN where one of its summands is."""
    found: dict[Op, set[Op]] = {}
    for group in find_groups(kernel):
        found.setdefault(group.maximum, set()).update(s.op for s in group.sums)
    return {top for top, sums in found.items()
            if all(_carries(t, sums) for t in kernel.results if top in ops_behind(t))}


def _carries(t: Tensor, sums: set[Op]) -> bool:
    """Whether `t` is NaN where a sum of `sums` that it is made of is."""
    return any(op in sums for op in ops_behind(t, lambda op: op in sums or _may_drop_nan(op)))


def _may_drop_nan(op: Op) -> bool:
    if op.operation is not None and not all(o.operation.name in KEEPS_NAN for o in op.block.operations):
        return True
    return op.is_reduction and any(combiner(op, n) != "arith.addf" for n in range(len(op.results)))
