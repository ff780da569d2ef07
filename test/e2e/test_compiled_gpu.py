"""The property tests of compiled programs for GPUs: their code in the interpreter, a few examples of each family."""

from __future__ import annotations

import os
from typing import Any

import pytest
import test_compiled_elementwise
import test_compiled_fusion
import test_compiled_indexing
import test_compiled_norm
import test_compiled_quant
import test_compiled_recurrent
import test_compiled_reduce
import test_compiled_sampling
import test_compiled_symbolic
import test_compiled_views
from compiled import examples, on_chip
from hypothesis import given
from hypothesis import strategies as st

FAMILIES = (test_compiled_elementwise, test_compiled_fusion, test_compiled_indexing, test_compiled_norm,
            test_compiled_quant, test_compiled_recurrent, test_compiled_reduce, test_compiled_sampling,
            test_compiled_symbolic, test_compiled_views)
CHIPS = ("sm_80", "sm_90a", "gfx90a", "gfx942", "gfx1100")


def properties() -> dict[str, Any]:
    """The property tests of all families, by name, without their own number of examples."""
    found = {n: f for family in FAMILIES for n, f in vars(family).items() if hasattr(f, "hypothesis")}
    return {n: f.hypothesis.inner_test for n, f in found.items()}


def on_each_chip() -> list[tuple[str, str]]:
    """Each property on one chip, the chips in turn; on all of them with XCC_EXAMPLES above 1."""
    names, every = list(properties()), float(os.environ.get("XCC_EXAMPLES", 1)) > 1
    return [(n, c) for i, n in enumerate(names) for k, c in enumerate(CHIPS) if every or k == i % len(CHIPS)]


@pytest.mark.parametrize(("name", "chip"), on_each_chip())
def test_property(name: str, chip: str) -> None:
    check = properties()[name]

    @given(st.data())
    @examples(3)
    def on_this_chip(data: Any) -> None:
        with on_chip(chip):
            check(data)

    on_this_chip()
