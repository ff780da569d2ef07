"""400 samples of torch's own operator tests, drawn by a seed, by the xt dialect's own semantics.

``make conformance-torch`` runs all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from torch_outcomes import outcome
from torch_report import expected_failures, is_expected
from torch_samples import Case, database, drawn, supported

PARTS, EACH = 4, 100


def counted(seed: int) -> Iterator[Case]:
    """Samples that count, each of an op drawn of all."""
    numbers = random.Random(seed)
    keys = [(op, dtype) for op in database() for dtype in ("f32", "i64", "i1") if supported(op, dtype)]
    while True:
        case = drawn(*numbers.choice(keys), numbers)
        if case is not None and case.counts:
            yield case


@pytest.mark.parametrize("part", range(PARTS))
def test_samples(part: int) -> None:
    expected = expected_failures()
    wrong = []
    for _, case in zip(range(EACH), counted(part), strict=False):
        failure = outcome(case)
        listed = expected.get((case.sample.op, case.sample.dtype, case.sample.number))
        if not is_expected(failure, listed):
            wrong.append(f"{case.sample}: {failure}" if failure else
                         f"{case.sample} passes, but is listed as failing ({listed}): delete its entry")
    assert not wrong, "\n".join(wrong)


def test_expected_failures_exist() -> None:
    assert all(op in database() and supported(op, dtype) for op, dtype, _ in expected_failures())
