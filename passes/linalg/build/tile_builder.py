"""Builds index expressions and tile values (passes/linalg/build/tile_values.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xcc._mlir import Attribute, Type, Value, ir
from xcc.passes.linalg.build.scalar_builder import ATOM_OPS, ScalarBuilder
from xcc.passes.linalg.build.tile_values import Axis, Flat, Ix, V
from xcc.symbolic import Dim


class Builder(ScalarBuilder):
    """Builds at the current insertion point; equal pure requests in scope give the same value."""

    # -- indices ---------------------------------------------------------------------------------------------------

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

    def ix_scale(self, a: Ix, k: int) -> Ix:
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

    def _clamped(self, name: str, a: Ix, b: Ix) -> tuple[Ix, Value | None, Value | None] | None:
        """The `walk` of min(a, b) or max(a, b)."""
        if a.is_scalar:
            a, b = b, a
        if name not in ("arith.minsi", "arith.maxsi") or not b.is_scalar:
            return None
        if a.vec is None:
            by_ones = len(a.coefs) == 1 and a.coefs[0][1] == 1
            found: tuple[Ix, Any, Value | None] | None = (a, None, None) if by_ones else None
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

    def ix_of(self, value: Value) -> Ix:
        n = self.as_int(value)
        return Ix(const=n) if n is not None else Ix(base=value)

    def scalar(self, a: Ix) -> Value:
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

    def _in_panel(self, a: Ix, width: int) -> bool:
        """Whether the walk starts at a multiple of `width`, up to its constant, and stays within `width` of it."""
        if a.vec is not None or any(c != 1 for _, c in a.coefs) or len(a.coefs) > 1:
            return False
        lanes = a.coefs[0][0].size if a.coefs else 1
        aligned = a.base is None or self.multiples.get(a.base, 1) % width == 0
        return aligned and a.const % width + lanes <= width

    def _near_base(self, a: Ix, width: int) -> bool:
        """Whether no multiple of `width` is between the base of the scalar `a` and `a`: what the base is a multiple of
        divides `width`, and the constant is below it."""
        return a.base is not None and a.vec is None and not a.coefs \
            and width % (n := self.multiples.get(a.base, 1)) == 0 and 0 < a.const < n

    def _ix_atom(self, atom: Any, env: dict[str, Ix]) -> Ix:
        if len(atom) == 1:
            return env[atom[0]] if atom[0] in env else self.ix_of(self.symbols[atom[0]])
        a, b = self.access(atom[1], env), self.access(atom[2], env)
        if atom[0] == "floordiv" and isinstance(atom[2], int) and self._near_base(a, atom[2]):
            a = Ix(base=a.base)
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

    # -- values ----------------------------------------------------------------------------------------------------

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

    def elementwise(self, name: str, element: Type, operands: Sequence[V], attributes: dict[str, Attribute]) -> V:
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
