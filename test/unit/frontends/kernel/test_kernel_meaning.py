"""What an operation of a kernel means in numpy, its program and its code mean, too: every one in every type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xcc
from xcc.frontends.kernel.types import DTYPES
from xcc.runtime.dtypes import numpy_dtype

FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
NUMBERS = (*FLOATS, *INTEGERS)
SHAPE = (4, 8)
ROUNDED = {"f32": 1e-5, "bf16": 1.6e-2}     # sums in another order, functions rounded otherwise

Op = Callable[..., Any]
ARITHMETIC: tuple[tuple[str, Op], ...] = (
    ("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("lt", operator.lt), ("le", operator.le),
    ("eq", operator.eq), ("ne", operator.ne), ("maximum", lambda a, b: xcc.maximum(a, b)),
    ("minimum", lambda a, b: xcc.minimum(a, b)), ("where", lambda a, b: xcc.where(a > b, a, b)),
    ("number", lambda a, b: (2 * a - 1) * b + 1),
    ("rows", lambda a, b: a.max(axis=0)[None, :] + b.min(axis=1)[..., None]),
    ("square", lambda a, b: a ** 3 + b ** 0), ("abs", lambda a, b: abs(a) + xcc.abs(b)), ("shapes", lambda a, b: (
        a.reshape(8, 4).T + b).reshape(2, 4, 4).sum(axis=1)), ("neg", lambda a, b: -a + b))
BITS: tuple[tuple[str, Op], ...] = (
    ("and", operator.and_), ("or", operator.or_), ("xor", operator.xor), ("invert", lambda a, b: ~a & b),
    ("shl", lambda a, b: a << (b & 3)), ("shr", lambda a, b: a >> (b & 3)), ("floordiv", lambda a, b: a // (b | 1)),
    ("mod", lambda a, b: a % (b | 1)), ("cdiv", lambda a, b: xcc.cdiv(a, 3)),
    ("divmod", lambda a, b: sum(divmod(a, (b | 1)))), ("div", operator.truediv),
    ("dot", lambda a, b: xcc.dot(a, b.T)))
FUNCTIONS: tuple[tuple[str, Op], ...] = (
    ("div", operator.truediv), ("exp", lambda a, b: xcc.exp(a)), ("exp2", lambda a, b: xcc.exp2(a)),
    ("log", lambda a, b: xcc.log(abs(a) + 1)), ("log2", lambda a, b: xcc.log2(abs(a) + 1)),
    ("sqrt", lambda a, b: xcc.sqrt(abs(a))), ("rsqrt", lambda a, b: xcc.rsqrt(abs(a) + 1)),
    ("sin", lambda a, b: xcc.sin(a)), ("cos", lambda a, b: xcc.cos(a)), ("tanh", lambda a, b: xcc.tanh(a)),
    ("erf", lambda a, b: xcc.erf(a)), ("powers", lambda a, b: abs(a) ** 0.5 + (abs(b) + 1) ** -0.5 - (b * b + 1) ** -3),
    ("expm1", lambda a, b: xcc.expm1(a / 8)), ("log1p", lambda a, b: xcc.log1p(abs(a) / 8)),
    ("tan", lambda a, b: xcc.tan(a / 4)), ("asin", lambda a, b: xcc.asin(a / 4)),
    ("acos", lambda a, b: xcc.acos(a / 4)), ("atan", lambda a, b: xcc.atan(a)), ("sinh", lambda a, b: xcc.sinh(a)),
    ("cosh", lambda a, b: xcc.cosh(a)),
    ("pow", lambda a, b: (abs(a) + 0.5) ** b + (abs(a) + 1) ** 2.5), ("of", lambda a, b: 3 ** a),
    ("round", lambda a, b: round(a) + round(a * 0 + 2.5)),
    ("floor", lambda a, b: xcc.floor(a)), ("ceil", lambda a, b: xcc.ceil(a)), ("sigmoid", lambda a, b: xcc.sigmoid(a)))
REDUCED: tuple[tuple[str, Op], ...] = (
    ("max", lambda a, b: a.max(axis=1)), ("min", lambda a, b: a.min(axis=0)), ("sum", lambda a, b: a.sum(axis=1)),
    ("all", lambda a, b: a.sum()), ("prod", lambda a, b: a.prod(axis=0, keepdims=True)),
    ("cumsum", lambda a, b: xcc.cumsum(a, axis=0)), ("reverse", lambda a, b: xcc.cumsum(a, reverse=True)),
    ("cumprod", lambda a, b: xcc.cumprod(a)), ("both", lambda a, b: a.max(axis=(0, 1), keepdims=True) + b))
TABLES = ((ARITHMETIC, NUMBERS), (BITS, INTEGERS), (FUNCTIONS, FLOATS), (REDUCED, NUMBERS))


def numbers(dtype: str, seed: int) -> Any:
    draw = np.random.default_rng(seed)
    if dtype in FLOATS:
        return draw.uniform(-4, 4, SHAPE).astype(numpy_dtype(dtype))
    return draw.integers(0 if dtype[0] == "u" else -100, 100, SHAPE).astype(numpy_dtype(dtype))


def both(monkeypatch: pytest.MonkeyPatch, launch: Callable[[], Any]) -> tuple[Any, Any]:
    made = []
    for mode in ("eager", "check"):
        monkeypatch.setenv("XCC_KERNEL", mode)
        made.append(launch())
    return made[0], made[1]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_operations(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    cases = [case for table, types in TABLES if dtype in types for case in table]

    @xcc.kernel
    def k(a, b, y):
        kinds = []
        for row, (_, f) in enumerate(cases):
            made = f(a.tile((0, 0), SHAPE), b.tile((0, 0), SHAPE))
            kinds.append(made.type)
            made = made.to(xcc.i32) if made.dtype == xcc.i1 else made
            y.store((row, 0), made.reshape(1, math.prod(made.shape)).to(xcc.f64))
        seen.append(kinds)

    def launch() -> Any:
        y = np.zeros((len(cases), 64))
        k[1](a, b, y)
        return y

    seen: list[Any] = []
    eager, program = both(monkeypatch, launch)
    assert seen[0] == seen[1]
    exact = dtype in ("f64", *INTEGERS)
    for row, (name, _) in enumerate(cases):
        np.testing.assert_allclose(program[row], eager[row], 1e-12 if exact else 3e-7, 1e-30, err_msg=name)
    if dtype in ("f32", "bf16", "i64", "ui8"):
        monkeypatch.delenv("XCC_KERNEL")
        for row, (name, values) in enumerate(zip([c[0] for c in cases], launch(), strict=True)):
            np.testing.assert_allclose(values, eager[row], 1e-12 if exact else ROUNDED[dtype], 1e-6, err_msg=name)


@pytest.mark.parametrize("source", (*NUMBERS, "i1"))
def test_conversions(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = numbers("i32" if source == "i1" else source, 3)

    @xcc.kernel
    def k(a, y, TO: xcc.constexpr):
        x = a.tile((0, 0), SHAPE)
        x = x > 0 if source == "i1" else x
        if source in FLOATS and TO[0] == "u":
            x = abs(x)
        y.store((0, 0), x.to(getattr(xcc, TO)))

    for to in NUMBERS:
        def launch(to: str = to) -> Any:
            y = np.zeros(SHAPE, numpy_dtype(to))
            k[1](a, y, to)
            return y.astype(np.float64)

        np.testing.assert_array_equal(*both(monkeypatch, launch), err_msg=to)


@pytest.mark.parametrize("dtype", ("f32", "f64", "f16", "i32", "i64", "ui32"))
def test_places(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gathers, scatters and atomics, with indices outside and masks."""
    @xcc.kernel
    def k(a, i, y, z):
        rows, columns = i.tile(0, 8)[:, None], xcc.arange(4)[None, :]
        t = a.gather((rows, columns), other=3)
        y.scatter((rows, columns * 2), t, mask=columns < 3)
        z.atomic_add(rows % 5 + columns, t)
        z.atomic_max(xcc.arange(2, 4), t.max().reshape(1))
        y.store((1, 1), a.tile((2, -1), (2, 4), other=1, mask=columns != 2), mask=columns < 2)

    def launch() -> Any:
        y, z = np.zeros(SHAPE, numpy_dtype(dtype)), np.zeros(9, numpy_dtype(dtype))
        k[1](numbers(dtype, 4) // 8, np.array([3, -1, 0, 2, 9, 1, 7, 8], np.int32), y, z)
        return np.concatenate([y.reshape(-1), z]).astype(np.float64)

    eager, program = both(monkeypatch, launch)
    np.testing.assert_array_equal(program, eager)
    assert eager.any()


def test_numbers_take_the_type_of_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size, an index, a counter and an argument, with a tile of each type."""
    @xcc.kernel
    def k(x, n, p):
        t = x.tile(0, 4)
        for i in range(n):
            t = t + i + x.shape[0] - xcc.program_id(0)
        seen.append([(t * n).dtype, (t + 1).dtype, (t * p).dtype])
        x.store(0, t)

    for name in NUMBERS:
        seen: list[Any] = []
        both(monkeypatch, lambda name=name: k[1](np.ones(4, numpy_dtype(name)), 3, 0.5))
        own = DTYPES[name]
        assert all(s == [own, own, own if own.is_float else DTYPES["f32"]] for s in seen), name


def test_random_numbers_are_those_of_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    from xcc.dialects.xt.random import philox, unit

    @xcc.kernel
    def k(y, seed):
        y.store(0, xcc.rand(seed, xcc.arange(16)))
        y.store(16, xcc.randn(seed, xcc.arange(16)))

    def launch() -> Any:
        y = np.zeros(32, np.float32)
        k[1](y, -5)
        return y

    first, second = (unit(word) for word in philox(16, -5))
    normal = np.sqrt(-2 * np.log(first + 2.0**-24)) * np.cos(2 * np.pi * second)     # as xt.random_normal has it
    for made in both(monkeypatch, launch):
        np.testing.assert_array_equal(made[:16], unit(philox(16, -5)[0]))
        np.testing.assert_allclose(made[16:], normal, 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", ("f32", "f16", "i32", "ui8", "i64"))
def test_combined_along_an_axis(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a function of one tile and of two at once, by size, and in order; in code, too."""
    def better(a: Any, i: Any, b: Any, j: Any) -> Any:
        if dtype == "none":
            return a, i
        return xcc.where(a >= b, a, b), xcc.where(a >= b, i, j)

    @xcc.kernel
    def k(a, y, i):
        x = a.tile((0, 0), SHAPE)
        places = xcc.arange(8, dtype=xcc.i32)[None, :] + xcc.zeros((4, 1), xcc.i32)
        best, place = xcc.reduce((x, places), 1, better)
        y.store((0, 0), best[None, :])
        i.store((0, 0), place[None, :])
        i.store((1, 0), xcc.argmax(x, 1)[None, :])
        i.store((2, 0), xcc.argmin(x, axis=0)[None, :])
        y.store((1, 0), xcc.reduce(x, 0, lambda p, q: xcc.minimum(p, q))[None, :])
        y.store((2, 0), xcc.scan(x, 1, lambda p, q: xcc.maximum(p, q)))
        y.store((6, 0), xcc.cummax(x, axis=1, reverse=True))
        y.store((10, 0), xcc.sort(x))
        y.store((14, 0), xcc.sort(x, descending=True))
        best, place = xcc.topk(x, 4)
        y.store((18, 0), best)
        i.store((3, 0), place)
        best, place = xcc.topk(x.reshape(2, 16), 2)     # in rounds
        y.store((18, 4), best.reshape(1, 4))
        i.store((3, 4), place.reshape(1, 4))
        i.store((7, 0), xcc.argsort(x))
        first, second = xcc.split(x.reshape(16, 2))
        y.store((22, 0), xcc.join(second, first).reshape(SHAPE))
        i.store((11, 0), xcc.join(xcc.arange(4), -1).reshape(1, 8))

    def launch() -> Any:
        y, i = np.zeros((26, 8), numpy_dtype(dtype)), np.zeros((12, 8), np.int32)
        k[1](numbers(dtype, 5), y, i)
        return np.concatenate([y.astype(np.float64), i])

    eager, program = both(monkeypatch, launch)
    np.testing.assert_array_equal(program, eager)
    monkeypatch.delenv("XCC_KERNEL")
    np.testing.assert_array_equal(launch(), eager)
    x = numbers(dtype, 5).astype(np.float64)
    np.testing.assert_array_equal(eager[10:14], np.sort(x, 1))
    np.testing.assert_array_equal(eager[18:22, :4], -np.sort(-x, 1)[:, :4])
    np.testing.assert_array_equal(eager[29:33, :4], np.argsort(-x, 1, kind="stable")[:, :4])
    order = np.argsort(-x.reshape(2, 16), 1, kind="stable")[:, :2]
    np.testing.assert_array_equal(eager[29, 4:], order.reshape(4))
    np.testing.assert_array_equal(eager[18, 4:], np.take_along_axis(x.reshape(2, 16), order, 1).reshape(4))
    np.testing.assert_array_equal(eager[33:37], np.argsort(x, 1, kind="stable"))
    np.testing.assert_array_equal(eager[22:26], x.reshape(-1, 2)[:, ::-1].reshape(4, 8))
    np.testing.assert_array_equal(eager[37], [0, -1, 1, -1, 2, -1, 3, -1])
    np.testing.assert_array_equal(eager[2:6], np.maximum.accumulate(x, 1))


def test_atomics_give_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    @xcc.kernel
    def k(counter, y):
        mine = counter.atomic_add(0, 1)
        y.store(mine, xcc.program_id(0))
        old = counter.atomic("exchange", xcc.arange(4) + 1, xcc.program_id(0), mask=xcc.arange(4) < 3)
        y.store(8, old)

    for mode in ("eager", ""):
        monkeypatch.setenv("XCC_KERNEL", mode)
        counter, y = np.zeros(6, np.int32), np.full(12, -1, np.int32)
        k[5](counter, y)
        assert counter[0] == 5 and sorted(y[:5]) == [0, 1, 2, 3, 4] and counter[4] == 0


def test_values_that_are_used_twice_again_and_again() -> None:
    """Of positions and of elements: as many ways lead to the first as there are bits, and none is walked twice."""
    @xcc.kernel
    def k(x, y):
        at, t = xcc.arange(16), x.tile(0, 16)
        for _ in xcc.static_range(40):
            at, t = at + at, t + t
        y.store(0, (t + at).to(xcc.f64))

    y = np.zeros(16)
    k[1](np.ones(16, np.float64), y)
    np.testing.assert_array_equal(y, 2.0 ** 40 * (1 + np.arange(16)))


def test_a_form_for_each_number_of_grid_dims() -> None:
    """What a launch has no dim for is 0, of 1."""
    @xcc.kernel
    def places(y):      # type: ignore[no-untyped-def]
        at = [xcc.program_id(a) for a in range(3)]
        counts = [xcc.num_programs(a) for a in range(3)]
        y.store(at[0] + counts[0] * (at[1] + counts[1] * at[2]), (at[0] + 10 * at[1] + 100 * at[2]).to(xcc.i64))

    for grid in ((4,), (2, 2), (4,), (2, 1, 2), 3):
        y = np.full(4, -1)
        places[grid](y)
        sizes = (*(grid if isinstance(grid, tuple) else (grid,)), 1, 1)[:3]
        want = [i + 10 * j + 100 * k for k in range(sizes[2]) for j in range(sizes[1]) for i in range(sizes[0])]
        assert y.tolist() == want + [-1] * (4 - len(want))
    assert [f.why for f in places.specialisations] == ["the first launch", "the grid has 2 dims, had 1",
                                                       "the grid has 3 dims, had 1"]


def test_declared_sizes_are_numbers_of_the_code() -> None:
    """Of arrays that have them, and of others of that length along that dim; other sizes have their own form."""
    @xcc.kernel(types={"x": "f32[m, 37]"})
    def sums(x, y, BLOCK: xcc.constexpr):
        total = xcc.zeros((1, BLOCK))
        for at in range(0, x.shape[1], BLOCK):
            total += x.tile((xcc.program_id(0), at), (1, BLOCK), other=0)
        y.store((xcc.program_id(0), 0), total.sum(axis=1, keepdims=True))

    for n in (37, 21, 37):
        x = np.arange(3 * n, dtype=np.float32).reshape(3, n)
        y = xcc.empty((3, 1))
        sums[(3,)](x, y, BLOCK=8)
        np.testing.assert_array_equal(y[:, 0], x.sum(1))
    assert [str(f.kinds["x"]) for f in sums.specialisations] == ["dense f32[?, 37]", "dense f32[?, ?]"]
    known, free = (str(f.program.module) for f in sums.specialisations)
    assert "memref<?x37xf32>" in known and "memref<?x37xf32>" not in free
