"""Signs and values of symbolic dims from the bounds of their symbols, by interval arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, floor, inf, isqrt

from xcc.symbolic import Atom, Dim, Expr, float_of


class Undecided(Exception):
    """What was asked depends on values that the bounds leave open."""


Bounds = Mapping[str, tuple[float, float]]
EXACT = 2.0 ** 53
"""Numbers below it are exact as floats."""
NEAR = 1e-6
MOST_QUOTIENTS = 8
"""Of one dim that are looked through."""


def interval(bounds: Bounds, d: Dim, least: int = 1) -> tuple[float, float]:
    """The least and largest value of `d`; a symbol without bounds is at least `least`."""
    low, high = _plain(bounds, d, least)
    if isinstance(d, Expr) and len(d.terms) > 1 and (low == -inf or high == inf):
        near = _without_quotients(bounds, d, least)
        low, high = max(low, near[0]), min(high, near[1])
    return low, high


def _without_quotients(bounds: Bounds, d: Expr, least: int) -> tuple[float, float]:
    """The interval of `d` with x/k for the quotients of x by a number k, which are nearer than 1 to it.

    n - floordiv(n, 2) lies in n/2 .. n/2 + 1/2.
    """
    total: Dim = d
    scale, below, above = 1, 0.0, 0.0
    for _ in range(MOST_QUOTIENTS):
        found = next(_quotients(total), None)
        if found is None:
            break
        c, atom, x, k = found
        total = total * k + (x - Expr({(atom,): k})) * c
        ends = sorted((-c * (k - 1.0), 0.0 if atom[0] == "floordiv" else c * (k - 1.0)))
        scale, below, above = scale * k, below * k + ends[0], above * k + ends[1]
    if scale == 1:
        return -inf, inf
    low, high = _plain(bounds, total, least)
    low, high = (low + below) / scale, (high + above) / scale
    return ceil(low - NEAR) if low > -inf else low, floor(high + NEAR) if high < inf else high


def _quotients(d: Dim) -> Iterator[tuple[int, Atom, Dim, int]]:
    """The quotients by numbers among the terms of a sum: factor, quotient, dividend, divisor."""
    for atoms, c in d.terms if isinstance(d, Expr) else ():
        name, *operands = atoms[0] if len(atoms) == 1 else ("",)
        if name in ("floordiv", "truncdiv") and isinstance(operands[1], int) and operands[1] > 1:
            yield c, atoms[0], operands[0], operands[1]


def _plain(bounds: Bounds, d: Dim, least: int) -> tuple[float, float]:
    """The interval of a sum as that of its terms, whatever they have in common."""
    if not isinstance(d, Expr):
        return (d, d)
    low = high = 0.0
    for monomial, coefficient in d.terms:
        a, b = 1.0, 1.0
        for atom in monomial:
            c, e = _atom(bounds, atom, least)
            products = [_times(x, y) for x in (a, b) for y in (c, e)]
            a, b = min(products), max(products)
        ends = (_times(a, coefficient), _times(b, coefficient))
        low, high = low + min(ends), high + max(ends)
    return low, high


def number(bounds: Bounds, d: Dim, least: int = 1) -> Dim:
    """The number that `d` is for all values of its symbols, else `d`; a symbol without bounds is at least `least`."""
    low, high = interval(bounds, d, least)
    return int(low) if isinstance(d, Expr) and low == high and abs(low) < EXACT else d


def sign(bounds: Bounds, d: Dim) -> int:
    """2 when always positive, 1 when never negative, -2 and -1 likewise; raises Undecided when neither."""
    low, high = interval(bounds, d)
    if low > 0:
        return 2
    if high < 0:
        return -2
    if low >= 0:
        return 1
    if high <= 0:
        return -1
    raise Undecided


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _atom(bounds: Bounds, atom: tuple[object, ...], least: int) -> tuple[float, float]:
    if len(atom) == 1:
        return bounds.get(str(atom[0]), (least, inf))
    name, a, b = atom
    (al, ah), (bl, bh) = _plain(bounds, a, least), _plain(bounds, b, least)  # type: ignore[arg-type]
    if name == "max":
        return max(al, bl), max(ah, bh)
    if name == "min":
        return min(al, bl), min(ah, bh)
    if name == "root":
        return _rooted(al), _rooted(ah)
    if name == "divisor":
        return 1.0, max(1.0, min(ah, bh))
    if name == "scaled":
        ends = sorted(_times(end, float_of(int(bl))) for end in (al, ah))
        return tuple(end if abs(end) == inf else floor(end) for end in ends)  # type: ignore[return-value]
    if name == "mod" and bl > 0:
        return 0.0, min(bh - 1, ah) if al >= 0 else bh - 1
    if bl > 0:
        down = name == "floordiv"
        return _divided(al, bl if al < 0 else bh, down), _divided(ah, bh if ah < 0 else bl, down)
    return -inf, inf


def _rooted(a: float) -> float:
    return a if a == inf else isqrt(max(0, int(a))) if a > -inf else 0.0


def _divided(a: float, b: float, down: bool) -> float:
    """a / b of a positive `b`, rounded down or towards 0; either may be infinite."""
    if abs(a) == inf:
        return a
    if b == inf:
        return -1.0 if a < 0 and down else 0.0
    return a // b if down or a >= 0 else -(-a // b)
