"""Atomic updates: of small buffers, which a CPU's chunks of instances update in copies of their own, and of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import xcc
from xcc import tile
from xcc.frontends.kernel.ahead import declared_program
from xcc.interpreter.faults import KernelFault

KINDS = {"int32": ("add", "max", "min", "and", "or", "xor"), "int64": ("add", "min", "or"), "uint32": ("max", "min"),
         "float32": ("add", "max", "min"), "float64": ("add",), "float16": ("add", "max")}
WAYS = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor}


@xcc.kernel
def update(x, places, y, kind: xcc.constexpr, BLOCK: xcc.constexpr):
    """Every element of x goes to one of y, those that are 3 apart to none; places outside y are left out."""
    at = (xcc.program_id(0) + xcc.program_id(1) * xcc.num_programs(0)) * BLOCK
    y.atomic(kind, places.tile(at, BLOCK, other=-1), x.tile(at, BLOCK, other=0), mask=(at + xcc.arange(BLOCK)) % 3 != 1)


def expected(x: Any, places: Any, y: Any, kind: str) -> Any:
    inside = (places >= 0) & (places < len(y)) & (np.arange(len(x)) % 3 != 1)
    out = y.copy()
    WAYS[kind].at(out, places[inside], x[inside])
    return out


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("extent", [1, 37, 700, 140000])
def test_kinds_and_types(dtype: str, extent: int) -> None:
    """What the buffer held counts, and a buffer that has no room for copies is updated as it is."""
    rng = np.random.default_rng(extent)
    n = 40_000 if extent < 140000 else 3000
    x, y = (rng.integers(0 if dtype[0] == "u" else -9, 50, k).astype(dtype) for k in (n, extent))
    if dtype == "float16":
        x[:] = np.arange(n) % 50 == 0       # sums that its mantissa holds, in any order
        y[:] = 0
    places = rng.integers(-2, extent + 2, n).astype(np.int32)
    for kind in KINDS[dtype]:
        got = y.copy()
        update[(13, -(-n // 256 // 13))](x, places, got, kind, BLOCK=256)
        np.testing.assert_array_equal(got, expected(x, places, y, kind), err_msg=f"{dtype} {kind}")
        got = y.copy()
        update[(1, 1)](x[:250], places[:250], got, kind, BLOCK=256)     # by one thread
        np.testing.assert_array_equal(got, expected(x[:250], places[:250], y, kind), err_msg=f"{dtype} {kind}")


@xcc.kernel
def numbered(places, counts, numbers):
    """Each element's number among those of its place, and how many there are."""
    at = xcc.program_id(0) * 64
    numbers.store(at, counts.atomic_add(places.tile(at, 64, other=-1), 1))


@pytest.mark.parametrize("instances", [1, 5])
def test_old_values(instances: int) -> None:
    """Each update finds another number, whether one thread makes all of them or several."""
    places = np.random.default_rng(0).integers(0, 7, 64 * instances - 3)
    counts, numbers = np.zeros(7, np.int32), np.zeros(len(places), np.int32)
    numbered[(instances,)](places, counts, numbers)
    np.testing.assert_array_equal(counts, np.bincount(places, minlength=7))
    for place, n in enumerate(counts):
        np.testing.assert_array_equal(np.sort(numbers[places == place]), np.arange(n))


@xcc.kernel
def rows_of_table(x, rows, y, kind: xcc.constexpr, COLUMNS: xcc.constexpr):
    """Rows of x to those of y that `rows` names, eight an instance; a row outside y goes nowhere."""
    first, at = xcc.program_id(0) * 8, xcc.arange(COLUMNS)[None, :]
    y.atomic(kind, (rows.tile(first, 8, other=-1)[:, None], at), x.tile((first, 0), (8, COLUMNS), other=0),
             mask=at != 3)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "float16"])
