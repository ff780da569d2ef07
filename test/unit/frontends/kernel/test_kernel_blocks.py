"""Positions that are a block's are read and written as one, whatever makes them and the mask; others as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xcc
from xcc import tile
from xcc.frontends.kernel.trace import trace

READS = 24
WRITES = 12


def drawn_index(draw: Any, rank: int, dim: int, at: Any, n: Any) -> Any:
    """Positions along a dim: a scalar, or one and the number of an element along one of two axes of 4 and 8."""
    axis = int(draw.integers(-1, 2)) if rank == 2 else 1
    start = int(draw.integers(-3, 4))
    base = (0, start, at + start, n - 4, start - at)[draw.integers(5)]
    if axis < 0:
        return base
    steps = xcc.arange((4, 8)[axis])
    steps = steps.to(xcc.i32) if draw.integers(4) == 0 else steps.reshape(2, (2, 4)[axis]).reshape((4, 8)[axis])
    shaped = steps[:, None] if axis == 0 else steps[None, :]
    return base + shaped if draw.integers(2) else shaped - 1 + base


def drawn_mask(draw: Any, index: Any, n: Any, width: Any) -> Any:
    """Bounds above, below, of what is shifted, of the other axis, and what is no bound."""
    columns, rows = xcc.arange(8)[None, :], xcc.arange(4)[:, None]
    kind = draw.integers(8)
    if kind == 0:
        return None
    return (index[-1] < width, index[0] < n - 2, n > index[-1] + 1, (index[0] >= 0) & (index[-1] <= n),
            (columns < n) & (rows < 3), columns % 2 == 0, index[-1] - index[-1] + columns < 5)[kind - 1]


@xcc.kernel
def reads(x, y, n, SEED: xcc.constexpr):      # type: ignore[no-untyped-def]
    draw = np.random.default_rng(SEED)
    for case in xcc.static_range(READS):
        index = [drawn_index(draw, x.ndim, d, xcc.program_id(0), n) for d in range(x.ndim)]
        mask = drawn_mask(draw, index, n, x.shape[-1])
        t = x.gather(index, other=-1, mask=mask)
        t = t.broadcast_to((4, 8)) if t.ndim else xcc.full((4, 8), t)
        y.store((xcc.program_id(0) * READS + case, 0, 0), t[None])


@xcc.kernel
def writes(x, z, n, SEED: xcc.constexpr):     # type: ignore[no-untyped-def]
    """Each case writes a slice of its own; what it does not reach stays."""
    draw = np.random.default_rng(SEED)
    value = x.tile((0, 0), (4, 8), other=7)
    for case in xcc.static_range(WRITES):
        rows = xcc.arange(4)[:, None] + int(draw.integers(-2, 3))
        columns = xcc.arange(8)[None, :] + xcc.program_id(0) - 3
        index = (rows, columns) if draw.integers(2) else (columns, rows)
        z.scatter((xcc.program_id(0) * WRITES + case, *index), value, mask=drawn_mask(draw, index, n, z.shape[-1]))


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("rank", [1, 2])
def test_reads(rank: int, strided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(400, dtype=np.float32).reshape(20, 20)[::2, :10 * (1 + strided):1 + strided]
    x = x if rank == 2 else x[3]
    found = []
    for mode in ("eager", "check", ""):
        monkeypatch.setenv("XCC_KERNEL", mode)
        y = np.zeros((2 * READS, 4, 8), np.float32)
        reads[2](x, y, 6, SEED=rank + 2 * strided)
        found.append(y)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
    assert (found[0] == -1).any() and (found[0] > 0).any()


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
def test_writes(strided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(1, 41, dtype=np.float32).reshape(4, 10)
    found = []
    for mode in ("eager", "check", ""):
        monkeypatch.setenv("XCC_KERNEL", mode)
        z = np.zeros((2 * WRITES, 7, 9 * (1 + strided)), np.float32)
        writes[2](x, z[:, :, ::1 + strided], 6, SEED=3 + strided)
        found.append(z)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
    assert found[0].any()


@pytest.mark.parametrize("gpu", [("nvptx", "sm_90a"), ("amdgcn", "gfx1100")], ids=["sm_90a", "gfx1100"])
def test_on_gpus(gpu: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    x, z = np.arange(100, dtype=np.float32).reshape(10, 10), np.zeros((2 * WRITES, 7, 9), np.float32)
    for kernel, out in ((reads, np.zeros((2 * READS, 4, 8), np.float32)), (writes, z)):
        made, want = out.copy(), out.copy()
        monkeypatch.setenv("XCC_KERNEL", "eager")
        kernel[2](x, want, 6, SEED=9)
        given = {"x": tile.BufferOf("f32", x.shape), "yz"[kernel is writes]: tile.BufferOf("f32", out.shape),
                 "n": tile.ScalarOf("i64")}
        program = trace(kernel.function, kernel.name, {"SEED": 9}, given)
        tile.compile(program, *gpu, emit=False).interpret([x, made, 6], (2,))
        np.testing.assert_array_equal(made, want)
