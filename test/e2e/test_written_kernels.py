"""The acceptance kernels, on each way to run them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from written_kernel_cases import CASES, TOLERANCE, TYPES, Case


@pytest.mark.parametrize("mode", ["eager", "check"])
@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("make", CASES, ids=[c.__name__ for c in CASES])
def test_in_numpy(make: Callable[[str, bool], Case], dtype: str, strided: bool, mode: str,
                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_KERNEL", mode)
    case = make(dtype, strided)
    case.kernel[case.grid](**case.arguments)
    case.check(TOLERANCE[dtype])
