"""gelu as expand-math writes it, against f64."""

import math

import cpu_kernels
import numpy as np
import pytest
from test_elementary import ulps

from xcc.targets.cpu.chip import CHIPS

CURVES = {"erf": """
    %c = arith.constant dense<0.70710678> : vector<32xf32>
    %a = arith.mulf %x, %c : vector<32xf32>
    %b = math.erf %a : vector<32xf32>""", "tanh": """
    %c = arith.constant dense<0.797884583> : vector<32xf32>
    %d = arith.constant dense<0.044715> : vector<32xf32>
    %square = arith.mulf %x, %x : vector<32xf32>
    %cube = arith.mulf %square, %x : vector<32xf32>
    %e = arith.mulf %cube, %d : vector<32xf32>
    %sum = arith.addf %x, %e : vector<32xf32>
    %a = arith.mulf %sum, %c : vector<32xf32>
    %b = math.tanh %a : vector<32xf32>"""}


def kernel(curve, half=0.5):
    return f"""
func.func @gelu(%in: memref<?xf32>, %out: memref<?xf32>, %d0: index) attributes {{xt.kernel, xt.symbols = ["d0"]}} {{
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (%d0) step (32) {{
    %x = vector.transfer_read %in[%i], %pad {{in_bounds = [true]}} : memref<?xf32>, vector<32xf32>
    %half = arith.constant dense<{half}> : vector<32xf32>
    %one = arith.constant dense<1.0> : vector<32xf32>{CURVES[curve]}
    %h = arith.mulf %x, %half : vector<32xf32>
    %f = arith.addf %b, %one : vector<32xf32>
    %r = arith.mulf %h, %f : vector<32xf32>
    vector.transfer_write %r, %out[%i] {{in_bounds = [true]}} : vector<32xf32>, memref<?xf32>
  }}
  return
}}
"""


def exact(curve, x):
    x = x.astype(np.float64)
    if curve == "erf":
        below = np.array([math.erfc(v / math.sqrt(2)) / 2 for v in np.abs(x)])
    else:
        y = math.sqrt(2 / math.pi) * (np.abs(x) + 0.044715 * np.abs(x) ** 3)
        below = 1 / (1 + np.exp(2 * np.minimum(y, 300)))
    return np.where(x > 0, x * (1 - below), x * below)


def run(text, x):
    out = np.full_like(x, 0.123)
    cpu_kernels.call(cpu_kernels.load(text), "gelu", x, out, x.size)
    return out


@pytest.mark.parametrize("curve", CURVES)
def test_errors(curve):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-8, 8, 1 << 15), rng.uniform(-1e-3, 1e-3, 1 << 12)]).astype(np.float32)
    got, want = run(kernel(curve), x), exact(curve, x)
    assert np.abs(got - want).max() < 4e-7
    assert ulps(got, want)[x > -1].max() <= 4.5


@pytest.mark.parametrize("curve", CURVES)
def test_ends(curve):
    """Exactly 0 and x beyond where the tail is dropped; NaN stays."""
    x = np.zeros(32, np.float32)
    x[:7] = [-1e30, -5.7, 5.7, 1e30, np.inf, np.nan, 1e-40]
    got = run(kernel(curve), x)
    np.testing.assert_array_equal(got[:6], [0, 0, np.float32(5.7), np.float32(1e30), np.inf, np.nan])
    assert 0 <= got[6] <= 1e-40 and (got[7:] == 0).all()


@pytest.mark.parametrize("curve", CURVES)
def test_code(curve):
    """Fewer instructions than with an exponential; what is no gelu keeps its curve."""
    fused, other = (cpu_kernels.assembly(kernel(curve, half), CHIPS["x86-64-v4"]) for half in (0.5, 0.25))
    assert ("scalef" in other) == (curve == "erf") and "scalef" not in fused and "div" not in fused
    assert fused.count("zmm") < 0.7 * other.count("zmm")
