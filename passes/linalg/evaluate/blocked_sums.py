"""Where the loops of a long sum are cut into blocks, so that rounding errors stay small.

    for block of 512 steps:
      part = 0
      for step of the block: part = part + ...
      acc = acc + part

An accumulator that takes n numbers one after the other is off by up to n roundings of the sum so far; with blocks none
takes more than a block has, or as many as there are blocks. (Blocked summation: N. J. Higham, "The accuracy of floating
point summation", 1993.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcc import symbolic
from xcc._mlir import ir, owner_op
from xcc.dim_functions import ceildiv, dim_max
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.linalg.kernel.reduction_body import combiner, is_zero
from xcc.symbolic import Dim


def is_rounded_sum(op: Op) -> bool:
    """Whether a result of `op` is a sum in f32, and parts of all results can be combined."""
    combiners = [combiner(op, n) for n in range(len(op.results))]
    return None not in combiners and any(
        c == "arith.addf" and isinstance(r.element, ir.F32Type) and is_zero(owner_op(op.neutral[n]).attributes["value"])
        for n, (c, r) in enumerate(zip(combiners, op.results, strict=True)))


def blocks_of(loops: Sequence[int], sizes: Mapping[int, Dim], lanes: Mapping[int, int], most: int, product: bool
              ) -> dict[int, tuple[Dim, ...]]:
    """For loops that are cut, outermost first in `loops`: the steps of their blocks, of blocks of those, and so on.

    No accumulator takes more than twice `most` numbers, where loops of unknown size have `most` times `most` steps.
    Of a product's loops of unknown size only the outermost is cut, by the sizes at run time of those inside, a step of
    which goes on in one go: a sum of a window's three columns is no block that has to begin and to be added.
    """
    unknown = [p for p in loops if not isinstance(sizes[p], int)]
    whole = unknown[1:] if product else []
    found: dict[int, tuple[Dim, ...]] = {}
    taken: Dim = 1      # what an accumulator takes in a step
    for p in reversed(loops):
        size, n = sizes[p], max(1, lanes[p])
        if p in whole or not isinstance(taken, int) and isinstance(size, int):
            taken = ceildiv(size, n) * taken
            continue
        if not isinstance(taken, int):
            each = dim_max(symbolic.floordiv(most, dim_max(taken, 1)), 1)
            found[p], taken = (each, each * most), most
            continue
        steps = -(-size // n) if isinstance(size, int) else most * most
        levels, each = [], 1
        while steps * taken > 2 * most:
            count = _block(steps, max(1, most // taken))
            each, steps, taken = each * count, -(-steps // count), 1
            levels.append(each)
        if levels:
            found[p] = tuple(levels)
        taken = steps * taken
    return found


def _block(steps: int, most: int) -> int:
    """So many of `steps`, at most `most`: what divides them, where that is no less than half of it."""
    return next((n for n in range(most, most // 2, -1) if steps % n == 0), most)
