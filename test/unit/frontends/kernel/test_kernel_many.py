"""Kernels of any number of arguments: `*xs`."""

from __future__ import annotations

import numpy as np
import pytest

import xcc


@xcc.kernel
def sums(y, *xs, gain, BLOCK: xcc.constexpr = 8):
    at = xcc.program_id(0) * BLOCK
    y.store(at, sum((x.tile(at, BLOCK, other=0) for x in xs), xcc.zeros(BLOCK)) * gain)


@pytest.mark.parametrize("mode", ["", "check", "eager"])
def test_any_number(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_KERNEL", mode)
    for many in (0, 1, 3, 1):
        xs, y = [np.full(10, i + 1, np.float32) for i in range(many)], np.full(10, -1, np.float32)
        sums[2](y, *xs, gain=2.0)
        np.testing.assert_array_equal(y, np.full(10, many * (many + 1)))
    if not mode:
        assert [len(s.kinds) for s in sums.specialisations] == [3, 4, 6]


def test_what_is_missing() -> None:
    y = np.zeros(10, np.float32)
    with pytest.raises(xcc.UserError, match="the argument 'gain' is missing"):
        sums[2](y, y)
    with pytest.raises(xcc.UserError, match="the argument 'y' is missing"):
        sums[2](gain=1.0)
    with pytest.raises(xcc.UserError, match="has no parameter 'xs': it has y, gain, BLOCK"):
        sums[2](y, xs=y, gain=1.0)

    def two(y, *xs, xs_0=1):
        y.store(0, 1.0)

    with pytest.raises(xcc.UserError, match=r"'xs_0' is what an argument of \*xs is called"):
        xcc.kernel(two)[1](y, y)


def test_declared() -> None:
    """The types say how many there are."""
    types = {"y": "f32[n]", "xs_0": "f32[n]", "xs_1": "f32[n]", "gain": "float"}
    made = xcc.kernel(types=types, grid=lambda a: (xcc.cdiv(a["y"].shape[0], 8),))(sums.function)
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    made(y, x, x + 1, gain=0.5)
    np.testing.assert_array_equal(y, x + 0.5)
    assert [i["name"] for i in made.compile().manifest["inputs"]] == ["y", "xs_0", "xs_1", "gain"]
