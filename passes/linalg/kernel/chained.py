"""Sums of products over a loop whose factors are made of products of the same step: chained products.

    for k:                                          # a block of columns at a time
        p = exp(x[rows, k] - top[rows])             # x[rows, k] is a product over a whole short dim
        s = s + f(p, ...) w[k]                      # for each of the sums that read p

Unlike an online sum's (passes/linalg/kernel/online.py) `top` is known: it is no maximum over the loop. Attention's
gradient is made of two such kernels (xt.attention_query_gradient, xt.attention_key_gradients). The rewrite knows
neither: it looks for the algebra, in the ops of a kernel. Evaluation is in passes/linalg/evaluate/chained_loop.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor, ops_behind
from xcc.passes.linalg.kernel.online import Read, difference_of, visible
from xcc.passes.linalg.kernel.reduction_body import combiner, product_operands
from xcc.symbolic import Dim


@dataclass(frozen=True, eq=False)
class ChainedSum:
    """One sum: its op, its loop over blocks, and over its loops the exponential and what that is the difference of."""

    op: Op
    loop: int
    power: Read
    x: Read
    top: Read

    def visible(self, kernel: Kernel) -> tuple[Dim | None, Dim | None]:
        """The first and the last step for which x is not -inf, over the sum's other loops; None: no such end."""
        return visible(kernel, self.loop, self.x)


def find_chained(kernel: Kernel) -> list[list[ChainedSum]]:
    """The groups of `kernel`, whatever its schedule: sums that read the same exponentials in the same loop."""
    found: dict[tuple[Tensor, int, Dim], list[ChainedSum]] = {}
    for op in kernel.ops:
        s = _sum(op)
        if s is not None:
            walked = next(d for d, e in enumerate(s.power[1]) if f"i{s.loop}" in symbolic.symbols_of(e))
            found.setdefault((s.power[0], walked, op.loops[s.loop]), []).append(s)
    return list(found.values())


def _sum(op: Op) -> ChainedSum | None:
    if op.operation is None or not op.is_reduction or combiner(op, 0) != "arith.addf" or product_operands(op) is None:
        return None
    loops = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
    if len(loops) != 1:
        return None
    left, seen = list(op.inputs), set()
    while left:
        t, access = left.pop()
        behind = t.producer
        if behind is None or behind.is_reduction or (t, access) in seen:
            continue
        seen.add((t, access))
        parts = difference_of(t, access)
        if parts is not None and any(f"i{loops[0]}" in symbolic.symbols_of(e) for e in parts[0][1]) \
                and _multiplied(parts[0][0]) and not any(o.is_reduction for o in ops_behind(parts[1][0])):
            return ChainedSum(op, loops[0], (t, access), *parts)
        left += behind.reads(behind.loops_at(access, t.index))
    return None


def _multiplied(t: Tensor) -> bool:
    """Whether a product is behind `t`."""
    return any(o.is_reduction and product_operands(o) is not None for o in ops_behind(t) if o.operation is not None)
