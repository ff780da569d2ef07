"""The vocabulary of the tile evaluator: axes, index expressions, tile values, and a memoising IR builder.

An *axis* is one dimension of vectors, with a static size and maybe a limit (lanes past it are invalid). An *index*
(:class:`Ix`) is ``base + const + sum(coef * axis)``: a scalar plus a known walk over axes; when it is not affine it is
a vector of indices instead. A *value* (:class:`V`) is an SSA scalar or vector with the axes of its dims.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from xcc._mlir import ir
from xcc.symbolic import Dim

Int = int       # the builder has a method of that name
ATOM_OPS = {"floordiv": "arith.floordivsi", "max": "arith.maxsi", "min": "arith.minsi"}
DIVISIONS = ("arith.floordivsi", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi")
FOLDS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "arith.maxsi": max, "arith.minsi": min, "arith.floordivsi": operator.floordiv,
    "arith.divui": operator.floordiv, "arith.remui": operator.mod, "arith.ceildivsi": lambda x, y: -(-x // y),
    "arith.divsi": lambda x, y: int(x / y), "arith.remsi": lambda x, y: x - y * int(x / y)}


@dataclass(eq=False)
class Axis:
    """A vector dimension. `order` sorts axes when values combine; `limit` is an index SSA value, or None: all valid."""

    size: int
    order: int
    limit: Any = None

@dataclass(frozen=True)
class V:
    """An SSA value whose vector dims are `axes` (none: a scalar)."""

    value: Any
    axes: tuple[Axis, ...] = ()

@dataclass(frozen=True, eq=False)
class Ix:
    """An index: `base` (SSA or None) + `const` + sum of coef * lane over `coefs`; or the vector `vec` alone.

    `part` is (walk, n) for coordinate n of a walk over several dims as one.
    `walk` = (walk, low, high) says that `vec` is a walk over one axis by ones, clamped into [low, high] (scalars; None:
    not on this side).
    """

    base: Any = None
    const: int = 0
    coefs: tuple[tuple[Axis, int], ...] = ()
    vec: V | None = None
    part: tuple[Flat, int] | None = None
    walk: tuple[Ix, Any, Any] | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.vec.axes if self.vec is not None else tuple(a for a, _ in self.coefs)

    @property
    def is_scalar(self) -> bool:
        return not self.axes

    def is_const(self, n: int) -> bool:
        return self.base is None and self.vec is None and not self.coefs and self.const == n

    def key(self) -> tuple[Any, ...]:
        if self.vec is not None:
            return ("vec", self.vec.value, self.vec.axes)
        return (self.base, self.const, self.coefs)

@dataclass(frozen=True, eq=False)
class Flat:
    """A walk over neighbouring dims of `sizes` as if they were one: `index` is the position in their product."""

    index: Ix
    sizes: tuple[Dim, ...]

class Builder:
    """Builds IR at the current insertion point; equal pure requests in scope give the same value."""

    def __init__(self, entry: Any, symbols: dict[str, Any]) -> None:
        self.entry = entry
        self.symbols = symbols
        self.scopes: list[dict[Any, Any]] = [{}]
        self.constants: dict[Any, Any] = {}
        self.multiples: dict[Any, int] = {}     # loop variables and sums that are multiples of a number
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

    def op(self, name: str, result: Any, operands: Sequence[Any], /, **attributes: Any) -> Any:
        """A one-result op."""
        return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).results[0]

    def pure(self, name: str, result: Any, operands: Sequence[Any], /, **attributes: Any) -> Any:
        """A one-result op without effects: reused when made before with the same operands."""
        key = (name, str(result), tuple(operands), tuple(sorted((k, str(v)) for k, v in attributes.items())))
        found = self.recall(key)
        return found if found is not None else self.remember(key, self.op(name, result, operands, **attributes))

    # constants live at the top of the function
    def constant(self, attr: Any, type_: Any) -> Any:
        key = (str(attr), str(type_))
        if key not in self.constants:
            with ir.InsertionPoint.at_block_begin(self.entry):
                self.constants[key] = self.op("arith.constant", type_, [], value=attr)
        return self.constants[key]

    def int(self, n: int) -> Any:
        return self.constant(ir.IntegerAttr.get(self.index, n), self.index)

    def splat(self, scalar: Any, shape: Sequence[Int]) -> Any:
        """A dense constant vector of the scalar attribute."""
        t = ir.VectorType.get(list(shape), scalar.type)
        return self.constant(ir.DenseElementsAttr.get_splat(t, scalar), t)

    # index arithmetic, folding constants
    def as_int(self, v: Any) -> Int | None:
        owner = v.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            return None
        return int(owner.attributes["value"].value)

    def add(self, a: Any, b: Any) -> Any:
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

    def multiple(self, v: Any) -> Int:
        """A number that divides `v`; 0 for the constant 0."""
        n = self.as_int(v)
        return abs(n) if n is not None else self.multiples.get(v, 1)

    def sub(self, a: Any, b: Any) -> Any:
        x, y = self.as_int(a), self.as_int(b)
        if y == 0:
            return a
        if x is not None and y is not None:
            return self.int(x - y)
        return self.pure("arith.subi", self.index, [a, b])

    def mul(self, a: Any, b: Any) -> Any:
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

    def binary(self, name: str, a: Any, b: Any) -> Any:
        x, y = self.as_int(a), self.as_int(b)
        if x is not None and y is not None:
            if name in FOLDS and not (y == 0 and name in DIVISIONS):
                return self.int(FOLDS[name](x, y))
        return self.pure(name, self.index, [a, b])

    def dim(self, d: Dim) -> Any:
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

    def _atom(self, atom: Any) -> Any:
        if len(atom) == 1:
            return self.symbols[atom[0]]
        a, b = self.dim(atom[1]), self.dim(atom[2])
        if atom[0] == "mod":
            return self.sub(a, self.mul(self.binary("arith.floordivsi", a, b), b))
        return self.binary(ATOM_OPS[atom[0]], a, b)

    # indices
    def ix_add(self, a: Ix, b: Ix) -> Ix:
        if a.is_const(0) or b.is_const(0):
            return b if a.is_const(0) else a
        if a.vec is not None or b.vec is not None:
            return self.ix_vector("arith.addi", a, b)
        coefs: dict[Axis, int] = dict(a.coefs)
        for axis, c in b.coefs:
            coefs[axis] = coefs.get(axis, 0) + c
        base = a.base if b.base is None else b.base if a.base is None else self.add(a.base, b.base)
        return Ix(base, a.const + b.const, tuple((x, c) for x, c in coefs.items() if c))

    def ix_scale(self, a: Ix, k: Int) -> Ix:
        if k == 1:
            return a
        if a.vec is not None:
            return self.ix_vector("arith.muli", a, Ix(const=k))
        if k == 0:
            return Ix()
        base = None if a.base is None else self.mul(a.base, self.int(k))
        return Ix(base, a.const * k, tuple((x, c * k) for x, c in a.coefs))

    def ix_vector(self, name: str, a: Ix, b: Ix) -> Ix:
        """Any integer op on indices: scalar when both are, else element by element."""
        if a.is_scalar and b.is_scalar:
            return self.ix_of(self.binary(name, self.scalar(a), self.scalar(b)))
        x, y = self.align([self.vector(a), self.vector(b)])
        shape = [axis.size for axis in x.axes]
        t = ir.VectorType.get(shape, self.index)
        return Ix(vec=V(self.pure(name, t, [x.value, y.value]), x.axes), walk=self._clamped(name, a, b))

    def _clamped(self, name: str, a: Ix, b: Ix) -> tuple[Ix, Any, Any] | None:
        """The `walk` of min(a, b) or max(a, b)."""
        if a.is_scalar:
            a, b = b, a
        if name not in ("arith.minsi", "arith.maxsi") or not b.is_scalar:
            return None
        if a.vec is None:
            by_ones = len(a.coefs) == 1 and a.coefs[0][1] == 1
            found: tuple[Ix, Any, Any] | None = (a, None, None) if by_ones else None
        else:
            found = a.walk
        if found is None:
            return None
        walk, low, high = found
        if name == "arith.minsi" and low is None and high is None:
            return walk, None, self.scalar(b)
        return (walk, self.scalar(b), high) if name == "arith.maxsi" and low is None else None

    def parts(self, index: Ix, sizes: Sequence[Dim]) -> list[Ix]:
        """The coordinates of position `index` of the product of `sizes`, whose base is a multiple of its lanes."""
        key = ("parts", index.key(), tuple(sizes))
        found: list[Ix] | None = self.recall(key)
        if found is not None:
            return found
        flat, rest, out = Flat(index, tuple(sizes)), index, []
        for size in reversed(sizes[1:]):
            rest, part = self._divide(rest, size)
            out.append(part)
        out.append(rest)
        made = [replace(part, part=(flat, n)) for n, part in enumerate(reversed(out))] if len(out) > 1 else out
        return self.remember(key, made)

    def _divide(self, a: Ix, size: Dim) -> tuple[Ix, Ix]:
        """Quotient and remainder; lanes that never leave one quotient stay affine."""
        lanes = max((axis.size for axis, _ in a.coefs), default=1)
        by = self.ix_of(self.dim(size))
        if a.vec is None and (lanes == 1 or isinstance(size, int) and size % lanes == 0):
            base = self.ix_of(self.scalar(a))
            rest = self.ix_vector("arith.remui", base, by)
            return self.ix_vector("arith.divui", base, by), Ix(rest.base, rest.const, a.coefs)
        return self.ix_vector("arith.divui", a, by), self.ix_vector("arith.remui", a, by)

    def ix_of(self, value: Any) -> Ix:
        n = self.as_int(value)
        return Ix(const=n) if n is not None else Ix(base=value)

    def scalar(self, a: Ix) -> Any:
        """The scalar part of an affine index."""
        base = self.int(a.const) if a.base is None else a.base
        return base if a.base is None or a.const == 0 else self.add(base, self.int(a.const))

    def vector(self, a: Ix) -> V:
        """An index as a value over its axes."""
        if a.vec is not None:
            return a.vec
        total = V(self.scalar(a))
        for axis, c in a.coefs:
            t = ir.VectorType.get([axis.size], self.index)
            step = self.pure("vector.step", t, [])
            if c != 1:
                step = self.pure("arith.muli", t, [step, self.splat(ir.IntegerAttr.get(self.index, c), [axis.size])])
            x, y = self.align([total, V(step, (axis,))])
            shape = ir.VectorType.get([q.size for q in x.axes], self.index)
            total = V(self.pure("arith.addi", shape, [x.value, y.value]), x.axes)
        return total

    # values
    def align(self, values: Sequence[V], axes: tuple[Axis, ...] | None = None) -> list[V]:
        """Brings values to the same axes (all of theirs, by default) by transposing and broadcasting."""
        if axes is None:
            widest = max(values, key=lambda v: len(v.axes)).axes
            missing = {a for v in values for a in v.axes} - set(widest)
            axes = tuple(sorted((*widest, *missing), key=lambda a: a.order)) if missing else widest
        return [self.broadcast(v, axes) for v in values]

    def broadcast(self, v: V, axes: tuple[Axis, ...]) -> V:
        if v.axes == axes:
            return v
        element = ir.VectorType(v.value.type).element_type if v.axes else v.value.type
        shape = [a.size for a in axes]
        full = ir.VectorType.get(shape, element)
        if not v.axes:
            constant = v.value.owner
            if not isinstance(constant, ir.Block) and constant.name == "arith.constant":
                return V(self.splat(constant.attributes["value"], shape), axes)
            return V(self.pure("vector.broadcast", full, [v.value]), axes)
        value = v.value
        order = tuple(sorted(v.axes, key=axes.index))
        if order != v.axes:
            perm = [v.axes.index(a) for a in order]
            t = ir.VectorType.get([a.size for a in order], element)
            value = self.pure("vector.transpose", t, [value], permutation=ir.DenseI64ArrayAttr.get(perm))
        if order != axes:
            if axes[-len(order):] != order:  # trailing axes are missing: unit dims first
                first = axes.index(order[0])
                unit = [a.size if a in order else 1 for a in axes[first:]]
                value = self.pure("vector.shape_cast", ir.VectorType.get(unit, element), [value])
            value = self.pure("vector.broadcast", full, [value])
        return V(value, axes)

    def elementwise(self, name: str, element: Any, operands: Sequence[V], attributes: dict[str, Any]) -> V:
        """A scalar op applied to tile values."""
        values = self.align(operands) if operands else []
        axes = values[0].axes if values else ()
        t = ir.VectorType.get([a.size for a in axes], element) if axes else element
        return V(self.pure(name, t, [v.value for v in values], **attributes), axes)

    def mask(self, axes: tuple[Axis, ...]) -> V | None:
        """The valid lanes of `axes`; None when all are."""
        if all(a.limit is None for a in axes):
            return None
        t = ir.VectorType.get([a.size for a in axes], self.i1)
        sizes = [self.int(a.size) if a.limit is None else a.limit for a in axes]
        return V(self.pure("vector.create_mask", t, sizes), axes)

    def access(self, e: Dim, env: dict[str, Ix]) -> Ix:
        """An access expression over loops (and symbols) as an index."""
        if isinstance(e, int):
            return Ix(const=e)
        total = Ix()
        for monomial, coef in e.terms:
            part: Ix = Ix(const=1)
            for atom in monomial:
                factor = self._ix_atom(atom, env)
                if part.is_const(1):
                    part = factor
                elif not part.axes and part.base is None and part.vec is None:
                    part = self.ix_scale(factor, part.const)
                else:
                    part = self.ix_vector("arith.muli", part, factor)
            total = self.ix_add(total, self.ix_scale(part, coef))
        return total

    def _in_panel(self, a: Ix, width: Int) -> bool:
        """Whether the walk starts at a multiple of `width`, up to its constant, and stays within `width` of it."""
        if a.vec is not None or any(c != 1 for _, c in a.coefs) or len(a.coefs) > 1:
            return False
        lanes = a.coefs[0][0].size if a.coefs else 1
        aligned = a.base is None or self.multiples.get(a.base, 1) % width == 0
        return aligned and a.const % width + lanes <= width

    def _ix_atom(self, atom: Any, env: dict[str, Ix]) -> Ix:
        if len(atom) == 1:
            return env[atom[0]] if atom[0] in env else self.ix_of(self.symbols[atom[0]])
        a, b = self.access(atom[1], env), self.access(atom[2], env)
        if atom[0] in ("floordiv", "mod") and isinstance(atom[2], int) and self._in_panel(a, atom[2]):
            if atom[0] == "mod":
                return Ix(const=a.const % atom[2], coefs=a.coefs)
            panel = Ix(const=a.const // atom[2])
            return panel if a.base is None else self.ix_add(
                panel, self.ix_of(self.binary("arith.divui", a.base, self.int(atom[2]))))
        if atom[0] == "mod":
            q = self.ix_vector("arith.floordivsi", a, b)
            return self.ix_add(a, self.ix_scale(self.ix_vector("arith.muli", q, b), -1))
        return self.ix_vector(ATOM_OPS[atom[0]], a, b)

