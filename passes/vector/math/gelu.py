"""gelu as one polynomial, where expand-math finds the x/2 * (1 + erf(x / sqrt 2)) or the tanh form that it is made of.

gelu(x) = max(x, 0) - t * W(t) with t = |x|, where W(t) = erfc(t / sqrt 2) / 2, or 1 / (1 + exp(2 y(t))) for the tanh
form. W falls from 1/2 to 0: a polynomial of degree 18 in v = 2 t / END - 1 has an error below 5e-9 (weighted with
1 + t) up to END, where the rest, t * W(t) < 7e-8, is dropped. The coefficients are a weighted minimax fit (Lawson's
iteration); the last makes the rounded sum exactly 0 at END, so that the result is exactly 0 or x beyond it.

Errors, in f32: at most 4e-7 absolute and 4 units in the last place for x > -1, as good as the formula with erf rounded
once. 22 instructions, all but two on the multiply-add units, in place of some 60 with erf's two branches. Chips that
look up one of 16 numbers a lane take a shorter polynomial of tables (gelu_table.py).
"""

from __future__ import annotations

import math
from typing import Any

from xcc._mlir import Operation, Value, ir, maker
from xcc.passes.shared.lanes import Lanes, has_instruction
from xcc.passes.shared.patterns import only_user, product, splat_of
from xcc.passes.vector.math import gelu_table
from xcc.targets.base import Chip

_NEAR = 1e-6        # relative: constants of models are rounded, and sqrt 1/2 is written in many ways
_CUBE = 0.044715
_ERF = (5.6, [
    -0.0018578983144834638, 0.0027606410440057516, 0.00979546643793583, -0.020165003836154938, -0.01497549656778574,
    0.06348378211259842, -0.024528466165065765, -0.09352012723684311, 0.13505791127681732, -0.0013043673243373632,
    -0.18905484676361084, 0.21682336926460266, -0.028590617701411247, -0.19782912731170654, 0.27471861243247986,
    -0.19808588922023773, 0.08688020706176758, -0.02216327376663685, 0.0025551188737154007])
_TANH = (5.25, [
    -0.0016819764859974384, 0.0007710307254455984, 0.010185418650507927, -0.008323900401592255, -0.022178160026669502,
    0.030966181308031082, 0.007321691140532494, -0.04464762285351753, 0.0551091767847538, -0.024500560015439987,
    -0.07370925694704056, 0.16312408447265625, -0.09826861321926117, -0.10459235310554504, 0.2518070340156555,
    -0.2294521927833557, 0.11726083606481552, -0.03334467485547066, 0.004153858870267868])
"""END, and the coefficients of W in v, the highest power first."""


def fuse_gelu(op: Operation, chip: Chip | None) -> bool:
    """Writes the gelu around `op`, a math.erf or math.tanh of f32, as a polynomial; False where there is none."""
    if not isinstance(Lanes(op.operands[0]).element, ir.F32Type):
        return False
    x = _erf_argument(op.operands[0]) if op.name == "math.erf" else _tanh_argument(op.operands[0])
    one = only_user(op, "arith.addf")
    whole = only_user(one, "arith.mulf") if one is not None else None
    if x is None or one is None or whole is None or {1.0} != {splat_of(v) for v in one.operands if v != op.results[0]}:
        return False
    if (x, 0.5) not in [product(v) for v in whole.operands]:
        return False
    erf = op.name == "math.erf"
    with whole.location, ir.InsertionPoint(whole):
        lanes = Lanes(x)
        if isinstance(x.type, ir.VectorType) and has_instruction(chip):
            t, w = gelu_table.tail(lanes, gelu_table.ERF if erf else gelu_table.TANH)
        else:
            end, coefficients = _ERF if erf else _TANH
            t = lanes.abs().at_most(end)
            w = t.fma(2.0 / end, -1.0).poly(coefficients)
        whole.results[0].replace_all_uses_with((-t).fma(w, lanes.at_least(0.0)).v)
    for dead in (whole, one, op):
        dead.erase()
    return True


def _is(value: float, wanted: float) -> bool:
    return math.isclose(value, wanted, rel_tol=_NEAR)


def _erf_argument(value: Value) -> Value | None:
    """x of x * sqrt(1/2)."""
    found = product(value)
    return found[0] if found is not None and _is(found[1], math.sqrt(0.5)) else None


def _tanh_argument(value: Value) -> Any:
    """x of sqrt(2/pi) * (x + 0.044715 * x * x * x)."""
    found = product(value)
    total = None if found is None or not _is(found[1], math.sqrt(2 / math.pi)) else maker(found[0], "arith.addf")
    if total is None:
        return None
    for x, cubic in (list(total.operands), list(total.operands)[::-1]):
        scaled = product(cubic)
        cube = None if scaled is None or not _is(scaled[1], _CUBE) else maker(scaled[0], "arith.mulf")
        if cube is None:
            continue
        squares = [maker(v, "arith.mulf") for v in cube.operands if v != x]
        if len(squares) == 1 and squares[0] is not None and all(v == x for v in squares[0].operands):
            return x
    return None
