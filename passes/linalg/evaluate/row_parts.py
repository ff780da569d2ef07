"""Split reductions: few long rows in parts. Blocks of their own reduce a part each, later ones what all parts left.

    m[p] = max of x over part p;                    a launch
    s[p] = sum of exp(x - max_p m[p]) over part p;  a launch: the sum needs the whole maximum
    y = exp(x - max_p m[p]) / sum_p s[p]            a launch

A reduction whose summands depend on no other is of level 0, else of the level after the highest of those. Parts are
combined in order, so the result does not depend on which block is done first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xcc._mlir import ir, owner_op
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.evaluate.online_parts import PART_ORDER, PartialResult
from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor, ops_behind
from xcc.passes.linalg.kernel.reduction_body import KINDS, combiner
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator


def levels_of(kernel: Kernel) -> list[list[Op]]:
    """The kernel's reductions by level; empty where one of them has no form in parts."""
    level: dict[Op, int] = {}

    def below(t: Tensor) -> int:
        return max((level[op] + 1 for op in ops_behind(t, level.__contains__) if op in level), default=0)

    for op in kernel.ops:
        if op.is_reduction:
            if op.operation is None or len(op.results) != 1 or combiner(op, 0) is None:
                return []
            level[op] = max((below(s) for s, _ in op.inputs), default=0)
    return [[op for op, n in level.items() if n == found] for found in range(max(level.values(), default=-1) + 1)]


class RowParts:
    """Evaluates the reductions of a kernel in parts.

    level, part: what the nest being built computes, the reductions of a level and the number of its part; in the
    nest of the results both are None.
    """

    def __init__(self, ev: Evaluator, levels: Sequence[Sequence[Op]], parts: Dim,
                 buffers: Sequence[tuple[PartialResult, Any]]) -> None:
        self.ev, self.b, self.parts = ev, ev.b, parts
        self.level_of = {op: n for n, ops in enumerate(levels) for op in ops}
        self.level: int | None = None
        self.part: Any = None
        self.stored = {p.of: p.stored for p, _ in buffers}
        self.buffers = {p.of: memref for p, memref in buffers}
        assert isinstance(parts, int)
        self.most = 1 << (parts - 1).bit_length()
        for p, memref in buffers:
            ev.memory.bind(p.stored, memref)

    def range(self, op: Op, size: Dim, lanes: int) -> tuple[Any, Any] | None:
        """From where to where this nest's part of a loop of `op` goes; None where it has no parts of its own."""
        if self.level is None or self.level_of.get(op) != self.level:
            return None
        b, end = self.b, self.b.dim(size)
        steps = b.binary("arith.ceildivsi", end, b.int(lanes))

        def first(part: Any) -> Any:
            share = b.binary("arith.divui", b.mul(part, steps), b.dim(self.parts))
            return b.mul(share, b.int(lanes))

        return first(self.part), b.binary("arith.minsi", first(b.add(self.part, b.int(1))), end)

    def store(self, t: Tensor, value: V, indices: Sequence[Ix]) -> None:
        """Keeps this part's value of the reduction's result `t`."""
        self.ev.memory.store(self.stored[t], self.buffers[t], value, [self.b.ix_of(self.part), *indices])

    def merged(self, op: Op, indices: Sequence[Ix]) -> V | None:
        """The result of `op` from those of all parts; None where this nest computes it."""
        if op not in self.level_of or self.level is not None and self.level_of[op] >= self.level:
            return None
        b, t = self.b, op.results[0]
        axis = Axis(self.most, PART_ORDER, None if self.parts == self.most else b.dim(self.parts))
        value = self.ev.memory.load(self.stored[t], [Ix(coefs=((axis, 1),)), *indices])
        fill = op.neutral[0]
        neutral = V(b.constant(owner_op(fill).attributes["value"], fill.type))
        mask = b.mask((axis,))
        if mask is not None:
            value = V(b.op("arith.select", value.value.type, [
                b.broadcast(mask, value.axes).value, value.value, b.broadcast(neutral, value.axes).value]), value.axes)
        start = b.broadcast(neutral, value.axes[1:])
        return V(b.op("vector.multi_reduction", start.value.type, [value.value, start.value],
                      kind=ir.Attribute.parse(f"#vector.kind<{KINDS[str(combiner(op, 0))]}>"),
                      reduction_dims=ir.DenseI64ArrayAttr.get([0])), value.axes[1:])
