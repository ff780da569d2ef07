"""Every GPU schedule on AMD chips: no scratch, LDS within limits, matrix instructions; numbers in the interpreter."""

from __future__ import annotations

import os

import pytest
import schedule_cases as cases

from xcc.targets.amdgcn.chip import CHIPS

EVERY = float(os.environ.get("XCC_EXAMPLES", 1)) > 1
PICKED = [(case, chip) for n, case in enumerate(cases.CASES) for i, chip in enumerate(CHIPS)
          if EVERY or i == n % len(CHIPS)]
"""All of them with XCC_EXAMPLES above 1, else each schedule on one chip, the chips in turn."""


def ids(pairs: list[tuple[cases.Case, str]]) -> list[str]:
    return [f"{case.name}-{chip}" for case, chip in pairs]


@pytest.mark.parametrize(("case", "chip"), PICKED, ids=ids(PICKED))
def test_code(case: cases.Case, chip: str) -> None:
    assert not cases.faults(case, chip, cases.compiled_case(case, chip).kernels)


@pytest.mark.parametrize(("case", "chip"), PICKED, ids=ids(PICKED))
def test_numbers(case: cases.Case, chip: str) -> None:
    cases.run_small(case, chip)
