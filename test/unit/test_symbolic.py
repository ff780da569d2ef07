"""Symbolic dims: algebra, text, evaluation."""

from __future__ import annotations

import struct
from math import floor, inf, isqrt, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcc import symbolic
from xcc.bounds import interval
from xcc.runtime.dim_values import DimValues
from xcc.symbolic import Dim, ceildiv, dim_max, dim_min, evaluate, floordiv, mod, parse, root, scaled, sym, truncdiv

N, M = sym("n"), sym("m")


HALF, SEVEN_TENTHS, MINUS = (struct.unpack("<q", struct.pack("<d", x))[0] for x in (0.5, 0.7, -1.3))


def test_equal_expressions_are_equal() -> None:
    assert (N + M) * (N - M) == N * N - M * M
    assert N - N == 0
    assert floordiv(N * 4 + 8, 4) == N + 2
    assert floordiv(floordiv(N + 1, 2) + 1, 2) == floordiv(N + 3, 4)
    assert floordiv(N * M, M) == N
    assert mod(N * 6, 3) == 0
    assert ceildiv(N, 1) == N
    assert dim_max(N, N + 1) == N + 1
    assert dim_min(N, M) == dim_min(M, N)


dims = st.recursive(
    st.one_of(st.integers(-20, 20), st.sampled_from([N, M])),
    lambda d: st.one_of(
        st.tuples(d, d).map(lambda p: p[0] + p[1]), st.tuples(d, d).map(lambda p: p[0] * p[1]),
        st.tuples(d, st.integers(1, 9)).map(lambda p: floordiv(*p)),
        st.tuples(d, st.integers(1, 9)).map(lambda p: truncdiv(*p)),
        st.tuples(d, st.integers(1, 9)).map(lambda p: mod(*p)), d.map(root),
        st.tuples(d, st.sampled_from([HALF, SEVEN_TENTHS, MINUS])).map(lambda p: scaled(*p)),
        st.tuples(d, d).map(lambda p: dim_max(*p)), st.tuples(d, d).map(lambda p: dim_min(*p))), max_leaves=8)


@given(dims)
def test_text_reads_back(d: Dim) -> None:
    assert parse(str(d)) == d


@given(dims, dims, st.integers(1, 9), st.integers(0, 50), st.integers(0, 50))
def test_values(a: Dim, b: Dim, by: int, n: int, m: int) -> None:
    env = {"n": n, "m": m}
    x, y = evaluate(a, env), evaluate(b, env)
    assert evaluate(a + b, env) == x + y
    assert evaluate(a * b, env) == x * y
    assert evaluate(floordiv(a, by), env) == x // by and evaluate(floordiv(a, -by), env) == x // -by
    assert evaluate(mod(a, by), env) == x % by and evaluate(mod(a, -by), env) == x % -by
    assert evaluate(truncdiv(a, by), env) == evaluate(truncdiv(a, -by), env) * -1 == int(x / by)
    if y:
        assert evaluate(truncdiv(a, b), env) == int(x / y) and evaluate(floordiv(a, b), env) == x // y
        assert evaluate(mod(a, b), env) == x % y
    assert evaluate(dim_max(a, b), env) == max(x, y)
    assert evaluate(root(a), env) == isqrt(max(x, 0)) and evaluate(scaled(a, SEVEN_TENTHS), env) == floor(x * 0.7)
    found = evaluate(symbolic.divisor(a, b), env)
    assert found == max([d for d in range(1, min(x, y) + 1) if x % d == 0], default=1)
    assert evaluate(symbolic.substitute(a, {"n": M, "m": N}), {"n": m, "m": n}) == x


@given(st.lists(dims, max_size=5), st.integers(0, 50), st.integers(0, 50))
def test_values_of_many(many: list[Dim], n: int, m: int) -> None:
    env = {"n": n, "m": m}
    values = DimValues(many)
    for _ in range(2):
        assert values(env) == [evaluate(d, env) for d in many]
    assert DimValues([tuple(many)])(env) == [prod(evaluate(d, env) for d in many)]


@given(dims, st.integers(1, 50), st.integers(1, 50), st.integers(0, 9), st.integers(0, 9))
def test_bounds(d: Dim, n: int, m: int, less: int, more: int) -> None:
    """No value is outside of the interval, for whatever bounds it is inside of."""
    value = evaluate(d, {"n": n, "m": m})
    for bounds in ({}, {"n": (max(1, n - less), n + more)}, {"n": (n, n), "m": (m - less, inf)}):
        low, high = interval(bounds, d)
        assert low <= value <= high


def test_bounds_of_what_quotients_leave() -> None:
    assert interval({}, N - floordiv(N, 2))[0] == 1 and interval({}, N * 2 - floordiv(N * 3 - 1, 2))[0] == 1
    assert interval({}, truncdiv(N - 4, 2)) == (-1, inf) and interval({"n": (1, 9)}, floordiv(N - 4, 2)) == (-2, 2)


def test_a_chain_of_divisions_stays_short() -> None:
    """As sizes of strided convolutions are; and what does not fold is text once, however often it is looked at."""
    d: Dim = N
    for _ in range(50):
        d = floordiv(d - 1, 2) + 1
    assert d == floordiv(N - 1, 2 ** 50) + 1
    for _ in range(120):
        d = truncdiv(d * 3 - 7, 2)
    assert len(str(d)) < 3000 and parse(str(d)) == d and interval({}, d)[1] == inf


def test_quotients_of_sizes_have_no_common_factors() -> None:
    """As a reshape to [-1, ...] divides the elements of what reshapes made: layer upon layer, the text stays short."""
    t = truncdiv(M - 3, 2)
    assert floordiv(64 * N * t + 64 * N, 4 * N * t + 4 * N) == 16
    assert floordiv(N * t + N, 4 * t + 4) == floordiv(N, 4)
    assert floordiv(N * N + 2 * N * M + M * M, N + M) == N + M and mod(6 * N + 6, 2 * N + 2) == 0
    assert truncdiv(6 * N * t, 4 * N) == truncdiv(3 * t, 2)
    padded = N + mod(3 * N, 4)      # to a multiple of 4
    assert mod(padded, 4) == 0 and mod(mod(N, 8), 4) == mod(N, 4)
    assert floordiv(16 * floordiv(padded, 4) * M, padded) == 4 * M
    assert floordiv(padded * M, 8 * floordiv(padded, 4)) == floordiv(M, 2)
    heads: Dim = M
    for _ in range(8):
        heads = floordiv(floordiv(16 * floordiv(M, 2), t + 1) * heads * (t + 1), 4 * t + 4)
    assert len(str(heads)) < 1000


def test_a_quotient_by_a_negative_number_is_rounded_twice() -> None:
    assert evaluate(floordiv(floordiv(N + 1, 6), -3), {"n": 0}) == 0


def test_values_of_many_share_what_they_have_in_common() -> None:
    values = DimValues([floordiv(N + 31, 32), floordiv(N + 31, 32) * 8, floordiv(N + 31, 32) + M])
    assert len(values) == 4     # + 31, the quotient, * 8, + m
    assert values({"n": 33, "m": 5}) == [2, 16, 7]
    with pytest.raises(KeyError, match="m"):
        values({"n": 1})


@pytest.mark.parametrize("text", ["", "n +", "2n", "(n", "n)", "foo(n, 2)", "n / 2", "floordiv(n)"])
def test_bad_text(text: str) -> None:
    with pytest.raises(ValueError, match="dimension"):
        parse(text)


def test_missing_symbols_are_named() -> None:
    with pytest.raises(KeyError, match="m"):
        evaluate(N + M, {"n": 1})
