"""What xcc-run --compare takes for the same."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from xcc.driver.comparison import SHARES, Tolerance, compare, computed_in, stated

WANTED = np.array([-100.0, 0.5, 3.0], np.float32)


def artifact(precision, *buffers):
    return SimpleNamespace(manifest={"options": {"precision": precision}},
                           program=SimpleNamespace(buffers=[SimpleNamespace(kind=k, dtype=d) for k, d in buffers]))


@pytest.mark.parametrize(("types", "name"), [(set(), "f32"), ({"f64"}, "f64"), ({"f64", "f32"}, "f32"),
                                             ({"f32", "f16"}, "f16"), ({"f16", "bf16"}, "bf16"), ({"tf32"}, "tf32")])
def test_the_least_precise_type_decides(types, name):
    assert stated(types) == Tolerance(share=SHARES[name], name=name)


def test_types_are_those_of_buffers_and_of_the_precision():
    assert computed_in(artifact("", ("input", "ui8"), ("temp", "f32"), ("temp", "i64"))) == {"f32"}
    assert computed_in(artifact("tf32", ("temp", "f32"))) == {"f32", "tf32"}
    assert computed_in(artifact("", ("weight", "f16"), ("temp", "ui8"))) == {"f16", "i8"}


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_are_equal_or_not_in_all_their_bits(kind):
    wanted = np.array([5, 1 << 53, 1 << 62], kind)
    got = wanted + np.array([0, 1, 0], kind)
    assert compare("y", wanted.copy(), wanted, stated({"f32"}))[0]
    same, line = compare("y", got, wanted, stated({"f32"}))
    assert not same and f"at [1]: {got[1]} against {wanted[1]}; 1 of 3 are outside" in line
    assert compare("y", got, wanted, Tolerance(absolute=1.0))[0]


@pytest.mark.parametrize("name", sorted(SHARES))
def test_the_share_is_of_the_largest_magnitude(name):
    off = np.array([0.0, 1.0, 0.0]) * 100 * SHARES[name]
    wanted = WANTED.astype(np.float64)
    assert compare("y", wanted + 0.99 * off, wanted, stated({name}))[0]
    same, line = compare("y", wanted + 1.01 * off, wanted, stated({name}))
    assert not same and "1 of 3 are outside" in line and f"for {stated({name}).name}" in line


def test_relative_and_absolute():
    assert compare("y", WANTED * np.float32(1.009), WANTED, Tolerance(1e-2))[0]
    assert not compare("y", WANTED * np.float32(1.011), WANTED, Tolerance(1e-2))[0]
    assert compare("y", WANTED + np.float32(0.09), WANTED, Tolerance(0.0, 0.1))[0]


@pytest.mark.parametrize(("got", "wanted", "same"), [
    (np.nan, np.nan, True), (np.nan, 1.0, False), (1.0, np.nan, False), (np.inf, np.inf, True),
    (np.inf, -np.inf, False), (1e30, np.inf, False), (np.inf, 1e30, False)])
def test_what_is_not_finite_must_be_the_same(got, wanted, same):
    both = [np.array([x, 2.0], np.float32) for x in (got, wanted)]
    assert compare("y", *both, stated({"bf16"}))[0] is same


def test_integers_are_equal_or_not():
    a = np.array([50000, 7])
    assert compare("y", a, a, stated({"f16"}))[0]
    assert not compare("y", a + [0, 1], a, stated({"f16"}))[0]
    assert compare("y", a + [0, 1], a, Tolerance(0.0, 1.0))[0]
    assert not compare("y", a[:1], a, stated(set()))[0]
