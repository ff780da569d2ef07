"""gelu as expand-math writes it, against f64."""

import math

import cpu_kernels
import numpy as np
import pytest
from test_elementary import ulps

from xcc.passes.shared.lanes import has_instruction
from xcc.targets.cpu.chip import CHIPS, host

TABLES = pytest.param(None, marks=pytest.mark.skipif(not has_instruction(host()), reason="no lookups on this CPU"))
POLYNOMIAL = pytest.param("x86-64-v3", marks=pytest.mark.skipif(not host().triple.startswith("x86_64"),
                                                                  reason="code for x86-64"))

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


def kernel(curve, half=0.5, lanes=32):
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
""".replace("<32xf32>", f"<{lanes}xf32>").replace("step (32)", f"step ({lanes})")


def exact(curve, x):
    x = x.astype(np.float64)
    if curve == "erf":
        below = np.array([math.erfc(v / math.sqrt(2)) / 2 for v in np.abs(x)])
    else:
        y = math.sqrt(2 / math.pi) * (np.abs(x) + 0.044715 * np.abs(x) ** 3)
        below = 1 / (1 + np.exp(2 * np.minimum(y, 300)))
    return np.where(x > 0, x * (1 - below), x * below)


def run(text, x, chip=None):
    out = np.full_like(x, 0.123)
    cpu_kernels.call(cpu_kernels.load(text, chip=chip and CHIPS[chip]), "gelu", x, out, x.size)
    return out


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("chip, absolute, places, lanes", [
    pytest.param(*TABLES.values, 2.5e-7, 2.1, 32, marks=TABLES.marks),
    pytest.param(*TABLES.values, 2.5e-7, 2.1, 30, marks=TABLES.marks),      # 16 + 8 + 4 + 2
    pytest.param(*POLYNOMIAL.values, 4e-7, 4.5, 32, marks=POLYNOMIAL.marks)])
def test_errors(curve, chip, absolute, places, lanes):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-8, 8, lanes << 10), rng.uniform(-1e-3, 1e-3, lanes << 7)]).astype(np.float32)
    got, want = run(kernel(curve, lanes=lanes), x, chip), exact(curve, x)
    assert np.abs(got - want).max() < absolute
    assert ulps(got, want)[x > -1].max() <= places


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("chip", [TABLES, POLYNOMIAL])
def test_ends(curve, chip):
    """Exactly 0 and x beyond where the tail is dropped; NaN stays."""
    x = np.zeros(32, np.float32)
    x[:7] = [-1e30, -6.1, 5.7, 1e30, np.inf, np.nan, 1e-40]
    got = run(kernel(curve), x, chip)
    np.testing.assert_array_equal(got[:6], [0, 0, np.float32(5.7), np.float32(1e30), np.inf, np.nan])
    assert 0 <= got[6] <= 1e-40 and (got[7:] == 0).all()


@pytest.mark.parametrize("curve", CURVES)
def test_code(curve):
    """Fewer instructions than with an exponential; what is no gelu keeps its curve."""
    fused, other = (cpu_kernels.assembly(kernel(curve, half), CHIPS["x86-64-v4"]) for half in (0.5, 0.25))
    assert ("scalef" in other) == (curve == "erf") and "scalef" not in fused and "div" not in fused
    assert fused.count("zmm") < 0.7 * other.count("zmm")
    loop = max(fused.split("\n.L"), key=lambda part: part.count("vpermps"))
    assert loop.count("vpermps") == 12 and loop.count("vfmadd") + loop.count("vfnmadd") + loop.count("vfmsub") == 16
