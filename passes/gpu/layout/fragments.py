"""Matrix instructions as layouts: what each lane holds of A (m x k), B (k x n) and C (m x n).

Which a chip has: passes/shared/instruction_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.targets.base import Chip


@dataclass(frozen=True)
class MatrixInstruction:
    """One instruction of one warp: C += A * B.

    Attributes:
        name: "mma.m16n8k16.f16", ...
        family: the entry of ``Chip.matrix`` that has it.
        m, n, k: sizes of its tile.
        a, b, c: layouts with inputs ``register`` and ``lane`` over (m, k), (k, n) and (m, n).
        types: element types of A, B and C, e.g. ("f16", "f16", "f32"); unsigned bytes are "ui8".
        emit: (a, b, c) 1-D register vectors to the new c vector, built at the current insertion point; None where the
            instruction reads A and B from shared memory (passes/gpu/vendor/warpgroup.py).
        exact: false when A and B lose bits (tf32): used only when the kernel's config allows it.
        parts: how many times the instruction runs on a tile: k is that of all of them, the registers of A and B are
            those of the first part, then the second. A lane then holds more neighbours along k, read at once.
        warps: how many warps issue it together; c then has as many of ``warp``.
    """

    name: str
    family: str
    m: int
    n: int
    k: int
    a: Layout
    b: Layout
    c: Layout
    types: tuple[str, str, str]
    emit: Callable[[Any, Any, Any], Any] | None
    exact: bool = True
    parts: int = 1
    warps: int = 1

    def part(self, number: int, operand: int) -> range:
        """The registers of A (operand 0) or B (1) that part `number` takes."""
        count = (self.a, self.b)[operand].registers // self.parts
        return range(number * count, (number + 1) * count)


def instructions_for(chip: Chip, types: tuple[str, str], lossy: bool = False) -> list[MatrixInstruction]:
    """The instructions that multiply elements of two types; without losing bits of them, but where that is allowed."""
    return [i for i in instructions_of(chip) if i.types[:2] == types and (i.exact or lossy)]


def select_instruction(chip: Chip, types: tuple[str, str, str], shape: tuple[int, int, int], lossy: bool = False
                       ) -> MatrixInstruction | None:
    """The first instruction for these element types whose tile divides (m, n, k); None when there is none."""
    for i in instructions_for(chip, types[:2], lossy):
        if i.warps == 1 and i.types == types and shape[0] % i.m == 0 and shape[1] % i.n == 0 \
                and shape[2] % i.k == 0:
            return i
    return None


def select_group_instruction(chip: Chip, types: tuple[str, str, str], shape: tuple[int, int, int],
                             warps: int, lossy: bool = False) -> MatrixInstruction | None:
    """The widest instruction of several warps whose tiles divide (m, n, k) among `warps`; None when there is none."""
    found = [i for i in instructions_for(chip, types[:2], lossy) if i.warps > 1 and i.types == types
             and warps % i.warps == 0
             and all(s % t == 0 for s, t in zip(shape, (i.m, i.n, i.k), strict=True))
             and shape[0] // i.m * (shape[1] // i.n) % (warps // i.warps) == 0]
    return max(found, key=lambda i: i.n, default=None)
