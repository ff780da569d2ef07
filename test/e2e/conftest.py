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
