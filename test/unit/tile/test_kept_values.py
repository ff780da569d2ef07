"""Values that several operations need, kept by the loops of a reduction or by their own, against numpy."""

import numpy as np
import pytest

from xcc import tile

ROWS, COLUMNS = 4, 256


def _run(program, columns):
    buffers = {name: tile.BufferOf("f32", (None,) * rank) for name, rank in (("x", 2), ("y", 2), ("s", 2))}
    made = tile.compile(tile.build("kept", buffers, program, grid=("rows",)), "cpu")
    x = np.random.default_rng(0).uniform(0.5, 1, (2 * ROWS, columns)).astype(np.float32)
    y, s = np.zeros_like(x), np.zeros((2 * ROWS, columns), np.float32)
    made.launch([x, y, s], (2,))
    return x.astype(np.float64), y, s


def _blocks(x):
    return x.reshape(2, ROWS, -1)


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS - 37])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_reduced(axis, columns):
    """A dear value that a reduction of rows, of columns or of all needs first."""
    def program(x, y, s):
        at = (tile.program_id(0) * ROWS, 0)
        e = tile.exp(x.tile(at, (ROWS, COLUMNS), other=-np.inf))
        total = e.sum() if axis is None else e.sum(axis=axis, keepdims=True)
        y.store(at, e / total)

    x, y, _ = _run(program, columns)
    e = np.exp(_blocks(x))
    want = e / e.sum((1, 2) if axis is None else axis + 1, keepdims=True)
    np.testing.assert_allclose(_blocks(y), want, rtol=1e-5)


def test_one_of_another():
    """Of two dear values one is made of the other ahead of any reduction; the sum of the first comes second."""
    def program(x, y, s):
        at = (tile.program_id(0) * ROWS, 0)
        e = tile.exp(x.tile(at, (ROWS, COLUMNS), other=0))
        f = tile.exp(e - 1)
        low, high = f.sum(axis=1, keepdims=True), e.sum(axis=1, keepdims=True)
        y.store(at, e * low)
        s.store(at, f * high)

    x, y, s = _run(program, COLUMNS)
    e = np.exp(x)
    f = np.exp(e - 1)
    np.testing.assert_allclose(y, e * f.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(s, f * e.sum(1, keepdims=True), rtol=1e-5)


def test_turned():
    """A value that the first reduction needs turned over, and one that it needs twice, stretched."""
    def program(x, y, s):
        at = (tile.program_id(0) * ROWS, 0)
        t = x.tile(at, (ROWS, COLUMNS), other=0)
        e = tile.exp(t)
        y.store(at, e + (tile.transpose(e) * 2).sum(axis=1))
        row = tile.exp(t.sum(axis=1, keepdims=True) / COLUMNS)
        none = tile.zeros((ROWS, COLUMNS), "f32")
        s.store(at, (row + none).sum(axis=1, keepdims=True) * row + none)

    x, y, s = _run(program, COLUMNS)
    e = np.exp(_blocks(x))
    np.testing.assert_allclose(_blocks(y), e + 2 * e.sum(1, keepdims=True), rtol=1e-5)
    row = np.exp(x.mean(1, keepdims=True))
    np.testing.assert_allclose(s, np.broadcast_to(row * row * COLUMNS, s.shape), rtol=1e-5)


def test_written_between():
    """A value read of memory that is written before the reduction that needs it."""
    def program(x, y, s):
        at = (tile.program_id(0) * ROWS, 0)
        e = tile.exp(y.tile(at, (ROWS, COLUMNS), other=0) + x.tile(at, (ROWS, COLUMNS), other=0))
        y.store(at, x.tile(at, (ROWS, COLUMNS), other=0) * 3)
        s.store(at, e / e.sum(axis=1, keepdims=True))

    x, y, s = _run(program, COLUMNS)
    e = np.exp(x)
    np.testing.assert_allclose(y, x * 3, rtol=1e-6)
    np.testing.assert_allclose(s, e / e.sum(1, keepdims=True), rtol=1e-5)
