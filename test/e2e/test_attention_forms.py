"""Attention as exporters spell it is one kernel, and right: each form, head size and type in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_forms import BOUND, Case, module_of, small_cases
from compiled import compiled, on_chip

CHIPS = ("sm_90a", "gfx942", "sm_80", "gfx1100")


@pytest.mark.parametrize("case, chip", [(c, CHIPS[n % len(CHIPS)]) for n, c in enumerate(small_cases())], ids=str)
def test_form(case: Case, chip: str) -> None:
    arrays = case.arrays()
    with on_chip(chip):
        model: Any = compiled(module_of(case, arrays))
    (got,) = model.run({f"x{i}": a for i, a in enumerate(arrays)}).values()
    names = [k["name"] for k in model.artifact.manifest["kernels"]]
    assert [n.rsplit("_", 1)[0] for n in names].count("attention") == 1, names
    assert not any(n.startswith(("reduce", "dot_general")) for n in names), names
    assert case.error(np.asarray(got), case.reference(arrays)) < BOUND[case.dtype]
