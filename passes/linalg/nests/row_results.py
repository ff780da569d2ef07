"""Results that say something of each row of a kernel's largest result: a mean, a deviation, the logarithm of a sum.

They are stored in the nest of the rows, where what they are made of is at hand, by the thread that has the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from xcc import symbolic
from xcc._mlir import Value
from xcc.passes.linalg.build.tile_values import Ix
from xcc.passes.linalg.evaluate.tile_eval import Evaluator
from xcc.passes.linalg.kernel.domain import contraction_of
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor, loop
from xcc.passes.linalg.schedule.schedule import Schedule


def go_with_rows(kernel: Kernel, schedule: Schedule, main: Tensor, t: Tensor) -> bool:
    """Whether `t` is stored by the nest of `main`.

    Its dims are the first of main's, the nest walks them first and its chunks do not cut the others, and it is made of
    reductions along rows. Of online sums a tile has whole rows.
    """
    rank = len(t.dims)
    if schedule.flatten or not 0 < rank < len(main.dims) or main.dims[:rank] != t.dims or not _sums_rows(t):
        return False
    if walks_rows(schedule, t):
        return contraction_of(kernel) is None and set(schedule.order[:rank]) == set(range(rank))
    return schedule.online and schedule.access == "gather" and \
        all(isinstance(n, int) and n <= b for n, b in zip(main.dims[rank:], schedule.block[rank:], strict=True))


def walks_rows(schedule: Schedule, t: Tensor) -> bool:
    """Whether a nest walks the dims behind those of `t`, where it has fixed these."""
    return not any(schedule.block[len(t.dims):])


def store_row(ev: Evaluator, t: Tensor, memref: Value, indices: list[Ix]) -> None:
    """Stores the result `t` at `indices`, behind the reductions that it is made of."""
    own = {f"i{n}": i for n, i in enumerate(indices)}
    ev.hoist([(t, tuple(map(symbolic.sym, own)))], own)
    ev.memory.store(t, memref, ev.tile(t, indices), indices)


def _sums_rows(t: Tensor) -> bool:
    """Whether `t` is made of reductions of its own coordinates whose loops walk what they read along its last dim."""
    seen: set[tuple[Tensor, Access]] = set()
    left: list[tuple[Tensor, Access]] = [(t, tuple(loop(n) for n in range(len(t.dims))))]
    while left:
        value, access = left.pop()
        op = value.producer
        if op is None or (value, access) in seen:
            continue
        seen.add((value, access))
        if op.is_reduction:
            if access == tuple(loop(n) for n in range(len(t.dims))) and _along_rows(op.reduction, op.inputs):
                return True
            continue
        left += op.reads(op.loops_at(access, value.index))
    return False


def _along_rows(reduction: Sequence[bool], inputs: Sequence[tuple[Tensor, Access]]) -> bool:
    """Whether a loop of the reduction walks the last dim of an input."""
    loops = {f"i{p}" for p, summed in enumerate(reduction) if summed}
    return any(a and loops & set(symbolic.symbols_of(a[-1])) for _, a in inputs)
