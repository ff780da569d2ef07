"""The steps of a loop: where each begins, and which there are."""

from __future__ import annotations

from typing import Any

from xcc._mlir import arith_d
from xcc.passes.gpu.layout.registers import index
from xcc.passes.gpu.layout.tile_ops import constant

__all__ = ["Steps"]


class Steps:
    """The steps from `lower` to below `upper`, `step` apart: index values."""

    def __init__(self, lower: Any, upper: Any, step: Any) -> None:
        self.lower, self.upper, self.step = lower, upper, step

    @staticmethod
    def of(loop: Any) -> Steps:
        """The steps of an scf.for."""
        return Steps(*list(loop.operands)[:3])

    @property
    def numbers(self) -> tuple[int, int, int]:
        """First step, end and distance of steps, which are constants."""
        low, high, step = (constant(v) for v in (self.lower, self.upper, self.step))
        assert low is not None and high is not None and step is not None
        return low, high, step

    @property
    def count(self) -> int:
        """How many there are; 0 where that is not known."""
        low, high, step = (constant(v) for v in (self.lower, self.upper, self.step))
        return 0 if low is None or high is None or step is None else -((low - high) // step)

    def at(self, number: int) -> Any:
        """Where step `number` of a known number of steps begins."""
        low, _, step = self.numbers
        return index(low + number * step)

    def later(self, iv: Any, steps: int) -> Any:
        """Where the step that is `steps` behind `iv` begins."""
        if not steps:
            return iv
        size = constant(self.step)
        ahead = index(size * steps) if size is not None else arith_d.muli(self.step, index(steps))
        return arith_d.addi(iv, ahead)

    def inside(self, iv: Any) -> Any:
        """Whether `iv` is a step of the loop; None when it is known to be."""
        low, high = constant(iv), constant(self.upper)
        if low is not None and high is not None and low < high:
            return None
        return arith_d.cmpi(arith_d.CmpIPredicate.slt, iv, self.upper)
