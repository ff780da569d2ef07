"""Symbolic dimensions: integer expressions over named symbols, and their arithmetic. Use them as `xcc.symbolic`.

A dimension is an ``int`` or an :class:`Expr`. An ``Expr`` is kept as a polynomial with integer
coefficients whose atoms are symbols and the opaque functions ``floordiv``, ``truncdiv`` (rounds
towards 0), ``mod``, ``max``, ``min``, ``root`` and ``scaled``, so that equal expressions compare equal after the usual
algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, reduce
from math import gcd
from typing import Union

from xcc.dim_text import write

__all__ = ["Atom", "Dim", "Expr", "bare_symbol", "collapse", "floordiv", "function", "mod", "quotient", "sym"]

Atom = Union[tuple[str], tuple[str, "Dim", "Dim"]]
Monomial = tuple[Atom, ...]


class Expr:
    """An immutable, canonical symbolic integer. Build with :func:`sym` and arithmetic."""

    __slots__ = ("_hash", "_text", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        live = [(m, c) for m, c in terms.items() if c]
        if len(live) > 1:
            live.sort(key=lambda t: (-len(t[0]), str(t[0])))
        self.terms = tuple(live)
        self._hash = hash(self.terms)
        self._text = ""

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other == 0:
            return self
        terms = dict(self.terms)
        for m, c in _terms(other):
            terms[m] = terms.get(m, 0) + c
        return collapse(terms)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + (other * -1)

    def __rsub__(self, other: Dim) -> Dim:
        return (self * -1) + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return self if other == 1 else collapse({m: c * other for m, c in self.terms})
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in _terms(other):
                m = tuple(sorted(m1 + m2, key=str))
                terms[m] = terms.get(m, 0) + c1 * c2
        return collapse(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return mod(self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return mod(other, self)

    def __repr__(self) -> str:
        return f"Expr({str(self)!r})"

    def __str__(self) -> str:
        if not self._text:
            self._text = write(self.terms)
        return self._text


Dim = Union[int, Expr]


@cache
def sym(name: str) -> Expr:
    """The symbol `name`, any text that is not empty; one that is not plain is in quotes in the text of expressions."""
    if not name:
        raise ValueError("a symbol without a name")
    return Expr({((name,),): 1})


def bare_symbol(d: Dim) -> str | None:
    """The name of the symbol that `d` is; None where it is a number or has more to it."""
    if not isinstance(d, Expr) or len(d.terms) != 1:
        return None
    (atoms, factor), = d.terms
    return atoms[0][0] if factor == 1 and len(atoms) == 1 and len(atoms[0]) == 1 else None


def _terms(d: Dim) -> Iterable[tuple[Monomial, int]]:
    return d.terms if isinstance(d, Expr) else [((), int(d))]


def collapse(terms: Mapping[Monomial, int]) -> Dim:
    """The sum of the terms: a number where it is one."""
    live = {m: c for m, c in terms.items() if c}
    if not live:
        return 0
    if len(live) == 1 and () in live:
        return live[()]
    return Expr(live)


def function(name: str, a: Dim, b: Dim) -> Expr:
    """A function that the algebra cannot look into."""
    return Expr({((name, a, b),): 1})


def floordiv(a: Dim, b: Dim) -> Dim:
    """Floor division; exact parts are divided out, and common factors (which are not 0: it would be no division)."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    if a == b:
        return 1
    if isinstance(b, Expr):
        return quotient(floordiv, a, b)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, c in _terms(a):
        q, r = divmod(c, b)
        if r == 0 or m == ():
            whole[m], c = q, r
        if c:
            rest[m] = c
    base = collapse(whole)
    remainder = collapse(rest)
    if isinstance(remainder, int):
        return base + remainder // b
    inner: Dim = remainder
    by = b
    common = reduce(gcd, [c for _, c in remainder.terms], by)
    if common > 1:
        inner, by = collapse({m: c // common for m, c in remainder.terms}), by // common
    if by == 1:
        return base + inner
    nested = _single_floordiv(inner) if by > 0 else None
    if nested is not None:
        return base + floordiv(nested[0], nested[1] * by)
    return base + function("floordiv", inner, by)


def _single_floordiv(e: Dim) -> tuple[Dim, int] | None:
    """``e = floordiv(x, c) + k`` as ``(x + k*c, c)``."""
    if not isinstance(e, Expr):
        return None
    k = 0
    hit: tuple[Dim, int] | None = None
    for m, c in e.terms:
        by = _by_number(m[0]) if c == 1 and len(m) == 1 and not hit else None
        if m == ():
            k = c
        elif by is None:
            return None
        else:
            hit = by
    return None if hit is None else (hit[0] + k * hit[1], hit[1])


def _by_number(atom: Atom) -> tuple[Dim, int] | None:
    """``floordiv(x, k)`` of a number `k` as ``(x, k)``."""
    return (atom[1], atom[2]) if len(atom) == 3 and atom[0] == "floordiv" and isinstance(atom[2], int) else None


def quotient(divided: Callable[[Dim, Dim], Dim], a: Dim, b: Expr) -> Dim:
    """``divided(a, b)`` without common factors: 0 is none of them, as there would be no quotient."""
    top, bottom = _reduced(_multiplied_out(a), _multiplied_out(b))
    if isinstance(bottom, int):
        return divided(top, bottom)
    number = reduce(gcd, [c for _, c in bottom.terms])
    exact = _divide_exactly(top, Expr({m: c // number for m, c in bottom.terms}))
    return function(divided.__name__, top, bottom) if exact is None else divided(exact, number)


def _multiplied_out(a: Dim) -> Dim:
    """`a` with ``x`` for each ``k*floordiv(x, k)`` of an `x` that `k` divides."""
    out: Dim = 0
    for m, c in _terms(a):
        exact = [(i, *by) for i, f in enumerate(m) if (by := _by_number(f)) and c % by[1] == 0 and mod(*by) == 0]
        if not exact:
            out += collapse({m: c})
            continue
        i, x, k = exact[0]
        out += _multiplied_out(collapse({m[:i] + m[i + 1:]: c // k}) * x)
    return out


def _divide_exactly(a: Dim, b: Expr) -> Dim | None:
    """The quotient of polynomials, where nothing remains."""
    out: Dim = 0
    for _ in range(2 * len(a.terms) if isinstance(a, Expr) else 0):
        if not isinstance(a, Expr):
            break
        (m, c), (bm, bc) = a.terms[0], b.terms[0]
        left = _without(m, bm)
        if left is None or c % bc:
            return None
        step = collapse({left: c // bc})
        out, a = out + step, a - step * b
    return out if a == 0 else None


def _without(m: Monomial, factors: Iterable[Atom]) -> Monomial | None:
    left = list(m)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _reduced(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """A fraction without the factors that all terms of both have."""
    terms = [*_terms(a), *_terms(b)]
    number = reduce(gcd, [c for _, c in terms])
    common = [atom for atom in dict.fromkeys(terms[0][0])
              for _ in range(min(m.count(atom) for m, _ in terms))]
    if number <= 1 and not common:
        return a, b
    top, bottom = ({_without(m, common) or (): c // number for m, c in _terms(d)} for d in (a, b))
    return collapse(top), collapse(bottom)


def mod(a: Dim, b: Dim) -> Dim:
    """``a - b*floordiv(a, b)`` with the sign of `b`; 0 where `b` divides every term."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b == 1 or a == b:
        return 0
    if isinstance(b, int):
        rest = sum((_unwrapped(m, b) * (c % b) for m, c in _terms(a)), 0)
        rest = collapse({m: c % b for m, c in _terms(rest)})
        return rest % b if isinstance(rest, int) else function("mod", rest, b)
    if isinstance(b, Expr) and _divide_exactly(a, b) is not None:
        return 0
    return function("mod", a, b)


def _unwrapped(m: Monomial, b: int) -> Dim:
    """The monomial, or what is left of it where it is a remainder of its own by a multiple of `b`."""
    name, *inner = m[0] if len(m) == 1 else ("",)
    return inner[0] if name == "mod" and isinstance(inner[1], int) and inner[1] % b == 0 else collapse({m: 1})
