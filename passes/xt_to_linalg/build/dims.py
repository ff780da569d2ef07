"""Symbolic dimensions as `index` SSA values over a kernel's symbol arguments."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.diagnostics import CompilerBug
from xcc.symbolic import Dim, Expr


class DimEmitter:
    """Emits each dimension once, in the entry block before `anchor`, where it dominates every use."""

    def __init__(self, symbols: dict[str, Value], anchor: Operation) -> None:
        self._symbols = symbols
        self._anchor = anchor
        self._values: dict[Dim, Value] = {}

    def __call__(self, dim: Dim) -> Value:
        """The value of `dim`, an int or an Expr, as an index."""
        found = self._values.get(dim)
        if found is None:
            with ir.InsertionPoint(self._anchor):
                found = self._values[dim] = self._emit(dim)
        return found

    def _emit(self, dim: Dim) -> Value:
        if not isinstance(dim, Expr):
            return arith_d.constant(ir.IndexType.get(), dim)
        total: Any = None
        for monomial, coefficient in dim.terms:
            factors = [self._atom(a) for a in monomial]
            if coefficient != 1 or not factors:
                factors.append(self(coefficient))
            term = factors[0]
            for factor in factors[1:]:
                term = arith_d.muli(term, factor)
            total = term if total is None else arith_d.addi(total, term)
        return total

    def _atom(self, atom: Any) -> Value:
        if len(atom) == 1:
            if atom[0] not in self._symbols:
                raise CompilerBug(f"kernel has no symbol '{atom[0]}'; it has {', '.join(self._symbols) or 'none'}")
            return self._symbols[atom[0]]
        name, a, b = atom[0], self(atom[1]), self(atom[2])
        if name in ("floordiv", "mod") and isinstance(atom[2], Expr):       # a size of 0 is none to divide by
            b = arith_d.select(arith_d.cmpi(arith_d.CmpIPredicate.eq, b, self(0)), self(1), b)
        if name == "floordiv":
            return arith_d.floordivsi(a, b)
        if name == "mod":
            rem = arith_d.remsi(a, b)
            return rem if _non_negative(atom[1]) else arith_d.remsi(arith_d.addi(rem, b), b)
        return (arith_d.maxsi if name == "max" else arith_d.minsi)(a, b)


def _non_negative(d: Dim) -> bool:
    """Whether `d` is a sum of products that are not negative for positive symbols, as far as its form tells."""
    return d >= 0 if isinstance(d, int) else all(c > 0 for _, c in d.terms)
