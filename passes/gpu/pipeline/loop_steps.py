"""The steps of a loop: where each begins, and which there are."""

from __future__ import annotations

from xcc._mlir import Operation, Value, arith_d
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index


class Steps:
    """The steps from `lower` to below `upper`, `step` apart: index values."""

    def __init__(self, lower: Value, upper: Value, step: Value) -> None:
        self.lower, self.upper, self.step = lower, upper, step

    @staticmethod
    def of(loop: Operation) -> Steps:
        """The steps of an scf.for."""
        return Steps(*list(loop.operands)[:3])

    @property
    def count(self) -> int | None:
        """How many there are; None where only the run knows."""
        low, high, step = (int_constant(v) for v in (self.lower, self.upper, self.step))
        return None if low is None or high is None or step is None else max(0, -((low - high) // step))

    def before_last(self, last: int) -> Value:
        """Where the last `last` steps begin; the first step where there are not as many, so that some of these are
        behind the end."""
        low, step, count = int_constant(self.lower), int_constant(self.step), self.count
        if low is not None and step is not None and count is not None:
            return index(low + max(0, count - last) * step)
        extent = arith_d.maxsi(arith_d.subi(self.upper, self.lower), index(0))
        others = arith_d.maxsi(arith_d.subi(arith_d.ceildivui(extent, self.step), index(last)), index(0))
        return arith_d.addi(self.lower, arith_d.muli(others, self.step))

    def later(self, iv: Value, steps: int) -> Value:
        """Where the step that is `steps` behind `iv` begins."""
        if not steps:
            return iv
        at, size = int_constant(iv), int_constant(self.step)
        if at is not None and size is not None:
            return index(at + size * steps)
        ahead = index(size * steps) if size is not None else arith_d.muli(self.step, index(steps))
        return arith_d.addi(iv, ahead)

    def inside(self, iv: Value) -> Value | None:
        """Whether `iv` is a step of the loop; None when it is known to be."""
        low, high = int_constant(iv), int_constant(self.upper)
        if low is not None and high is not None and low < high:
            return None
        return arith_d.cmpi(arith_d.CmpIPredicate.slt, iv, self.upper)
