"""Elements of computed integers and conditions as functions of their place.

    iota along dim 1, at (i, j)                 j
    sums, slices, gathers of such tables        what they come to, as a sum of coordinates
    a <= b, of such sums                        AtMost(a - b)

An element is read off the ops behind it, at a place whose coordinates are symbols: no table is computed, and sizes may
be symbols, too. Where positions of a sequence are counted, compared and added up, little of that is left in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Union

import numpy as np

from xcc import symbolic
from xcc._mlir import Operation, Value
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import attrs_of
from xcc.dialects.xt.types import TensorType
from xcc.dim_expr import collapse
from xcc.passes.xt.graph.match import array_of, dims_of, dtype_of
from xcc.passes.xt.graph.rewrite import name_of, producer
from xcc.symbolic import Dim, Expr, floordiv, sym
from xcc.weights import WeightStore

DEEPEST = 60        # ops behind an element
KINDS = ("i1", "i32", "i64", "f32", "f64")      # that hold any position
COMPARED = {"le": (1, 0), "lt": (1, 1), "ge": (-1, 0), "gt": (-1, 1)}   # a - b times this, and this, is at most 0


@dataclass(frozen=True)
class AtMost:
    """The condition that `by` is at most 0."""

    by: Dim


Place = tuple[Dim, ...]
Element = Union[Dim, AtMost, None]


class Places:
    """What elements of values are; `weights` holds tables that are weights."""

    def __init__(self, weights: WeightStore | None) -> None:
        self.weights = weights
        self._sizes: dict[str, Dim] = {}        # of the dims along which coordinates run
        self._known: dict[tuple[Value, Place], Element] = {}
        self._depth = 0

    def anywhere(self, value: Value) -> Place:
        """A place of `value` with a symbol for each coordinate that is not always 0."""
        return tuple(0 if d == 1 else self._symbol(d) for d in dims_of(value))

    def at(self, value: Value, place: Place) -> Element:
        """The element of `value` at `place`: a sum of coordinates, a condition (true is 1), or None for others."""
        key = value, place
        if key not in self._known:
            self._depth += 1
            op = producer(value) if self._depth <= DEEPEST else None
            self._known[key] = None if op is None else self._element(op, value, place)
            self._depth -= 1
        return self._known[key]

    def before(self, op: Operation, place: Place) -> tuple[Value, Place] | None:
        """Where the element at `place` of the result of `op`, which moves elements, lies in its operand."""
        name, a = name_of(op), attrs_of(op)
        if name == "broadcast":
            return op.operands[0], aligned(op.operands[0], place)
        if name == "transpose":
            own = dict(zip(a.perm, place, strict=True))
            return op.operands[0], tuple(own[d] for d in range(len(place)))
        if name == "slice":
            return op.operands[0], tuple(s + p * t for s, p, t in zip(a.starts, place, a.strides, strict=True))
        if name == "reshape":
            found = self._reshaped(dims_of(op.operands[0]), dims_of(op.results[0]), place)
            return None if found is None else (op.operands[0], found)
        return None

    def _element(self, op: Operation, value: Value, place: Place) -> Element:
        name, a = name_of(op), attrs_of(op)
        if name in ("constant", "weight"):
            return self._stored(op, value, place)
        if name == "iota":
            return place[a.axis]
        if name == "dim":
            return a.value[0]
        if name == "concatenate":
            return self._joined(op, place)
        if name == "gather":
            return self._gathered(op, place)
        if name == "cumulative":
            return 0 if a.kind == "sum" and self.at(op.operands[0], self.anywhere(op.operands[0])) == 0 else None
        if name in ("add", "sub", "mul", "and", "compare", "convert"):
            return self._computed(op, [self.at(v, aligned(v, place)) for v in op.operands])
        moved = self.before(op, place)
        return None if moved is None else self.at(*moved)

    def _computed(self, op: Operation, given: Sequence[Element]) -> Element:
        name = name_of(op)
        if name == "convert":
            return _converted(given[0], dtype_of(op.results[0]))
        x, y = given
        if name == "and" and dtype_of(op.results[0]) == "i1":
            return y if x == 1 else x if y in (1, x) else 0 if 0 in (x, y) else None
        if not isinstance(x, int | Expr) or not isinstance(y, int | Expr) or dtype_of(op.operands[0]) not in KINDS[1:]:
            return None
        if name == "compare":
            return _compared(x - y, attrs_of(op).direction)
        return x + y if name == "add" else x - y if name == "sub" else x * y if name == "mul" else None

    def _stored(self, op: Operation, value: Value, place: Place) -> Element:
        kind = TensorType.of(value)
        if kind.dtype not in KINDS[:3] or 0 in kind.shape:
            return None
        held = array_of(value, self.weights)
        if held is None:
            return None
        table = np.asarray(held).astype(np.int64)
        first = int(table.flat[0])
        steps = [int(table[tuple(int(e == d) for e in range(table.ndim))]) - first if n > 1 else 0
                 for d, n in enumerate(table.shape)]
        line: Array = np.asarray(first)
        for d, step in enumerate(steps):
            line = line + step * np.arange(table.shape[d]).reshape(-1, *[1] * (table.ndim - 1 - d))
        return first + sum((p * s for p, s in zip(place, steps, strict=True)), 0) if np.all(table == line) else None

    def _joined(self, op: Operation, place: Place) -> Element:
        """One sum for all parts along the axis; a part of one element may only happen to agree."""
        axis, along = attrs_of(op).axis, self._symbol(dims_of(op.results[0])[attrs_of(op).axis])
        sizes = [dims_of(v)[axis] for v in op.operands]
        found: list[tuple[Dim, Element]] = []
        for v, size, start in zip(op.operands, sizes, accumulate(sizes, initial=0), strict=False):
            found.append((start, self.at(v, (*place[:axis], 0 if size == 1 else along - start, *place[axis + 1:]))))
        whole = next((e for (_, e), n in zip(found, sizes, strict=True) if n != 1), None)
        if not isinstance(whole, int | Expr):
            return None
        name = str(symbolic.bare_symbol(along))
        same = all(e == (symbolic.substitute(whole, {name: start}) if n == 1 else whole)
                   for (start, e), n in zip(found, sizes, strict=True))
        return symbolic.substitute(whole, {name: place[axis]}) if same else None

    def _gathered(self, op: Operation, place: Place) -> Element:
        a, (x, indices) = attrs_of(op), op.operands
        behind = a.axis + len(dims_of(indices)) - a.batch_dims
        chosen = self.at(indices, (*place[:a.batch_dims], *place[a.axis:behind]))
        if not isinstance(chosen, int | Expr) or not self._lies_in(chosen, dims_of(x)[a.axis]):
            return None
        return self.at(x, (*place[:a.axis], chosen, *place[behind:]))

    def _reshaped(self, source: Place, shape: Place, place: Place) -> Place | None:
        """The place in `source` of what lies at `place` in `shape`."""
        own = [p for p, n in zip(place, shape, strict=True) if n != 1]
        if [n for n in source if n != 1] == [n for n in shape if n != 1]:
            return tuple(0 if n == 1 else own.pop(0) for n in source)
        left: Dim = sum((p * symbolic.product(shape[d + 1:]) for d, p in enumerate(place)), 0)
        found: list[Dim] = []
        for d in range(len(source)):
            apart = symbolic.product(source[d + 1:])
            terms = [collapse({m: c}) for m, c in left.terms] if isinstance(left, Expr) else [left]
            found.append(sum((q for t in terms if (q := floordiv(t, apart)) * apart == t), 0))
            left = left - found[-1] * apart
            if not self._lies_in(left, apart):
                return None
        return tuple(found)

    def _lies_in(self, coordinate: Dim, size: Dim) -> bool:
        """Whether a coordinate is known to be at least 0 and below `size`."""
        if isinstance(coordinate, Expr) and any(c < 0 for _, c in coordinate.terms):
            return False
        most = symbolic.substitute(coordinate, {n: s - 1 for n, s in self._sizes.items()})
        over = most - size
        return isinstance(over, int) and over < 0 and (not isinstance(coordinate, int) or coordinate >= 0)

    def _symbol(self, size: Dim) -> Dim:
        name = f"coordinate {len(self._sizes)}"
        self._sizes[name] = size
        return sym(name)


def aligned(value: Value, place: Place) -> Place:
    """The place in an operand that is broadcast by numpy's rule."""
    dims = dims_of(value)
    return tuple(0 if n == 1 else p for n, p in zip(dims, place[len(place) - len(dims):], strict=True))


def _converted(x: Element, dtype: str) -> Element:
    if dtype == "i1":
        return int(x != 0) if isinstance(x, int) else x if isinstance(x, AtMost) else None
    return x if dtype in KINDS and isinstance(x, int | Expr) else None


def _compared(apart: Dim, direction: str) -> Element:
    """x (direction) y where x - y is `apart`."""
    if isinstance(apart, int):
        return int({"le": apart <= 0, "lt": apart < 0, "ge": apart >= 0, "gt": apart > 0, "eq": apart == 0,
                    "ne": apart != 0}[direction])
    sign, more = COMPARED.get(direction, (0, 0))
    return AtMost(apart * sign + more) if sign else None
