"""Which dot products a chip has, of the table of its target."""

from __future__ import annotations

import pytest

from xcc.diagnostics import UserError
from xcc.passes.shared.dot_instructions import dot_products_of
from xcc.targets.cpu.chip import CHIPS
from xcc.targets.nvptx.chip import chips


@pytest.mark.parametrize(("chip", "names", "left", "rounds"), [
    ("znver4", ["vnni", "bf16"], "ui8", True), ("x86-64-v3", ["madd"], "", False),
    ("neoverse-v1", ["usdot", "bfdot"], "ui8", True), ("apple-m1", ["sdot"], "i8", False)])
def test_what_chips_have(chip: str, names: list[str], left: str, rounds: bool) -> None:
    c = CHIPS[chip]
    assert [d.name for d in dot_products_of(c)] == names
    assert (c.byte_products, c.rounds_to_bf16) == (left, rounds)


def test_names_are_of_the_target_whatever_the_chip_has() -> None:
    assert [d.name for d in dot_products_of(CHIPS["x86-64-v3"], ("bf16",))] == ["bf16"]
    assert dot_products_of(None) == [] == dot_products_of(chips()["sm_90a"])
    with pytest.raises(UserError, match="no dot product instruction 'vnny': chip znver4's target has vnni, usdot, "):
        dot_products_of(CHIPS["znver4"], ("vnny",))
    with pytest.raises(UserError, match="no dot product instruction 'vnni': name a chip"):
        dot_products_of(None, ("vnni",))
