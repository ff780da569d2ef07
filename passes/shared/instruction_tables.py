"""The matrix instructions of a chip, from the tables that it names.

A table is a module with ``INSTRUCTIONS``, named in ``Chip.instruction_tables``; a chip names in ``Chip.matrix`` the
families it has. What an instruction is: passes/gpu/layout/fragments.py.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xcc.passes.gpu.layout.fragments import MatrixInstruction
    from xcc.targets.base import Chip


def instructions_of(chip: Chip) -> list[MatrixInstruction]:
    """Every instruction of the families that `chip` has, in the tables' order."""
    return [i for table in chip.instruction_tables for i in importlib.import_module(table).INSTRUCTIONS
            if i.family in chip.matrix]
