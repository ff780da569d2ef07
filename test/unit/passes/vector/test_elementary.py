"""Elementary functions as compiled for this CPU, in units in the last place against f64."""

import math
import platform

import cpu_kernels
import numpy as np
import pytest

from xcc.targets.cpu.chip import CHIPS

FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x),
}
LIMITS = {"sinh": 3.5, "cosh": 3.5, "asinh": 3, "acosh": 3, "atanh": 3, "atan": 2.5, "tan": 3.5, "asin": 3, "acos": 3}


def kernel(name, arguments, lanes=32):
    label = name if lanes == 32 else f"{name}_{lanes}"
    reads = "\n".join(f"    %v{i} = vector.transfer_read %x{i}[%i], %pad {{in_bounds = [true]}} : memref<?xf32>, "
                      f"vector<{lanes}xf32>" for i in range(arguments))
    operands = ", ".join(f"%v{i}" for i in range(arguments))
    types = f"vector<{lanes}xf32>"
    signature = ", ".join(f"%x{i}: memref<?xf32>" for i in range(arguments))
    return f"""
func.func @{label}({signature}, %out: memref<?xf32>, %d0: index) attributes {{xt.kernel, xt.symbols = ["d0"]}} {{
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (%d0) step ({lanes}) {{
{reads}
    %r = math.{name} {operands} : {types}
    vector.transfer_write %r, %out[%i] {{in_bounds = [true]}} : {types}, memref<?xf32>
  }}
  return
}}
"""


@pytest.fixture(scope="module", params=["", "x86-64-v3"])
def library(request):
    """For this machine, and without AVX-512's instructions for scaling and rounding."""
    if request.param and platform.machine() != "x86_64":
        pytest.skip("code for x86-64")
    text = "".join([*(kernel(n, 1) for n in (*FUNCTIONS, "erf")), kernel("exp", 1, lanes=2), kernel("powf", 2),
                    kernel("atan2", 2)])
    return cpu_kernels.load(text, chip=CHIPS.get(request.param))


def run(library, name, *arguments):
    out = np.full_like(arguments[0], 0.123)
    cpu_kernels.call(library, name, *arguments, out, arguments[0].size)
    return out


def samples(n=1 << 15):
    """Every exponent, dense around 1, and the special values; a multiple of 32."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    near = rng.uniform(-10, 10, n).astype(np.float32)
    close = rng.uniform(-1.2, 1.2, n).astype(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, 0.5, -0.5, 1e-45, -1e-45, 1.17e-38, 3.4e38, -3.4e38,
                        88.7, 88.73, -103.9, -87.5, 127.99, 128, -149, -150, 0.9277, 0.92774, 4, 9.1, 10, 20, 30, -20,
                        -30], np.float32)
    return np.concatenate([bits, near, close, special])


def ulps(got, exact):
    """Distance to the exact value in f32 ULPs; 0 where both are NaN or the same infinity."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        same = (np.isnan(got) & np.isnan(exact)) | (got == rounded)
        spacing = np.maximum(np.spacing(np.abs(rounded).astype(np.float32)).astype(np.float64), 1e-45)
        distance = np.abs(got.astype(np.float64) - exact) / spacing
    return np.where(same, 0, np.nan_to_num(distance, nan=1e9, posinf=1e9))


@pytest.mark.parametrize("name", [*FUNCTIONS, "erf", "exp_2"])
def test_function(library, name):
    x = samples()
    with np.errstate(all="ignore"):
        if name == "erf":
            exact = np.array([math.erf(float(v)) for v in x])
        else:
            exact = FUNCTIONS[name.removesuffix("_2")](x.astype(np.float64))
    got = run(library, name, x)
    off = ulps(got, exact)
    worst = int(off.argmax())
    assert off[worst] <= LIMITS.get(name, 2), (off[worst], x[worst], got[worst], exact[worst])
    if name not in ("cos", "cosh", "acos", "exp", "exp_2", "exp2", "log", "log2", "log10", "acosh", "rsqrt"):
        assert np.signbit(run(library, name, np.full(32, -0.0, np.float32))).all()


def test_pow(library):
    rng = np.random.default_rng(2)
    special = np.array([0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, -3, np.inf, -np.inf, np.nan, 1e-40, 3e38, 16777217.0],
                       np.float32)
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    positive = rng.integers(0, 0x7F800000, 1 << 14, dtype=np.uint32).view(np.float32)
    with np.errstate(divide="ignore"):      # powers of all sizes, subnormal ones too
        fitting = rng.uniform(-152, 129, 1 << 14) / np.log2(positive.astype(np.float64))
    x = np.concatenate([rng.uniform(0, 20, 1 << 14).astype(np.float32), a, positive,
                        -rng.uniform(0, 20, 1 << 10).astype(np.float32),
                        rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32).view(np.float32)])
    y = np.concatenate([rng.uniform(-20, 20, 1 << 14).astype(np.float32), b, fitting.astype(np.float32),
                        rng.integers(-9, 9, 1 << 10).astype(np.float32),
                        rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32).view(np.float32)])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    got = run(library, "powf", x, y)
    off = ulps(got, exact)
    worst = int(off.argmax())
    assert off[worst] <= 1, (off[worst], x[worst], y[worst], got[worst], exact[worst])


