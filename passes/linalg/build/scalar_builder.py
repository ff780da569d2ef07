"""Builds IR that remembers what it made, folds constants, and knows what divides a sum."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any

from xcc._mlir import Attribute, Block, Type, Value, ir
from xcc.passes.linalg.build.tile_values import V
from xcc.passes.shared.patterns import int_constant
from xcc.symbolic import Dim

Int = int       # the builder has a method of that name
ATOM_OPS = {"floordiv": "arith.floordivsi", "max": "arith.maxsi", "min": "arith.minsi"}
DIVISIONS = ("arith.floordivsi", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi")
FOLDS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "arith.maxsi": max, "arith.minsi": min, "arith.floordivsi": operator.floordiv,
    "arith.divui": operator.floordiv, "arith.remui": operator.mod, "arith.ceildivsi": lambda x, y: -(-x // y),
    "arith.divsi": lambda x, y: int(x / y), "arith.remsi": lambda x, y: x - y * int(x / y)}


class ScalarBuilder:
    """Builds IR at the current insertion point; equal pure requests in scope give the same value."""

    def __init__(self, entry: Block, symbols: dict[str, Value]) -> None:
        self.entry = entry
        self.symbols = symbols
        self.scopes: list[dict[Any, Value | V]] = [{}]
        self.constants: dict[tuple[str, str], Value] = {}
        self.multiples: dict[Value, int] = {}     # loop variables and sums that are multiples of a number
        self.index = ir.IndexType.get()
        self.i1 = ir.IntegerType.get_signless(1)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values made inside are forgotten at the end: they do not dominate what follows."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def recall(self, key: Any) -> Any:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def remember(self, key: Any, value: Any) -> Any:
        self.scopes[-1][key] = value
        return value

    def op(self, name: str, result: Type, operands: Sequence[Value], /, **attributes: Attribute) -> Value:
        """A one-result op."""
        return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).results[0]

    def pure(self, name: str, result: Type, operands: Sequence[Value], /, **attributes: Attribute) -> Value:
        """A one-result op without effects: reused when made before with the same operands."""
        key = (name, str(result), tuple(operands), tuple(sorted((k, str(v)) for k, v in attributes.items())))
        found = self.recall(key)
        return found if found is not None else self.remember(key, self.op(name, result, operands, **attributes))

    # constants live at the top of the function
    def constant(self, attr: Attribute, type_: Type) -> Value:
        key = (str(attr), str(type_))
        if key not in self.constants:
            with ir.InsertionPoint.at_block_begin(self.entry):
                self.constants[key] = self.op("arith.constant", type_, [], value=attr)
        return self.constants[key]

    def int(self, n: int) -> Value:
        return self.constant(ir.IntegerAttr.get(self.index, n), self.index)

    def splat(self, scalar: Attribute, shape: Sequence[Int]) -> Value:
        """A dense constant vector of the scalar attribute."""
        t = ir.VectorType.get(list(shape), scalar.type)
        return self.constant(ir.DenseElementsAttr.get_splat(t, scalar), t)

    # index arithmetic, folding constants
    def as_int(self, v: Value) -> Int | None:
        return int_constant(v)

    def add(self, a: Value, b: Value) -> Value:
        x, y = self.as_int(a), self.as_int(b)
        if x == 0:
            return b
        if y == 0:
            return a
        if x is not None and y is not None:
            return self.int(x + y)
        total = self.pure("arith.addi", self.index, [a, b])
        if (common := gcd(self.multiple(a), self.multiple(b))) > 1:
            self.multiples[total] = common
        return total

    def multiple(self, v: Value) -> Int:
        """A number that divides `v`; 0 for the constant 0."""
        n = self.as_int(v)
        return abs(n) if n is not None else self.multiples.get(v, 1)

    def sub(self, a: Value, b: Value) -> Value:
        x, y = self.as_int(a), self.as_int(b)
        if y == 0:
            return a
        if x is not None and y is not None:
            return self.int(x - y)
        return self.pure("arith.subi", self.index, [a, b])

    def mul(self, a: Value, b: Value) -> Value:
        x, y = self.as_int(a), self.as_int(b)
        if x == 0 or y == 0:
            return self.int(0)
        if x == 1:
            return b
        if y == 1:
            return a
        if x is not None and y is not None:
            return self.int(x * y)
        return self.pure("arith.muli", self.index, [a, b])

    def binary(self, name: str, a: Value, b: Value) -> Value:
        x, y = self.as_int(a), self.as_int(b)
        if x is not None and y is not None:
            if name in FOLDS and not (y == 0 and name in DIVISIONS):
                return self.int(FOLDS[name](x, y))
        return self.pure(name, self.index, [a, b])

    def dim(self, d: Dim) -> Value:
        """The value of a dim over the kernel's symbols."""
        if isinstance(d, int):
            return self.int(d)
        total: Any = None
        for monomial, coef in d.terms:
            value = self.int(abs(coef))
            for atom in monomial:
                value = self.mul(value, self._atom(atom))
            if total is None:
                total = value if coef > 0 else self.sub(self.int(0), value)
            else:
                total = self.add(total, value) if coef > 0 else self.sub(total, value)
        return total

    def _atom(self, atom: Any) -> Value:
        if len(atom) == 1:
            return self.symbols[atom[0]]
        a, b = self.dim(atom[1]), self.dim(atom[2])
        if atom[0] == "mod":
            return self.sub(a, self.mul(self.binary("arith.floordivsi", a, b), b))
        return self.binary(ATOM_OPS[atom[0]], a, b)
