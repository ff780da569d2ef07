"""Control flow of kernels: traced programs do what Python does with numpy tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import xcc


def doubled_above(n, limit):
    if n > limit:
        return n * 2
    return n


@xcc.kernel
def loop_in_loop(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(0, i + 1, 2):
            total += x.tile(j, 1).sum()
    y.store(0, total)


@xcc.kernel
def while_loop(x, y):
    i = 0
    value = x.tile(0, 1).sum()
    while value < 10.0 and i < 5:
        value = value * 2 + 1
        i += 1
    y.store(0, value + i)


@xcc.kernel
def branch(x, y):
    n = x.shape[0]
    if n > 4:
        t = x.tile(0, 4)
    elif n == 3:
        t = x.tile(0, 4, other=5)
    else:
        t = xcc.zeros(4)
    y.store(0, t)


@xcc.kernel
def early(x, y):
    if xcc.program_id(0) != 0:
        return
    n = doubled_above(x.shape[0], 3) + doubled_above(2, 3)
    if n > 100:
        y.store(0, 1.0)
        return
    y.store(0, n.to(xcc.f32))


@xcc.kernel
def chosen(x, y):
    n = x.shape[0]
    big = n if n > 4 else 4
    inside = 2 < n <= 5
    either = n == 1 or not inside
    y.store(0, xcc.where(either, -1.0, 1.0) * big)
    y.store(1, max(n, 2) + min(n, 7))


@xcc.kernel
def unrolled(x, y, PARTS: xcc.constexpr = 3):
    tiles = [x.tile(i, 1, other=0) for i in range(PARTS)]
    for i in xcc.static_range(PARTS):
        if i == 2:
            break
        y.store(i, tiles[i] * i)
    for scale, t in zip((2.0, 3.0), tiles, strict=False):
        y.store(3, t * scale)


@xcc.kernel
def closures(x, y):
    steps = {"n": 1}

    def twice(f, v):
        return f(f(v))

    y.store(0, twice(lambda v: v + steps["n"], x.tile(0, 1)))
    for i in range(2):
        y.store(i + 1, step(x.tile(i, 1, other=4)) + faculty(3))


@xcc.kernel
def step(t):
    return t + 10


def faculty(n):
    return n * faculty(n - 1) if n else 1


@xcc.kernel
def types_widen(x, y):
    a, b = 0, 1
    for _ in range(3):
        a, b = b, a + b
    count = 0
    best = 0.0
    for i in range(x.shape[0]):
        t = x.tile(i, 1).max()
        if t > best:
            best = t
            count += 1
    y.store(0, best + count + b)


@xcc.kernel
def at_a_place(x, y):
    last = x.shape[0] - 1
    y.scatter(last, x.gather(last) + x.gather(9, other=2.0))


@xcc.kernel
def lists(x, y):
    """Tiles that lists, tuples and dictionaries hold change from turn to turn and in branches, in place and not."""
    n = x.shape[0]
    held, other = [xcc.zeros(1), xcc.zeros(1)], {"a": xcc.zeros(1), "n": (1, [2.0])}
    same = held
    for i in range(n):
        for j in xcc.static_range(2):
            held[j] += x.tile(i, 1) * (j + 1)
        other = {"a": other["a"] + held[0], "n": (other["n"][0] * 2, [other["n"][1][0] + 1])}
    pair = (held[0], 1)
    if n > 2:
        held[1] = held[1] * 2
        pair = (held[1] + 1, 3)
    k = 0
    while k < n:
        other["n"][1][0] += 1
        k += 1
    y.store(0, same[0] + 10 * same[1])
    y.store(1, other["a"] + other["n"][0] * other["n"][1][0])
    y.store(2, pair[0] * pair[1])


@dataclass
class Extremes:
    low: Any
    high: Any


@dataclass(frozen=True)
class Sums:
    total: Any
    extremes: Extremes

    def plus(self, t):
        return Sums(self.total + t, self.extremes)


@xcc.kernel
def records(x, y):
    """Objects of dataclasses do so, too, and what they hold."""
    sums, held = Sums(xcc.zeros(1), Extremes(0, 0)), Sums(0.0, Extremes(xcc.full(1, 9.0), xcc.full(1, -9.0)))
    same = held.extremes
    for i in range(x.shape[0]):
        sums = sums.plus(t := x.tile(i, 1))
        held.extremes.low = xcc.minimum(held.extremes.low, t)
        if i > 1:
            held.extremes.high = xcc.maximum(held.extremes.high, t * 2)
    y.store(0, sums.total)
    y.store(1, held.extremes.high - same.low)


@xcc.kernel
def two_names(x, y):
    """A list that two variables hold and one of them changes; both, where the loop makes new ones."""
    a = b = [x.gather(0), 2.0]
    c = d = [0.0, 0.0]
    for i in range(x.shape[0]):
        a[0] += i
        c = [c[0] + d[1], c[1] + 1]
        made = same = [c[0], 1.0]
        made[1] += 1
        d = [same[1], d[1] + 1]
    y.store(0, b[0])
    y.store(1, c[0] + 100 * d[0] + 1000 * d[1])


@xcc.kernel
def counts_down(x, y):
    n, at = x.shape[0], 0
    digits = 0.0
    for i in range(n - 1, -1, -1):
        digits = digits * 10 + i
    for i in range(7, n, -3):
        digits = digits * 10 + i
    for i in reversed(range(1, n, 2)):
        digits = digits * 10 + i
    for i in reversed(range(n, 0, -2)):
        digits = digits * 10 + i
    for i in reversed(range(3)):
        at = at * 10 + i
    y.store(0, digits)
    y.store(1, at)


@xcc.kernel
def truths(x, y):
    """Numbers are true where they are not 0; element types are what names them."""
    left = x.shape[0] - 1
    if left:
        y.store(0, 1.0)
    if not left - 2:
        y.store(1, 2.0)
    while left:
        y.store(left, left)
        left -= 1
    y.store(6, 3.0 if x.gather(0) - 1 else 4.0)
    if x.dtype == np.float32 and x.dtype == "float32" and x.dtype == torch.float32 and x.dtype != "relu":
        y.store(7, x.gather(0).to(torch.float16).to(xcc.f32))


@xcc.kernel
def goes_on(x, y):
    total, seen, k = 0.0, 0, 0
    for i in range(x.shape[0]):
        t = x.gather(i)
        if t == 2:
            seen += 1
            continue
        if i > 2:
            if t == 1:
                continue
            elif t == 0:
                total += 5
            else:
                total += 7
                continue
            seen += 10
        total += t
    for i in xcc.static_range(3):
        if i == 1:
            continue
        y.store(i, i + total)
    while k < 5:
        k += 1
        if k == x.shape[0]:
            continue
        seen += 100
    y.store(4, seen)


KERNELS = (loop_in_loop, while_loop, branch, early, chosen, unrolled, closures, types_widen, at_a_place, lists, records,
           two_names, counts_down, truths, goes_on)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("kernel", KERNELS, ids=[k.name for k in KERNELS])
def test_as_python_does(kernel: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for mode in ("eager", "check", ""):
        monkeypatch.setenv("XCC_KERNEL", mode)
        x, y = np.arange(1, size + 1, dtype=np.float32) % 4, np.zeros(8, np.float32)
        kernel[2 if kernel is early else 1](x, y)
        found.append(y)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
    assert (found[0] != -9).any()


def test_no_size_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_KERNEL", "check")

    @xcc.kernel
    def copy(x, y, n, BLOCK: xcc.constexpr):
        y.store(0, x.tile(0, BLOCK, other=n))

    def run(size: int, dtype: Any = np.float32, n: Any = 1, block: int = 8, step: int = 1) -> None:
        copy[1](np.ones(size * step, dtype)[::step], np.zeros(8, dtype), n, BLOCK=block)

    run(3)
    run(5, n=7)
    run(5, np.float16)
    run(3, block=16)
    run(4, step=2)
    run(5, n=2.0)
    run(6, n=3.0)
    assert [s.why for s in copy.specialisations] == [
        "the first launch",
        "x is dense f16[?], was dense f32[?], y is dense f16[?], was dense f32[?]",
        "BLOCK is 16, was 8",
        "x is strided f32[?], was dense f32[?]",
        "n is f64, was i64"]
    assert str(copy.specialisations[0]) == "copy(x: dense f32[?], y: dense f32[?], n: i64, BLOCK = 8): the first launch"


def test_prints_and_asserts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    @xcc.kernel
    def say(x):
        t = x.tile(0, 2)
        print("sum", t.sum())
        assert (t < 5).all(), "too large"

    for mode in ("eager", "check"):
        monkeypatch.setenv("XCC_KERNEL", mode)
        say[1](np.array([1, 2], np.float32))
        assert "sum 3" in capsys.readouterr().out
        with pytest.raises((xcc.UserError, AssertionError), match="too large"):
            say[1](np.array([1, 7], np.float32))


