"""What is gathered of normalized rows is gathered before: the other elements need not be made.

    %l = xt.log_softmax(%x) : 4096x50257          %m, %s = each row's maximum and logarithm of its sum : 4096x1
    %p = xt.gather_elements(%l, %t) : 4096x1  ->  %p = xt.sub(xt.sub(xt.gather_elements(%x, %t), %m), %s)

So do a loss that reads the target's logarithm of each row, and the probability of one class. Pointwise ops that need
nothing of the rest of their row stay in front of the gather, whose kernel computes them where that is cheap.
"""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import aligned_shape, apply_rules, is_pointwise, name_of, producer, rebuilt

FEW = 16        # elements of a row, one of which is read


@register_pass
class EarlyGathers(Pass):
    """Moves gathers and slices of few elements of each row in front of pointwise ops with a reduction of the row.

    few: the least elements of a row for one that is read.
    """

    few: int = FEW

    def run(self, module: Module, ctx: PassContext) -> None:
        apply_rules(module, {"gather_elements": [self._gather], "slice": [self._slice]})

    def _gather(self, op: Operation) -> Value | None:
        indices, axis = op.operands[1], xt.attrs_of(op).axis
        return self._moved(op, axis, lambda v: xt.gather_elements(v, indices, axis=axis))

    def _slice(self, op: Operation) -> Value | None:
        a, old, new = xt.attrs_of(op), xt.shape_of(op.operands[0]), xt.shape_of(op.results[0])
        cut = [d for d in range(len(old)) if old[d] != new[d]]
        return self._moved(op, cut[0], lambda v: xt.slice(v, **vars(a))) if len(cut) == 1 else None

    def _moved(self, op: Operation, axis: int, take: Callable[[Value], Value]) -> Value | None:
        """`op`, which takes elements along `axis` and all of the other dims, of the operands of what it reads."""
        shape, left = xt.shape_of(op.operands[0]), xt.shape_of(op.results[0])
        whole, picked = shape[axis], left[axis]
        few = isinstance(picked, int) and (picked * self.few <= whole if isinstance(whole, int) else picked == 1)
        if not few or any(n != m for d, (n, m) in enumerate(zip(shape, left, strict=True)) if d != axis):
            return None
        source = producer(op.operands[0])
        if source is None or not is_pointwise(source) or not _reduces(op.operands[0], axis, set()):
            return None
        own = [aligned_shape(v, len(shape)) for v in source.operands]
        if any(s[axis] != 1 and s != shape for s in own):
            return None         # a column for all rows
        return rebuilt(source, [v if s[axis] == 1 else take(v) for v, s in zip(source.operands, own, strict=True)])


def _reduces(value: Value, axis: int, seen: set[Value]) -> bool:
    """Whether pointwise ops make `value` of a number for each row along `axis` that a reduction gives."""
    source = producer(value)
    if source is None or value in seen:
        return False
    seen.add(value)
    if not is_pointwise(source):
        return False
    rank = len(xt.shape_of(value))
    return any(_reduced(v, set()) if aligned_shape(v, rank)[axis] == 1 else _reduces(v, axis, seen)
               for v in source.operands)


def _reduced(value: Value, seen: set[Value]) -> bool:
    source = producer(value)
    if source is None or value in seen:
        return False
    seen.add(value)
    return name_of(source) == "reduce" or \
        (is_pointwise(source) or name_of(source) == "reshape") and any(_reduced(v, seen) for v in source.operands)
