"""What the loops of rows do again: a chunk makes every reduction that its elements need, whoever else needs it, too.

A kernel of a norm over images [n, c, h, w] with weights for each column has the rows h and w, of which both reductions
walk all. Cut along h, each chunk walks the whole image for them: four chunks take twice as long as one.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import Domain, estimate, operations_of, volume
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor, loop
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim


def least_repeated(kernel: Kernel, place: Domain, schedule: Schedule, cores: int) -> Schedule:
    """`schedule`, or with chunks that are whole, or as many as cores, along the dims that some reductions lack."""
    lacked = [d for d, b in enumerate(schedule.block) if 0 < b < estimate(place.dims[d]) and _is_lacked(place, d)]
    if not lacked:
        return schedule
    tried = [schedule]
    whole = [0 if d in lacked else b for d, b in enumerate(schedule.block)]
    tried.append(replace(schedule, block=tuple(whole)))
    first, others = lacked[0], prod(_pieces(place.dims, whole))
    each = -(-estimate(place.dims[first]) // max(1, cores // others))
    whole[first] = -(-each // schedule.vector[first]) * schedule.vector[first]
    tried.append(replace(schedule, block=tuple(whole)))
    return min(tried, key=lambda s: busiest(kernel, place, s, cores))


def busiest(kernel: Kernel, place: Domain, schedule: Schedule, cores: int) -> float:
    """Operations of the core that has most of the chunks."""
    chunks = prod(_pieces(place.dims, schedule.block))
    each = operations(kernel, place, schedule) / max(1, chunks)
    return each * (-(-chunks // cores) if schedule.parallel else chunks)


def operations(kernel: Kernel, place: Domain, schedule: Schedule) -> int:
    """Operations of all chunks, those of a reduction as often as it is made: where the loops over all dims that it
    depends on have begun (``Evaluator.hoist``), in each chunk again."""
    sizes = {f"i{d}": estimate(size) for d, size in enumerate(place.dims)}
    pieces = _pieces(place.dims, schedule.block)
    seen: set[tuple[Tensor, Access]] = set()
    total = 0

    def made(access: Access) -> int:
        """How often what is needed at `access` is made."""
        used = {name for e in access for name in symbolic.symbols_of(e) if name in sizes}
        last = max((n for n, d in enumerate(schedule.order) if f"i{d}" in used), default=-1)
        inside = prod(pieces[d] if n > last else sizes[f"i{d}"] for n, d in enumerate(schedule.order)
                      if f"i{d}" not in used)
        return inside * prod(sizes[name] for name in used)

    def visit(t: Tensor, access: Access, times: int) -> None:
        nonlocal total
        op = t.producer
        if op is None or (t, access) in seen:
            return
        seen.add((t, access))
        env = op.loops_at(access, t.index)
        if op.is_reduction:
            if all(name in sizes for e in access for name in symbolic.symbols_of(e)):
                times = min(times, made(access))
            times *= volume(size for size, r in zip(op.loops, op.reduction, strict=True) if r)
            env |= {f"i{p}": symbolic.sym(f"r{len(seen)}_{p}") for p, r in enumerate(op.reduction) if r}
        total += times * operations_of(op)
        for s, a in op.reads(env):
            visit(s, a, times)

    visit(place.main, tuple(loop(d) for d in range(len(place.dims))), volume(place.dims))
    return total


def _is_lacked(place: Domain, d: int) -> bool:
    return any(op.is_reduction and f"i{d}" not in {name for e in access for name in symbolic.symbols_of(e)}
               for op, access in place.position.items())


def _pieces(dims: tuple[Dim, ...], block: tuple[int, ...] | list[int]) -> list[int]:
    return [-(-estimate(size) // b) if b else 1 for size, b in zip(dims, block, strict=True)]
