"""Butterflies: Fourier transforms of a few numbers in registers, by factors (Cooley and Tukey, 1965)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcc._mlir import Type, Value, arith_d, math_d
from xcc.dialects.xt.signal import rotations
from xcc.passes.shared.values import splat_constant

Number = tuple[Value, Value]
"""Real and imaginary part."""


@dataclass(frozen=True)
class Arithmetic:
    """Of complex numbers of vectors of `kind`. sign: 1 for a transform, -1 for an inverse one."""

    kind: Type
    sign: int

    def add(self, x: Number, y: Number) -> Number:
        return arith_d.addf(x[0], y[0]), arith_d.addf(x[1], y[1])

    def sub(self, x: Number, y: Number) -> Number:
        return arith_d.subf(x[0], y[0]), arith_d.subf(x[1], y[1])

    def times(self, x: Number, re: Value, im: Value) -> Number:
        return (math_d.fma(x[0], re, arith_d.negf(arith_d.mulf(x[1], im))),
                math_d.fma(x[0], im, arith_d.mulf(x[1], re)))

    def turned(self, x: Number, place: int, n: int) -> Number:
        """Times the `n`-th root of unity to the power of `place`."""
        re, im = (float(v) for v in rotations(np.array(place % n), n, self.sign < 0)[0])
        if im == 0:
            return x if re > 0 else (arith_d.negf(x[0]), arith_d.negf(x[1]))
        if re == 0:
            return (arith_d.negf(x[1]), x[0]) if im > 0 else (x[1], arith_d.negf(x[0]))
        return self.times(x, splat_constant(self.kind, re), splat_constant(self.kind, im))

    def scaled(self, total: Number, x: Number, factor: float) -> Number:
        """total + factor * x, of a real factor"""
        real = splat_constant(self.kind, factor)
        return math_d.fma(x[0], real, total[0]), math_d.fma(x[1], real, total[1])


def butterfly(a: Arithmetic, x: list[Number]) -> list[Number]:
    """The transform of `x`, in order."""
    n = len(x)
    left = next((d for d in (4, 2, 3, 5, 7) if n % d == 0 and n > d), 0)
    if n == 1:
        return x
    if n == 2:
        return [a.add(*x), a.sub(*x)]
    if not left:
        return _odd(a, x)
    right = n // left
    columns = [butterfly(a, x[j::right]) for j in range(right)]         # over i of x[right * i + j]
    rows = [butterfly(a, [a.turned(columns[j][k], j * k, n) for j in range(right)]) for k in range(left)]
    return [rows[k][m] for m in range(right) for k in range(left)]


def _odd(a: Arithmetic, x: list[Number]) -> list[Number]:
    """Of an odd number: sums and differences of x[j] and x[n - j] share the multiplications of opposite frequencies."""
    n, half = len(x), len(x) // 2
    table = rotations(np.outer(np.arange(n), np.arange(n)) % n, n, a.sign < 0)[..., 0, :]
    sums = [a.add(x[j], x[n - j]) for j in range(1, half + 1)]
    differences = [a.sub(x[j], x[n - j]) for j in range(1, half + 1)]
    first, made = x[0], {}
    for s in sums:
        first = a.add(first, s)
    for k in range(1, half + 1):
        even = x[0]
        odd: Number = (splat_constant(a.kind, 0), splat_constant(a.kind, 0))
        for j in range(1, half + 1):
            cosine, sine = (float(v) for v in table[j, k])
            even, odd = a.scaled(even, sums[j - 1], cosine), a.scaled(odd, differences[j - 1], sine)
        made[k] = (arith_d.subf(even[0], odd[1]), arith_d.addf(even[1], odd[0]))
        made[n - k] = (arith_d.addf(even[0], odd[1]), arith_d.subf(even[1], odd[0]))
    return [first, *(made[k] for k in range(1, n))]
