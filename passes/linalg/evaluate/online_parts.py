"""Flash decoding: the loop over the keys of online sums (passes/linalg/kernel/online.py) in parts, for all cores.

A part p of the keys of a row has a maximum m[p] and sums s[p] relative to it, which blocks of their own compute and
store. With m = max_p m[p] each sum of the whole row is

    s = sum_p exp(m[p] - m) * s[p]

in the order of p: the result does not depend on which block is done first. A second nest computes that, and from there
on the kernel's results, as if the loop had been in it (flash decoding: Dao et al., 2023,
https://crfm.stanford.edu/2023/10/12/flashdecoding.html).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.evaluate.online_loops import OnlineLoop
from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor
from xcc.passes.linalg.kernel.online import find_groups
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim

PART_ORDER = -1     # the axis of parts comes before those of the result


@dataclass(frozen=True, eq=False)
class PartialResult:
    """What all parts leave of the result `of` of a reduction: `stored` has the part as its first dim."""

    of: Tensor
    stored: Tensor


def parts_of(schedule: Schedule, dims: Sequence[Dim]) -> Dim:
    """The number of parts for results of `dims`: fewer than `splits` where many tiles keep all cores busy."""
    tiles = symbolic.product([symbolic.ceildiv(d, n) for d, n in zip(dims, schedule.block, strict=True)])
    if isinstance(tiles, int):
        return max(1, schedule.gpu.splits)
    wanted = symbolic.floordiv(schedule.gpu.busy, symbolic.dim_max(1, tiles))
    return symbolic.dim_max(1, symbolic.dim_min(schedule.gpu.splits, wanted))


def partial_results(kernel: Kernel, parts: Dim, levels: Sequence[Sequence[Op]] = ()) -> list[PartialResult]:
    """The results of the reductions of `levels`; without any the maxima and sums of the kernel's groups."""
    found = [op.results[0] for ops in levels for op in ops] or [
        t for g in find_groups(kernel) for t in (g.maximum.results[0], *(s.op.results[0] for s in g.sums))]
    return [PartialResult(t, Tensor(None, (parts, *t.dims), t.element)) for t in found]


class KeyParts:
    """Emits the loops of a kernel for one part, or what merges all parts.

    part: the number of the part that the nest being built computes; None in the nest that merges them.
    """

    def __init__(self, builder: Builder, memory: Memory, schedule: Schedule, parts: Dim,
                 buffers: Sequence[tuple[PartialResult, Value]]) -> None:
        self.b, self.memory, self.parts = builder, memory, parts
        self.most = 1 << (max(1, schedule.gpu.splits) - 1).bit_length()
        self.part: Any = None
        self.stored = {p.of: p.stored for p, _ in buffers}
        self.buffers = {p.of: memref for p, memref in buffers}
        for p, memref in buffers:
            memory.bind(p.stored, memref)

    def emit(self, loop: OnlineLoop) -> None:
        """The part of `loop` that this nest computes, or its results from those of all parts."""
        if self.part is not None:
            self._compute(loop)
        else:
            self._merge(loop)

    def _tensors(self, loop: OnlineLoop) -> list[tuple[Tensor, list[Ix]]]:
        return [(loop.g.maximum.results[0], loop.rows), *((s.op.results[0], loop.indices(s)) for s in loop.sums)]

    def _compute(self, loop: OnlineLoop) -> None:
        b, end = self.b, loop.last_end()
        steps = b.binary("arith.ceildivsi", end, b.int(loop.lanes))

        def first(part: Value) -> Value:
            share = b.binary("arith.divui", b.mul(part, steps), b.dim(self.parts))
            return b.mul(share, b.int(loop.lanes))

        last = b.binary("arith.minsi", first(b.add(self.part, b.int(1))), end)
        (top, *sums), factor = loop.run(first(self.part), last)
        top = top if factor == 1.0 else loop.powers.times(top, factor)
        for (t, indices), value in zip(self._tensors(loop), [top, *sums], strict=True):
            self.memory.store(self.stored[t], self.buffers[t], value, [b.ix_of(self.part), *indices])

    def _merge(self, loop: OnlineLoop) -> None:
        b = self.b
        whole = self.parts == self.most
        axis = Axis(self.most, PART_ORDER, None if whole else b.dim(self.parts))
        at = Ix(coefs=((axis, 1),))
        tops, *sums = (self.memory.load(self.stored[t], [at, *indices]) for t, indices in self._tensors(loop))
        start = loop.start()
        if not whole:
            tops = loop.where(None, tops, lambda: b.mask((axis,)), loop.g.start)
        top = self._over_parts("maximumf", tops, start, axis)
        weights = loop.powers.power(tops, top, 1.0)
        totals = []
        for v in sums:
            weighted = b.elementwise("arith.mulf", loop.element, [v, b.broadcast(weights, v.axes)], {})
            zero = b.broadcast(V(b.constant(ir.FloatAttr.get(loop.element, 0.0), loop.element)), v.axes[1:])
            totals.append(self._over_parts("add", weighted, zero, axis))
        loop.remember([top, *totals], 1.0)

    def _over_parts(self, kind: str, v: V, start: V, axis: Axis) -> V:
        """`v` reduced over the parts."""
        v = self.b.broadcast(v, (axis, *start.axes))
        reduced = self.b.op("vector.multi_reduction", start.value.type, [v.value, start.value],
                            kind=ir.Attribute.parse(f"#vector.kind<{kind}>"),
                            reduction_dims=ir.DenseI64ArrayAttr.get([0]))
        return V(reduced, start.axes)