def test_angles_of_any_size(library):
    """Of each exponent, and those next to a multiple of pi/2: what is left of 16367173 * 2**72 begins with 30 zeros."""
    rng = np.random.default_rng(4)
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    x = (powers[:, None] * rng.uniform(1, 2, (1, 160))).astype(np.float32).ravel()
    nearest = [16367173.0 * 2.0**72, 2.0**50, np.nextafter(np.float32(2.0**50), np.float32(0)), 2.0**76, 2.0**102,
               3.4028235e38, 5.2072425e27, 1.5707964, 3.1415927, 6.2831855, 710.0, 11.0, 22.0, 355.0, 52174.0, 103993.0]
    x = np.concatenate([x, np.float32(nearest), -np.float32(nearest)])
    for name, exact in (("sin", np.sin), ("cos", np.cos)):
        off = ulps(run(library, name, x), exact(x.astype(np.float64)))
        worst = int(off.argmax())
        assert off[worst] <= 2, (name, off[worst], x[worst])


def test_angles_near_multiples(library):
    """Lanes that are all below 2**16 go another way: the numbers nearest to multiples of pi/2, and others."""
    turns = (np.arange(1, 41664) * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([turns, np.linspace(-65535, 65535, 30081, dtype=np.float32)])
    assert x.size % 32 == 0 and np.abs(x).max() < 2**16
    for name, exact, most in (("sin", np.sin, 2), ("cos", np.cos, 2), ("tan", np.tan, LIMITS["tan"])):
        off = ulps(run(library, name, x), exact(x.astype(np.float64)))
        worst = int(off.argmax())
        assert off[worst] <= most, (name, off[worst], x[worst])


def test_atan2(library):
    special = np.array([0, -0.0, 1, -1, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38], np.float32)
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    rng = np.random.default_rng(3)
    y = np.concatenate([a, rng.uniform(-3, 3, 1024 + 16).astype(np.float32)])
    x = np.concatenate([b, rng.uniform(-3, 3, 1024 + 16).astype(np.float32)])
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    got = run(library, "atan2", y, x)
    off = ulps(got, exact)
    worst = int(off.argmax())
    assert off[worst] <= 4, (off[worst], y[worst], x[worst], got[worst], exact[worst])


DIVISIONS = {f"{name}{sign}i_{bits}": (f"arith.{name}{sign}i", f"{'u' * (sign == 'u')}int{bits}")
             for name in ("div", "rem") for sign in "su" for bits in (8, 16, 32)}


def division(name):
    op, kind = DIVISIONS[name]
    element = f"i{kind.split('int')[1]}"
    return f"""
func.func @{name}(%x: memref<?x{element}>, %y: memref<?x{element}>, %out: memref<?x{element}>, %d0: index)
    attributes {{xt.kernel, xt.symbols = ["d0"]}} {{
  %pad = arith.constant 0 : {element}
  scf.forall (%i) = (0) to (%d0) step (16) {{
    %a = vector.transfer_read %x[%i], %pad {{in_bounds = [true]}} : memref<?x{element}>, vector<16x{element}>
    %b = vector.transfer_read %y[%i], %pad {{in_bounds = [true]}} : memref<?x{element}>, vector<16x{element}>
    %r = {op} %a, %b : vector<16x{element}>
    vector.transfer_write %r, %out[%i] {{in_bounds = [true]}} : vector<16x{element}>, memref<?x{element}>
  }}
  return
}}
"""


def test_divisions_are_exact_and_do_not_trap():
    """By 0, and of the lowest by -1, the dividend; near multiples of the divisor and at the ends of the range."""
    library, rng = cpu_kernels.load("".join(map(division, DIVISIONS))), np.random.default_rng(7)
    for name, (op, kind) in DIVISIONS.items():
        ends = np.iinfo(kind)
        y = np.concatenate([rng.integers(ends.min, ends.max, 1024, endpoint=True), rng.integers(1, 9, 1024), [0, 0, 1]])
        near = rng.integers(0, ends.max, y.size) // np.maximum(abs(y), 1) * y + rng.integers(-1, 2, y.size)
        x = np.where(rng.random(y.size) < 0.3, rng.choice([ends.min, ends.max, 0, 7], y.size), near)
        x, y = (np.resize(v, 2064).clip(ends.min, ends.max).astype(kind) for v in (x, y))
        y[5], x[5] = -1 if ends.min else ends.max, ends.min
        safe = np.where((y == 0) | ((y == -1) & (x == ends.min) & bool(ends.min)), 1, y.astype(np.int64))
        q = abs(x.astype(np.int64)) // abs(safe) * np.sign(x) * np.sign(safe)
        exact = q if "div" in op else x - q * safe
        out = np.full_like(x, 3)
        cpu_kernels.call(library, name, x, y, out, x.size)
        np.testing.assert_array_equal(out, exact.astype(kind), name)


@pytest.mark.parametrize("name", ["exp", "powf", "atan2", "erf", "sin"])
def test_no_library_calls(name):
    text = cpu_kernels.assembly(kernel(name, 2 if name in ("powf", "atan2") else 1))
    assert "call" not in text
