"""Kernels whose instances and threads wait for each other, or leave loops early: each on this CPU, checked, and as the
code of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_written_kernels import program_of, unnamed
from written_kernel_cases import Case, f64

import xcc
from xcc import tile


@xcc.kernel
def takes_turns(count, x, y, N: xcc.constexpr):     # type: ignore[no-untyped-def]
    """Every warp reads the element that one thread writes, and a row that is reduced in place."""
    at = xcc.program_id(0)
    c = count.tile(at, 1)
    if c.sum() == 3:
        count.store(at, c + 1)
    y.store(at, y.tile(at, 2048) + c.sum())
    t = x.tile((at, at), (1, N))
    e = xcc.exp(t - t.max())
    x.store((at, at), e / e.sum())


def turns() -> Case:
    x = np.random.default_rng(0).standard_normal((1, 32)).astype(np.float32)
    e = np.exp(f64(x) - x.max())
    return Case(takes_turns, (1,), {"count": np.full(1, 3, np.int32), "x": x, "y": np.ones(2048, np.float32), "N": 32},
                {"count": [4], "x": e / e.sum(), "y": np.full(2048, 4.0)})


@xcc.kernel
def compacts(x, out, count, state, threshold, BLOCK: xcc.constexpr):        # type: ignore[no-untyped-def]
    """What is above the threshold, in order, by decoupled look-back (Merrill and Garland, 2016): of a block before,
    `state` has a flag in the upper half, 1: how many it has, 2: how many there are up to its end."""
    block = xcc.program_id(0)
    at = block * BLOCK + xcc.arange(BLOCK)
    t = x.gather(at, other=0, mask=at < x.shape[0])
    keep = ((t > threshold) & (at < x.shape[0])).to(xcc.i64)
    before, j, flag = xcc.full((), 0, xcc.i64), block - 1, 0
    if block > 0:
        state.atomic("exchange", block, (1 << 32) + keep.sum())
        while flag != 2:
            seen = state.atomic_add(j, 0)
            flag = seen >> 32
            if flag != 0:
                before += seen & 0xffffffff
                j -= 1
    state.atomic("exchange", block, (2 << 32) + before + keep.sum())
    out.scatter(before + xcc.cumsum(keep, axis=0) - keep, t, mask=keep != 0)
    if block == xcc.num_programs(0) - 1:
        count.store(0, before + keep.sum())


def compaction() -> Case:
    x = np.random.default_rng(0).uniform(-1, 1, 300).astype(np.float32)
    want = x[x > 0.25]
    return Case(compacts, (5,), {"x": x, "out": np.zeros(300, np.float32), "count": np.zeros(1, np.int64),
                                 "state": np.zeros(5, np.int64), "threshold": 0.25, "BLOCK": 64},
                {"out": np.pad(want, (0, 300 - len(want))), "count": [len(want)]})


@xcc.kernel
def groups(a, b, c, rows, counter, M: xcc.constexpr, N: xcc.constexpr, K: xcc.constexpr):       # type: ignore[no-untyped-def]
    """Products of groups of rows, `rows[g]` to `rows[g + 1]`, with `b[g]`: instances take tiles by a counter."""
    columns = xcc.cdiv(b.shape[2], N)
    at, before = counter.atomic_add(0, 1), 0
    for group in range(b.shape[0]):
        first, last = rows.gather(group), rows.gather(group + 1)
        tiles = xcc.cdiv(last - first, M) * columns
        while at < before + tiles:
            row, column = first + (at - before) // columns * M, (at - before) % columns * N
            acc = xcc.zeros((M, N), xcc.f32)
            for k in range(0, a.shape[1], K):
                right = b.tile((group, k, column), (1, K, N), other=0).reshape(K, N)
                acc = xcc.dot(a.tile((row, k), (M, K), other=0), right, acc)
            c.store((row, column), acc, mask=(row + xcc.arange(M) < last)[:, None])
            at = counter.atomic_add(0, 1)
        before += tiles


def grouped() -> Case:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 29)).astype(np.float16), rng.standard_normal((3, 29, 37)).astype(np.float16)
    rows = np.array([0, 17, 17, 40], np.int32)
    want = np.concatenate([f64(a[rows[g]:rows[g + 1]]) @ f64(b[g]) for g in range(3)])
    return Case(groups, (3,), {"a": a, "b": b, "c": np.full((40, 37), np.nan, np.float16), "rows": rows,
                               "counter": np.zeros(1, np.int32), "M": 16, "N": 16, "K": 16}, {"c": want})


def found(keys, n, value):      # type: ignore[no-untyped-def]
    low, high = 0, n
    while True:
        if low >= high:
            return low, -1
        middle = (low + high) // 2
        key = keys.gather(middle)
        if key == value:
            return middle, 1
        if key < value:
            low = middle + 1
        else:
            high = middle


@xcc.kernel
def searches(keys, values, places, hits):       # type: ignore[no-untyped-def]
    i = xcc.program_id(0)
    place, hit = found(keys, keys.shape[0], values.gather(i))
    places.store(i, place)
    hits.store(i, hit)


def search() -> Case:
    keys = np.sort(np.random.default_rng(0).choice(100, 30, False)).astype(np.int32)
    values = np.arange(0, 100, 7).astype(np.int32)
    given = {"keys": keys, "values": values, "places": np.full(15, -9, np.int32), "hits": np.zeros(15, np.int32)}
    return Case(searches, (15,), given, {"places": np.searchsorted(keys, values),
                                         "hits": np.where(np.isin(values, keys), 1, -1)})


@pytest.mark.parametrize("way", ["cpu", "check", "sm_80", "gfx1100"])
@pytest.mark.parametrize("make", [turns, compaction, grouped, search])
def test_kernel(make: Callable[[], Case], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make()
    if way in ("cpu", "check"):
        monkeypatch.setenv("XCC_KERNEL", way.removeprefix("cpu"))
        case.kernel[case.grid](**case.arguments)
    else:
        config: dict[str, Any] = {"threads": 128} if make is turns else {}
        program, arrays = program_of(case, (2, 0), config)
        made = tile.compile(program, "nvptx" if way == "sm_80" else "amdgcn", way, emit=False)
        made.interpret(arrays, unnamed(program, case.grid))
    case.check(2e-3)
