"""The numbers behind functions that GPUs compute by their own instructions."""

import math

import numpy as np

from xcc.passes.gpu import narrow_math


def test_short_erf():
    """Its polynomial in f32 against math.erf: absolute error, and what is left of 1 - erf in the tail."""
    x = np.linspace(0, 6, 60001).astype(np.float32)
    t, p = np.minimum(x, np.float32(4)), np.float32(narrow_math._ERF[0])
    for c in narrow_math._ERF[1:]:
        p = p * t + np.float32(c)
    got = 1.0 - np.exp2((p * t).astype(np.float32)).astype(np.float64)
    want = np.array([math.erf(v) for v in x])
    assert np.abs(got - want).max() < 5e-7
    tail = x < 3
    assert (np.abs(got - want)[tail] / (1 - want[tail])).max() < 3e-3


def test_erfc_of_gelu():
    """gelu with it, in f32, against math.erfc: relative error, the tail included, up to where f16 ends."""
    x = np.linspace(-4.2, 9, 40001).astype(np.float32)
    t, p = np.abs(x * np.float32(0.5 ** 0.5)), np.float32(narrow_math._ERFC[0])
    for c in narrow_math._ERFC[1:]:
        p = p * t + np.float32(c)
    got = np.maximum(x, 0) - np.abs(x) * np.exp2(p * t - 1)
    want = np.array([0.5 * v * math.erfc(-v * 0.5 ** 0.5) for v in x.astype(np.float64)])
    assert (np.abs(got - want) / np.maximum(np.abs(want), 1e-7)).max() < 1e-4


def test_short_tanh():
    """Its two forms in f32 against numpy's in f64: relative error."""
    x = np.concatenate([np.linspace(-12, 12, 60001), np.geomspace(1e-8, 1, 60001)]).astype(np.float32)
    far, one = np.abs(x), np.float32(1)
    e = np.exp2(far * np.float32(-2 * math.log2(math.e)))
    whole = np.copysign((one - e) / (one + e), x)
    got = np.where(far < narrow_math.SMALL, x - x * x * x * np.float32(1 / 3), whole)
    want = np.tanh(x.astype(np.float64))
    assert (np.abs(got - want)[x != 0] / np.abs(want[x != 0])).max() < 2.0 ** -19
