"""Loop kernel of sorts by merging, an iteration an element: merge_runs. Keys are signed integers."""

from __future__ import annotations

from xcc._mlir import Value, arith_d, ir
from xcc.passes.xt_to_linalg.build.registry import converts_to_loops
from xcc.passes.xt_to_linalg.build.types import to_i32
from xcc.passes.xt_to_linalg.loops.loops import LoopKernel

_I = arith_d.CmpIPredicate


def _number(value: int) -> Value:
    i32 = ir.IntegerType.get_signless(32)
    return arith_d.constant(i32, ir.IntegerAttr.get(i32, value))


def _before(found: Value, mine: Value, earlier: Value) -> Value:
    """Whether `found`, which lies `earlier` than `mine` or behind it, comes first."""
    return arith_d.select(earlier, arith_d.cmpi(_I.sle, found, mine), arith_d.cmpi(_I.slt, found, mine))


def _counted(condition: Value, step: int) -> Value:
    return arith_d.select(condition, _number(step), _number(0))


@converts_to_loops("merge_runs")
def merge_runs(k: LoopKernel) -> None:
    """An element's place is that in its own run and, by a binary search of each, how many of the other runs come before
    it. The searches go side by side."""
    (keys, given), (out, numbers) = k.inputs, k.outputs
    run, ways, keep = k.op.attr("run"), k.op.attr("ways"), k.op.attr("keep")
    whole, size = run * ways, keys.dims[-1]
    merged = min(whole, keep)
    steps = [run >> n for n in range(1, run.bit_length())] + [1]

    def element(c: list[Value]) -> None:
        *row, i = c
        group = arith_d.divui(i, k.dim(whole))
        base = arith_d.muli(group, k.dim(whole))
        inside = to_i32(arith_d.subi(i, base))
        own = arith_d.divui(inside, _number(run))
        left = to_i32(arith_d.minui(arith_d.subi(k.dim(size), base), k.dim(whole)))       # elements of the group
        mine = keys.load(c)
        others = []         # whether the run lies ahead of the own one, where it begins, its elements
        for n in range(ways - 1):
            earlier = arith_d.cmpi(_I.ult, _number(n), own)
            start = arith_d.select(earlier, _number(n * run), _number((n + 1) * run))
            length = arith_d.minsi(arith_d.maxsi(arith_d.subi(left, start), _number(0)), _number(run))
            others.append((earlier, start, length))
        found = [_number(0) for _ in others]
        for step in steps:
            probes = [arith_d.addi(at, _number(step - 1)) for at in found]
            inner = [arith_d.cmpi(_I.ult, p, length) for p, (_, _, length) in zip(probes, others, strict=True)]
            places = [arith_d.minui(arith_d.addi(p, start), arith_d.subi(left, _number(1)))
                      for p, (_, start, _) in zip(probes, others, strict=True)]
            values = [keys.load([*row, arith_d.addi(base, arith_d.index_cast(ir.IndexType.get(), p))]) for p in places]
            for n, (value, there) in enumerate(zip(values, inner, strict=True)):
                ahead = arith_d.andi(there, _before(value, mine, others[n][0]))
                found[n] = arith_d.addi(found[n], _counted(ahead, step))
        place = arith_d.remui(inside, _number(run))
        for at in found:
            place = arith_d.addi(place, at)

        def write() -> None:
            at = arith_d.addi(arith_d.muli(group, k.dim(merged)), arith_d.index_cast(ir.IndexType.get(), place))
            out.store(mine, [*row, at])
            numbers.store(given.load(c), [*row, at])

        if merged == whole:
            write()
        else:
            k.when(arith_d.cmpi(_I.ult, place, _number(merged)), write)

    k.rows(keys.dims, element)
