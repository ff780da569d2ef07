"""Symbolic dimensions: integer expressions over named symbols, and what is asked of them.

A dimension is an ``int`` or an :class:`Expr` (`xcc.dim_expr`; its names, and those of `xcc.dim_functions`, are here,
too). The text form is the one stored in tensor types and artifacts: ``"2*batch + floordiv(h + 31, 32)"``.

It depends on nothing but the reader and writer of that text: the compiler and the runtime both use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from xcc.dim_expr import Atom, Dim, Expr, bare_symbol, floordiv, mod, sym
from xcc.dim_functions import (
    FUNCTIONS,
    NUMBERS,
    ceildiv,
    dim_max,
    dim_min,
    divisor,
    float_of,
    is_equal,
    root,
    scaled,
    truncdiv,
)
from xcc.dim_text import read

__all__ = ["Atom", "Dim", "Expr", "LONGEST", "NUMBERS", "bare_symbol", "ceildiv", "dim_max", "dim_min", "divisor",
           "evaluate", "float_of", "floordiv", "is_equal", "is_static", "mod", "parse", "product", "replace", "root",
           "scaled", "simplify", "substitute", "symbols_of", "sym", "truncdiv"]

LONGEST = 1500
"""Characters of the text of a dim, from which on a sum or product of dims is rather computed when a model runs."""


def is_static(dims: Iterable[Dim]) -> bool:
    return all(isinstance(d, int) for d in dims)


def product(dims: Iterable[Dim]) -> Dim:
    out: Dim = 1
    for d in dims:
        out = out * d
    return out


def symbols_of(d: Dim) -> tuple[str, ...]:
    """The symbols of `d`, sorted by name."""
    found: set[str] = set()

    def visit(x: Dim) -> None:
        if isinstance(x, Expr):
            for m, _ in x.terms:
                for atom in m:
                    if len(atom) == 1:
                        found.add(atom[0])
                    else:
                        visit(atom[1])
                        visit(atom[2])

    visit(d)
    return tuple(sorted(found))


def substitute(d: Dim, env: Mapping[str, Dim]) -> Dim:
    """`d` with each symbol of `env` replaced; symbols not in `env` stay."""
    if not isinstance(d, Expr):
        return d
    name = bare_symbol(d)
    if name is not None:
        return env.get(name, d)
    total: Dim = 0
    for m, c in d.terms:
        value: Dim = c
        for atom in m:
            if len(atom) == 1:
                value = value * env.get(atom[0], sym(atom[0]))
            else:
                value = value * FUNCTIONS[atom[0]](substitute(atom[1], env), substitute(atom[2], env))
        total = total + value
    return total


def replace(d: Dim, env: Mapping[Expr, Dim]) -> Dim:
    """`d` with each dim of `env` replaced, where it is all of `d`, a factor or an operand of a function."""
    if not isinstance(d, Expr) or not env:
        return d
    if d in env:
        return env[d]
    total: Dim = 0
    for m, c in d.terms:
        value: Dim = c
        for atom in m:
            own = Expr({(atom,): 1})
            if own not in env and len(atom) > 1:
                value = value * FUNCTIONS[atom[0]](replace(atom[1], env), replace(atom[2], env))
            else:
                value = value * env.get(own, own)
        total = total + value
    return total


def simplify(d: Dim) -> Dim:
    """Rebuilds `d`, so that rules which apply only after a substitution take effect."""
    return substitute(d, {})


def evaluate(d: Dim, env: Mapping[str, int]) -> int:
    """The value of `d`; raises KeyError with a symbol that `env` lacks."""
    if not isinstance(d, Expr):
        return d
    total = 0
    for monomial, value in d.terms:
        for atom in monomial:
            if len(atom) == 1:
                value *= env[atom[0]]
            else:
                value *= NUMBERS[atom[0]](evaluate(atom[1], env), evaluate(atom[2], env))
        total += value
    return total


@lru_cache(maxsize=65536)
def parse(text: str) -> Dim:
    """Reads the text form; raises ValueError with the position of what it cannot read."""
    dim: Dim = read(text, sym, FUNCTIONS)
    return dim
