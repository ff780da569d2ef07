"""Elements of a thread's vectors as scalars, such that equal places are one value.

Windows of neighbours overlap: what one reads at `w + 1` another has read at `(w + 1) + 0`. Sums are written with their
constants added up, so that the addresses of both become one value, and their loads one load. A remainder is what it was
divided less a multiple of the quotient: places that are taken apart into coordinates and put together again are what
they were.

    %h = %p / 14, %w = %p rem 14: the pixel's address is %h * 3584 + %w * 256 = %p * 256
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcc._mlir import Block, Value, arith_d, ir, maker, vector_d
from xcc.passes.gpu.index.index_vectors import clamped
from xcc.passes.gpu.layout.tile_ops import splat
from xcc.passes.shared.patterns import int_constant

Form = tuple[Mapping[Value, int], int]
"""A sum: values and how often each is in it, and a constant."""
Bound = tuple[frozenset[tuple[Value, int]], int, int]
"""A sum that is not below 0, and below a number."""


class Lanes:
    """Scalars at the current insertion point."""

    def __init__(self) -> None:
        self._made: dict[Any, Value] = {}     # what was built for a key, in one block
        self._forms: dict[tuple[Value, int, Block, frozenset[Bound] | None], Form] = {}
        self._inside: frozenset[Bound] | None = None

    def element(self, value: Value, lane: int) -> Value:
        """Element `lane` of a vector of one dim, or of bits or places made of such."""
        if isinstance(ir.VectorType(value.type).element_type, ir.IndexType):
            return self._sum(self._form(value, lane))
        return self._opaque(value, lane)

    def inside(self, value: Value, mask: Value, lane: int) -> Value:
        """Element `lane` of places, without the clamps that change nothing where that of `mask` holds, and without
        remainders."""
        self._inside = frozenset()
        self._inside = frozenset(self._bounds(mask, lane))
        found = self.element(value, lane)
        self._inside = None
        return found

    def _bounds(self, mask: Value, lane: int) -> list[Bound]:
        """What is not below 0, and below a number, where element `lane` of `mask` holds."""
        source = _source(mask, lane)
        if source is not None:
            return self._bounds(*source)
        op = maker(mask)
        if op is not None and op.name == "arith.andi":
            return [bound for v in op.operands for bound in self._bounds(v, lane)]
        if op is None or op.name != "arith.cmpi" or op.attributes["predicate"].value != arith_d.CmpIPredicate.ult.value:
            return []
        (terms, rest), (others, limit) = (self._form(v, lane) for v in op.operands)
        return [] if others else [(frozenset(terms.items()), rest, limit)]

    def _sum(self, form: Form) -> Value:
        terms, rest = form
        total = None
        for value, factor in terms.items():
            term = value if factor == 1 else self._binary(arith_d.muli, value, self._number(factor))
            total = term if total is None else self._binary(arith_d.addi, total, term)
        if total is None:
            return self._number(rest)
        return total if rest == 0 else self._binary(arith_d.addi, total, self._number(rest))

    def _number(self, n: int) -> Value:
        return self._kept(("number", n), lambda: arith_d.constant(ir.IndexType.get(), n))

    def _binary(self, build: Any, a: Value, b: Value) -> Value:
        return self._kept((build.__name__, a, b), lambda: build(a, b))

    def _kept(self, key: Any, build: Any) -> Value:
        place = ir.InsertionPoint.current.block, key
        if place not in self._made:
            self._made[place] = build()
        return self._made[place]

    def _form(self, value: Value, lane: int) -> Form:
        key = value, lane, ir.InsertionPoint.current.block, self._inside
        if key not in self._forms:
            self._forms[key] = self._sum_of(value, lane)
        return self._forms[key]

    def _sum_of(self, value: Value, lane: int) -> Form:
        fixed = int_constant(value) if not isinstance(value.type, ir.VectorType) else _fixed(value, lane)
        if fixed is not None:
            return {}, fixed
        source = _source(value, lane)
        if source is not None:
            return self._form(*source)
        op = maker(value)
        if op is not None and op.name in ("arith.addi", "arith.subi"):
            (terms, rest), (others, other) = (self._form(v, lane) for v in op.operands)
            sign = 1 if op.name == "arith.addi" else -1
            return _plus(terms, others, sign), rest + sign * other
        if op is not None and op.name == "arith.muli":
            for (terms, rest), (others, other) in ((a, b) for sides in [[self._form(v, lane) for v in op.operands]]
                                                   for a, b in (sides, sides[::-1])):
                if not others:
                    return {v: factor * other for v, factor in terms.items() if other}, rest * other
        if self._inside is None or op is None:
            return {self._opaque(value, lane): 1}, 0
        if op.name == "arith.remui" and (by := self._form(op.operands[1], lane))[0] == {}:
            terms, rest = self._form(op.operands[0], lane)
            quotient = self._binary(arith_d.divui, self._sum((terms, rest)), self._number(by[1]))
            return _plus(terms, {quotient: 1}, -by[1]), rest
        if (found := clamped(op)) is not None:
            (terms, rest), (others, most) = (self._form(v, lane) for v in found)
            if not others and (frozenset(terms.items()), rest, most + 1) in self._inside:
                return terms, rest
        return {self._opaque(value, lane): 1}, 0

    def _opaque(self, value: Value, lane: int) -> Value:
        """The element by an operation of its own, of operands that are elements."""
        if not isinstance(value.type, ir.VectorType):
            return value
        source = _source(value, lane)
        if source is not None:
            return self._opaque(*source)
        op = maker(value)
        element = ir.VectorType(value.type).element_type
        if op is None or not op.name.startswith("arith.") or op.name == "arith.constant":
            return self._kept(("element", value, lane), lambda: vector_d.extract(value, [], [lane]))
        operands = [self.element(v, lane) if isinstance(v.type, ir.VectorType) else v for v in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes if name != "fastmath"}
        key = op.name, *operands, *(f"{n}={a}" for n, a in attributes.items())
        return self._kept(key, lambda: ir.Operation.create(op.name, [element], operands, attributes).results[0])


def _plus(terms: Mapping[Value, int], others: Mapping[Value, int], times: int) -> Mapping[Value, int]:
    """The terms of a sum and so many times those of another."""
    total = dict(terms)
    for v, factor in others.items():
        total[v] = total.get(v, 0) + times * factor
    return {v: factor for v, factor in total.items() if factor}


def _source(value: Value, lane: int) -> tuple[Value, int] | None:
    """The vector, or scalar, and the lane that an element is taken from as it is."""
    op = maker(value)
    if op is None or not isinstance(value.type, ir.VectorType):
        return None
    if op.name == "vector.broadcast":
        source = op.operands[0]
        if not isinstance(source.type, ir.VectorType):
            return source, 0
        return (source, 0) if ir.VectorType(source.type).shape[-1] == 1 else None
    if op.name == "vector.from_elements":
        return op.operands[lane], 0
    if op.name == "vector.shuffle":
        place = list(ir.DenseI64ArrayAttr(op.attributes["mask"]))[lane]
        first = ir.VectorType(op.operands[0].type).shape[0]
        return (op.operands[0], place) if place < first else (op.operands[1], place - first)
    return None


def _fixed(value: Value, lane: int) -> int | None:
    """Element `lane` of a constant."""
    op = maker(value, "arith.constant")
    if op is None:
        return None
    return splat(value) if ir.DenseElementsAttr(op.attributes["value"]).is_splat else \
        int(ir.DenseIntElementsAttr(op.attributes["value"])[lane])
