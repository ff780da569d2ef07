"""Memory that nobody wrote is NaN in all of these tests (xcc.runtime.poison)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def poison() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if "XCC_POISON" not in os.environ:
            patch.setenv("XCC_POISON", "1")
        yield


@pytest.fixture
def fresh_torch() -> None:
    """Nothing is compiled yet, nor counted, and random numbers begin anew. A test that fails shows why torch compiled
    again."""
    import torch

    torch._logging.set_logs(recompiles=True)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    if torch.cuda.is_available():       # torch's own results are what others are compared with
        torch.backends.cudnn.allow_tf32 = False
