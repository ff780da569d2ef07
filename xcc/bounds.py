"""Signs and values of symbolic dims from the bounds of their symbols, by interval arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from xcc.symbolic import Dim, Expr


class Undecided(Exception):
    """What was asked depends on values that the bounds leave open."""


Bounds = Mapping[str, tuple[float, float]]
EXACT = 2.0 ** 53
"""Numbers below it are exact as floats."""


def interval(bounds: Bounds, d: Dim, least: int = 1) -> tuple[float, float]:
    """The least and largest value of `d`; a symbol without bounds is at least `least`."""
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
    (al, ah), (bl, bh) = interval(bounds, a, least), interval(bounds, b, least)  # type: ignore[arg-type]
    if name == "max":
        return max(al, bl), max(ah, bh)
    if name == "min":
        return min(al, bl), min(ah, bh)
    if name == "mod" and bl > 0:
        return 0.0, bh - 1
    if name == "floordiv" and bl > 0 and al > -inf:
        low = al // bl if al < 0 else 0.0 if bh == inf else al // bh
        high = inf if ah == inf else ah // bl if ah >= 0 else -1.0 if bh == inf else ah // bh
        return low, high
    return -inf, inf
