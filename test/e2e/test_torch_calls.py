"""Some calls of single ops with odd arguments; `python test/e2e/torch_calls.py 30` draws them of every op."""

from __future__ import annotations

import random

import pytest
from compiled import EXAMPLES
from torch_calls import drawn, failure, recorded
from torch_samples import database, supported

OPS, EACH = 6, 12


@pytest.mark.parametrize("seed", range(max(1, int(4 * EXAMPLES))))
def test_equals_eager(seed: int) -> None:
    """Calls that `OPS` of torch's own operator tests make, each with arguments exchanged."""
    numbers = random.Random(seed)
    names = [n for n in database() if supported(n, "f32")]
    wrong = []
    for info in numbers.sample(names, OPS):
        calls = recorded(info, "f32", most=3)
        for call in numbers.choices(calls, k=EACH) if calls else ():
            case = drawn(call, numbers)
            said = "" if case is None else failure(case)
            if said and not said.startswith("refused"):
                wrong.append(f"{case.sample.op}: {said}" if case else said)
    assert not wrong, "\n".join(wrong)