@pytest.mark.parametrize("places, columns", [(40, 33), (5000, 33), (2600, 128), (1, 64)])
def test_rows_of_a_table(places: int, columns: int, dtype: str) -> None:
    """Of one that has room for copies, and of one whose rows are updated in place; rows meet in and among instances."""
    rng = np.random.default_rng(places)
    rows = rng.integers(-1, places + 1, 1003).astype(np.int32)
    rows[::3] = rows[0]
    x = rng.integers(-9, 9, (1003, columns)).astype(dtype) if dtype != "float16" else \
        np.asarray(np.arange(1003 * columns).reshape(1003, columns) % 97 == 0, dtype)
    inside, kept = (rows >= 0) & (rows < places), np.arange(columns) != 3
    for kind in ("add", "max"):
        want = rng.integers(0, 3, (places, columns)).astype(dtype)
        got = want.copy()
        rows_of_table[(-(-1003 // 8),)](x, rows, got, kind, COLUMNS=1 << (columns - 1).bit_length())
        WAYS[kind].at(want, (rows[inside][:, None], np.flatnonzero(kept)), x[inside][:, kept])
        np.testing.assert_array_equal(got, want, err_msg=f"{dtype} {kind}")


@xcc.kernel(types={"x": "f32[m, n]", "lock": "i32[1]", "y": "f32[n]"}, grid=lambda a: (a["x"].shape[0],))
def locked(x, lock, y, RELEASE: xcc.constexpr):
    """The sums of columns, by one instance at a time."""
    t = x.tile((xcc.program_id(0), 0), (1, 64), other=0).reshape(64)
    while (lock.compare_swap(0, 0, 1) if RELEASE else lock.atomic("exchange", 0, 1)) == 1:
        pass
    y.store(0, y.tile(0, 64, other=0) + t)
    lock.atomic("exchange", 0, 0 if RELEASE else 1)


@pytest.mark.parametrize("target, chip", [("nvptx", "sm_90a"), ("amdgcn", "gfx1100")])
def test_locks(target: str, chip: str) -> None:
    """Workgroups take turns in the interpreter; to wait for a lock that nobody lets go is a fault."""
    x = np.random.default_rng(0).standard_normal((7, 50)).astype(np.float32)

    def run(**fixed: bool) -> Any:
        y = np.zeros(50, np.float32)
        tile.run(declared_program(locked, fixed), [x, np.zeros(1, np.int32), y], target, chip)
        return y

    np.testing.assert_allclose(run(RELEASE=True), x.sum(axis=0), rtol=1e-4, atol=1e-4)
    if target == "nvptx":
        with pytest.raises(KernelFault, match="endless-loop: a loop around an atomic update waits"):
            run(RELEASE=False)


@xcc.kernel(types={"keys": "i64[n]", "best": "i64[t]", "seen": "i64[n]"},
            grid=lambda a: (xcc.cdiv(a["keys"].shape[0], 32),))
def tops(keys, best, seen):
    """The largest of keys by their rest, by compare and swap: what others put there is looked at again."""
    at = xcc.program_id(0) * 32 + xcc.arange(32)
    k = keys.gather(at, other=-1)
    slot = k % 3
    old = best.compare_swap(slot, 0, 0, mask=k >= 0)
    left = old < k
    while left.any():
        now = best.compare_swap(slot, old, k, mask=left)
        left = left & (now != old) & (now < k)
        old = now
    seen.scatter(at, best.compare_swap(slot, -1, 5, mask=k >= 0))


@pytest.mark.parametrize("target, chip", [("eager", ""), ("check", ""), ("cpu", ""), ("nvptx", "sm_90a"),
                                          ("amdgcn", "gfx1100")])
def test_compare_and_swap(target: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 40, 100)
    best, seen = np.zeros(3, np.int64), np.zeros(100, np.int64)
    if target in ("nvptx", "amdgcn"):
        tile.run(declared_program(tops, {}), [keys, best, seen], target, chip)
    else:
        monkeypatch.setenv("XCC_KERNEL", target.replace("cpu", ""))
        tops(keys, best, seen)
    np.testing.assert_array_equal(best, [max(k for k in keys if k % 3 == i) for i in range(3)])
    assert (keys[:32] <= seen[:32]).all() and (seen[-4:] > 0).all() and set(seen) <= set(keys)


@xcc.kernel(types={"x": "f32[m, n]", "rows": "i32[m]", "sums": "f32[n]", "tops": "f32[n]", "table": "f32[t, n]"},
            grid=lambda a: (a["x"].shape[0],), config={"persistent": 3})
def by_places(x, rows, sums, tops, table):
    """Places that are the same in all instances, of sums and of maxima, some of them left out, and rows of a table."""
    i, at = xcc.program_id(0), xcc.arange(64)
    t = x.tile((i, 0), (1, 64), other=0).reshape(64)
    sums.atomic_add(at, t, mask=at != 5)
    tops.atomic_max(at, t)
    table.atomic_add((rows.tile(i, 1)[:, None], at[None, :]), (t * t)[None, :])


@pytest.mark.parametrize("target, chip", [("nvptx", "sm_90a"), ("amdgcn", "gfx1100")])
def test_places_of_gpus(target: str, chip: str) -> None:
    """Workgroups keep what they add to the same places in registers; neighbours are updated by neighbouring lanes."""
    rng = np.random.default_rng(0)
    x, rows = rng.integers(-9, 9, (10, 50)).astype(np.float32), rng.integers(0, 4, 10).astype(np.int32)
    sums, tops, table = np.ones(50, np.float32), np.full(50, 3, np.float32), np.ones((4, 50), np.float32)
    tile.run(declared_program(by_places, {}), [x, rows, sums, tops, table], target, chip)
    want = np.ones((4, 50))
    np.add.at(want, rows, x * x)
    np.testing.assert_array_equal(sums, np.where(np.arange(50) == 5, 1, 1 + x.sum(0)))
    np.testing.assert_array_equal(tops, np.maximum(3, x.max(0)))
    np.testing.assert_array_equal(table, want)


def test_a_buffer_of_several_dims_and_two_ways() -> None:
    """One buffer that is only added to, one that is added to and enlarged, one whose sums are read as they grow."""
    @xcc.kernel
    def k(x, sums, mixed, counter, seen):
        i = xcc.program_id(0)
        t = x.tile(i * 64, 64)
        sums.atomic_add((t // 8, t % 8), 1)
        mixed.atomic_add(t % 16, 1)
        mixed.atomic_max(t % 4 + 16, t)
        seen.store(i, counter.atomic_add(0, 1))

    x = np.random.default_rng(0).integers(0, 64, 64 * 500).astype(np.int32)
    sums, mixed, counter, seen = (np.zeros(s, np.int32) for s in ((8, 8), 20, 1, 500))
    k[500](x, sums, mixed, counter, seen)
    np.testing.assert_array_equal(sums.reshape(-1), np.bincount(x, minlength=64))
    np.testing.assert_array_equal(mixed[:16], np.bincount(x % 16, minlength=16))
    np.testing.assert_array_equal(mixed[16:], [x[x % 4 == n].max() for n in range(4)])
    assert sorted(seen) == list(range(500))


@pytest.mark.parametrize("dtype, kind", [("float32", "add"), ("int64", "max"), ("float16", "min"), ("bfloat16", "max")])
@pytest.mark.parametrize("columns", [1, 13, 64, 300])
def test_neighbours(dtype: str, kind: str, columns: int) -> None:
    """Whole rows, one that begins outside, and rows of a table by their numbers: what lies side by side goes by
    vectors, and what a mask or an end leaves out stays."""
    @xcc.kernel
    def k(x, numbers, sums, table, seen, first, kind: xcc.constexpr, N: xcc.constexpr):
        row = xcc.program_id(0)
        t, at = x.tile((row * 4, 0), (4, N), other=0), xcc.arange(N)
        sums.atomic(kind, at + first, t.max(axis=0), mask=at < 290)
        number = numbers.tile(row * 4, 4, other=-1)
        table.atomic(kind, (number[:, None], at[None, :]), t, mask=(number != 2)[:, None])
        old = seen.atomic(kind, (row * 4 + xcc.arange(4)[:, None], at[None, :]), t)
        x.store((row * 4, 0), old)

    rng = np.random.default_rng(columns)
    rows, block, first = 203, 512, -3
    x = torch.from_numpy(rng.integers(-60, 60, (rows, columns))).to(getattr(torch, dtype))
    numbers, n = rng.integers(-2, 8, rows).astype(np.int32), x.double().numpy().copy()
    sums, table, seen = (torch.zeros(s, dtype=x.dtype) for s in (columns, (7, columns), (rows, columns)))
    seen += 5
    k[-(-rows // 4)](x, numbers, sums, table, seen, first, kind, block)
    tops = np.stack([np.maximum(n[i:i + 4].max(0), 0 if i + 4 > rows else -99) for i in range(0, rows, 4)])
    want = np.zeros(columns)
    for top in tops:
        WAYS[kind].at(want, np.arange(columns)[:290 + first], np.pad(top, (0, 9))[-first:][:columns][:290 + first])
    inside = np.arange(columns) < columns + first       # behind the row's end `other` is read
    np.testing.assert_array_equal(sums.double().numpy()[inside], want[inside])
    chosen = (numbers >= 0) & (numbers < 7) & (numbers != 2)
    want = np.zeros((7, columns))
    WAYS[kind].at(want, numbers[chosen], n[chosen])
    np.testing.assert_array_equal(table.double().numpy(), want)
    np.testing.assert_array_equal(seen.double().numpy(), WAYS[kind](5.0, n))
    assert (x == 5).all()


def test_not_a_number_and_no_instances() -> None:
    x, places = np.array([1, np.nan, 3] * 400, np.float32), np.array([0, 1, 2] * 400, np.int32)
    y = np.zeros(4, np.float32)
    update[(0,)](x, places, y, "add", BLOCK=64)
    assert not y.any()
    update[(19,)](x, places, y, "max", BLOCK=64)
    np.testing.assert_array_equal(y, expected(x, places, np.zeros(4, np.float32), "max"))
