"""Functions of f64 as lane code, compiled for this CPU, against those of numpy's long double."""

from __future__ import annotations

import math
import warnings
from typing import Any

import cpu_kernels
import numpy as np
import pytest
from small_graphs import compiled, info, node, with_outputs

from xcc import onnx_backend
from xcc.context import parse_module, shared_context
from xcc.passes.base import PassContext
from xcc.passes.vector.expand_math import ExpandMath
from xcc.targets.cpu import chip as cpu_chip

LONG = np.longdouble
EXACT = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": lambda x: np.array([math.erf(v) for v in x.astype(np.float64)], LONG),
}
LIMITS = {"tanh": 4, "sinh": 4, "cosh": 4, "asinh": 4, "acosh": 4, "atanh": 4, "tan": 3}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, 0.5, -0.5, 3, -3, 8, 27, 5e-324, -5e-324, 2.2e-308, 1e-310,
           1.7e308, -1.7e308, 709.78, 709.79, -745.1, -745.2, 1023.9, 1024, -1074.4, 1e22,
           6381956970095103.0 * 2.0**797]
"""The last is the f64 nearest to a multiple of pi/2."""


def kernel(name: str, arguments: int) -> str:
    reads = "\n".join(f"    %v{i} = vector.transfer_read %x{i}[%i], %pad {{in_bounds = [true]}} : memref<?xf64>, "
                      f"vector<8xf64>" for i in range(arguments))
    operands = ", ".join(f"%v{i}" for i in range(arguments))
    signature = ", ".join(f"%x{i}: memref<?xf64>" for i in range(arguments))
    return f"""
func.func @k_{name}({signature}, %out: memref<?xf64>, %d0: index) attributes {{xt.kernel, xt.symbols = ["d0"]}} {{
  %pad = arith.constant 0.0 : f64
  scf.forall (%i) = (0) to (%d0) step (8) {{
{reads}
    %r = math.{name} {operands} : vector<8xf64>
    vector.transfer_write %r, %out[%i] {{in_bounds = [true]}} : vector<8xf64>, memref<?xf64>
  }}
  return
}}
"""


@pytest.fixture(scope="module")
def library() -> Any:
    text = "".join(kernel(n, 1) for n in EXACT) + kernel("powf", 2) + kernel("atan2", 2)
    module = parse_module(text, shared_context(), "test")
    with module.context:
        ExpandMath().run(module, PassContext(chip=cpu_chip.host()))
        expanded = str(module)
    assert not any(f"math.{name} " in expanded for name in EXACT if name != "rsqrt")
    return cpu_kernels.load(expanded)


def run(library: Any, name: str, *arguments: Any) -> Any:
    out = np.full_like(arguments[0], 0.123)
    cpu_kernels.call(library, f"k_{name}", *arguments, out, arguments[0].size)
    return out


def samples(n: int = 1 << 13) -> Any:
    """Every exponent, dense around 1, and the special values; a multiple of 8."""
    rng = np.random.default_rng(1)
    values = np.concatenate([SPECIAL, rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.float64),
                             rng.uniform(-10, 10, n), rng.uniform(-1.2, 1.2, n), rng.uniform(-750, 720, n),
                             2.0**rng.uniform(-60, 70, n)])
    return np.resize(values, -(-values.size // 8) * 8)


def check(got: Any, exact: Any, most: float, what: str, *arguments: Any) -> None:
    """Within `most` units in the last place of the f64 nearest to `exact`; the same infinities, NaN and signs of 0."""
    with np.errstate(all="ignore"):
        near = exact.astype(np.float64)
        ulps = np.abs(got.astype(LONG) - exact) / np.spacing(np.abs(near)).astype(LONG)
    same = (got == near) & (np.signbit(got) == np.signbit(near)) | np.isnan(got) & np.isnan(near)
    bad = ~(same | (ulps <= most))
    where = np.flatnonzero(bad)[:4]
    assert not bad.any(), (what, [tuple(float(a[i]) for a in arguments) for i in where], got[where], near[where],
                           ulps[where], bad.sum())


@pytest.mark.parametrize("name", EXACT)
def test_function(library: Any, name: str) -> None:
    x = samples()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = EXACT[name](x.astype(LONG))
    check(run(library, name, x), exact, LIMITS.get(name, 2), name, x)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_near_multiples(library: Any, name: str) -> None:
    """Lanes that are all below 2**20 go another way: the numbers nearest to multiples of pi/2, and others."""
    turns = np.concatenate([np.arange(1, 2048), np.arange(667545 - 2048, 667545)]) * (LONG(np.pi) / 2 + LONG(
        6.123233995736766e-17))
    x = np.concatenate([turns.astype(np.float64), np.linspace(-1048575, 1048575, 4097)])
    assert x.size % 8 == 0 and np.abs(x).max() < 2**20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = EXACT[name](x.astype(LONG))
    check(run(library, name, x), exact, LIMITS.get(name, 2), name, x)


@pytest.mark.parametrize("name", ["powf", "atan2"])
def test_function_of_two(library: Any, name: str) -> None:
    rng = np.random.default_rng(2)
    edge = np.array([*SPECIAL, 1e-160, 2.5, -2.5, 1 + 2.0**-52, 1 - 2.0**-53, 2.0**53 + 2, -3e17, 1e300])
    a, b = (v.ravel() for v in np.meshgrid(edge, edge))
    n = 1 << 13
    x = np.concatenate([a, 2.0**rng.uniform(-30, 30, n), rng.uniform(0.5, 2, n), rng.uniform(-3, 3, n)])
    y = np.concatenate([b, rng.uniform(-30, 30, n), rng.uniform(-700, 700, n), rng.integers(-40, 40, n)])
    x, y = (np.resize(v, -(-v.size // 8) * 8) for v in (x, y))
    with np.errstate(all="ignore"):
        exact = (np.power if name == "powf" else np.arctan2)(x.astype(LONG), y.astype(LONG))
    check(run(library, name, x, y), exact, 2, name, x, y)


@pytest.mark.parametrize("chip", ["sm_80", "gfx942"])
def test_functions_of_doubles_for_gpus(chip: str) -> None:
    """They assemble, and stage gpu is right in the interpreter, softmax and pow among them."""
    x = np.random.default_rng(3).uniform(0.1, 0.9, (5, 70))
    names = ("Exp", "Log", "Sin", "Atan", "Tanh", "Erf", "Softmax")
    nodes = [*(node(name, "x", name) for name in names), node("Pow", "x x", "Pow")]
    results = [info(name, x, [None, None]) for name in (*names, "Pow")]
    model = with_outputs(nodes, {"x": x}, results, {}, {"x": ["n", "m"]})
    want = onnx_backend.prepare(model, engine="interpret").run([x])
    for got, meant in zip(compiled(model, chip).run({"x": x}).values(), want, strict=True):
        np.testing.assert_allclose(got, meant, rtol=1e-14)
