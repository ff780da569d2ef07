"""What a CPU's dot product instructions are like; a chip's target lists those that there are (`Chip.dot_products`)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xcc.diagnostics import UserError
from xcc.targets.base import Chip


@dataclass(frozen=True)
class DotProduct:
    """One instruction: each lane of an accumulator gets the sum of a group of products of narrow elements.

    Attributes:
        name: the entry of ``Chip.matrix`` that says that a chip has it.
        group: products that are summed in a lane.
        types: pairs of element types that it multiplies.
        intrinsics: LLVM's, by lanes of the accumulator.
        unsigned: which operands it takes as unsigned.
        pairs: it sums two products of i16, exact for bytes of either sign: a group of four takes it twice.
    """

    name: str
    group: int
    types: tuple[tuple[str, str], ...]
    intrinsics: Mapping[int, str]
    unsigned: frozenset[int] = frozenset()
    pairs: bool = False

    def takes(self, left: str, right: str) -> bool:
        """Whether it multiplies elements of these types: products commute, so its operands may be exchanged."""
        return (left, right) in self.types or (right, left) in self.types

    @property
    def element(self) -> str:
        """What it multiplies, but for signs: "i8" or "bf16"."""
        return self.types[0][0].removeprefix("u")


def dot_products_of(chip: Chip | None, names: Sequence[str] = ()) -> list[DotProduct]:
    """The dot products that `chip` has, or those of its target that have these `names`; none for no chip."""
    known = {d.name: d for table in chip.dot_products for d in importlib.import_module(table).INSTRUCTIONS} \
        if chip is not None else {}
    for name in names:
        if name not in known:
            where = f"chip {chip.name}'s target has {', '.join(known) or 'none'}" if chip is not None else "name a chip"
            raise UserError(f"there is no dot product instruction '{name}': {where}")
    return [known[name] for name in names or (chip.matrix if chip is not None else ()) if name in known]
