"""How the coordinates of an xt value map to those of the linalg value that holds its elements.

Transposes, broadcasts, static slices, reversals and unit-dim reshapes of a value are not ops in a
kernel: they change its :class:`View`, and the consumer's indexing map reads through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xcc._mlir import AffineExpr, Attribute, Type, Value, arith_d, ir
from xcc.symbolic import Dim


def dim_expr(i: int) -> AffineExpr:
    return ir.AffineExpr.get_dim(i)


def identity_exprs(n: int) -> tuple[AffineExpr, ...]:
    return tuple(dim_expr(i) for i in range(n))


def substitute_exprs(exprs: Sequence[AffineExpr], dims: Sequence[AffineExpr], n: int) -> tuple[AffineExpr, ...]:
    """`exprs` with dimension i replaced by ``dims[i]``, an expression over `n` dimensions."""
    inner = ir.AffineMap.get(n, 0, list(dims))
    return tuple(ir.AffineMap.get(n, 0, [e.compose(inner) for e in exprs]).results)


def expand_dims(dims: Sequence[Dim], splits: Sequence[int]) -> tuple[Dim, ...]:
    """The loop extents of `dims`: a dim split by P is (dim floordiv P, P)."""
    out: list[Dim] = []
    for d, p in zip(dims, splits, strict=True):
        out.extend([d] if p == 1 else [d // p, p])
    return tuple(out)


@dataclass(frozen=True)
class View:
    """An xt value of shape `dims` and (signed or unsigned) element type `dtype`.

    Element c sits at ``exprs(expand(c))`` of the tensor `source`; or every element is `splat`, an attribute.
    A dim with ``splits[i] = P > 1`` appears in `exprs` as two coordinates, c floordiv P and c mod P.
    """

    dims: tuple[Dim, ...]
    dtype: Type
    source: Value | None = None
    exprs: tuple[AffineExpr, ...] = ()
    splits: tuple[int, ...] = ()
    splat: Attribute | None = None
    source_dims: tuple[Dim, ...] = ()

    @staticmethod
    def of(source: Value, dims: Sequence[Dim], dtype: Type) -> View:
        return View.of_split(source, dims, dtype, (1,) * len(dims))

    @staticmethod
    def of_split(source: Value, dims: Sequence[Dim], dtype: Type, splits: Sequence[int]) -> View:
        expanded = expand_dims(dims, splits)
        return View(tuple(dims), dtype, source, identity_exprs(len(expanded)), tuple(splits), source_dims=expanded)

    @property
    def is_splat(self) -> bool:
        return self.splat is not None

    def over(self, splits: Sequence[int]) -> tuple[AffineExpr, ...]:
        """The source coordinates over the expanded coordinates that `splits` gives."""
        coords: list[AffineExpr] = []
        at = 0
        for mine, theirs in zip(self.splits, splits, strict=True):
            first = dim_expr(at)
            whole = first if theirs == 1 else first * theirs + dim_expr(at + 1)
            if mine == 1:
                coords.append(whole)
            elif mine == theirs:
                coords.extend([first, dim_expr(at + 1)])
            else:
                coords.extend([ir.AffineExpr.get_floor_div(whole, mine), ir.AffineExpr.get_mod(whole, mine)])
            at += 1 if theirs == 1 else 2
        return substitute_exprs(self.exprs, coords, at)

    def plain(self) -> View:
        """The same value with no dim split."""
        if all(p == 1 for p in self.splits):
            return self
        ones = (1,) * len(self.dims)
        return replace(self, exprs=self.over(ones), splits=ones)

    def through(self, dims: Sequence[Dim], coords: Sequence[AffineExpr]) -> View:
        """The value of shape `dims` whose element c is this one's element ``coords(c)``."""
        n = len(dims)
        if self.is_splat:
            return replace(self, dims=tuple(dims), splits=(1,) * n)
        return replace(self, dims=tuple(dims), splits=(1,) * n,
                       exprs=substitute_exprs(self.plain().exprs, coords, n))

    def transposed(self, perm: Sequence[int]) -> View:
        """np.transpose; split dims stay split."""
        dims = tuple(self.dims[p] for p in perm)
        splits = tuple(self.splits[p] for p in perm)
        start: dict[int, int] = {}
        at = 0
        for p in perm:
            start[p] = at
            at += 1 if self.splits[p] == 1 else 2
        coords: list[AffineExpr] = []
        for i, s in enumerate(self.splits):
            coords.extend(dim_expr(start[i] + k) for k in range(1 if s == 1 else 2))
        return replace(self, dims=dims, splits=splits, exprs=substitute_exprs(self.exprs, coords, at))

    def broadcast(self, dims: Sequence[Dim]) -> View:
        """numpy broadcasting to `dims`: missing leading dims and dims of 1 are read at 0."""
        lead = len(dims) - len(self.dims)
        if lead == 0 and tuple(dims) == self.dims:
            return self
        stretched = [self.dims[i] == 1 and dims[lead + i] != 1 for i in range(len(self.dims))]
        splits = (1,) * lead + tuple(1 if s else p for s, p in zip(stretched, self.splits, strict=True))
        coords: list[AffineExpr] = []
        at = lead
        for s, p in zip(stretched, self.splits, strict=True):
            coords.extend([ir.AffineExpr.get_constant(0)] * (1 if p == 1 else 2) if s
                          else [dim_expr(at + k) for k in range(1 if p == 1 else 2)])
            at += 1 if s or p == 1 else 2
        return replace(self, dims=tuple(dims), splits=splits, exprs=substitute_exprs(self.exprs, coords, at))

    def is_whole(self) -> bool:
        """Whether the source holds exactly this value's elements in row-major order, unit dims aside."""
        if self.is_splat:
            return False
        mine = [(dim_expr(i), d) for i, d in enumerate(expand_dims(self.dims, self.splits)) if d != 1]
        theirs = [(e, d) for e, d in zip(self.exprs, self.source_dims, strict=True) if d != 1]
        return mine == theirs


def ssa_coordinates(exprs: Sequence[AffineExpr], coords: Sequence[Value]) -> list[Value]:
    """The affine `exprs` computed on the index values `coords`, which are not negative."""
    binary = {ir.AffineAddExpr: arith_d.addi, ir.AffineMulExpr: arith_d.muli, ir.AffineModExpr: arith_d.remui,
              ir.AffineFloorDivExpr: arith_d.divui}

    def emit(e: Any) -> Value:
        if isinstance(e, ir.AffineDimExpr):
            return coords[e.position]
        if isinstance(e, ir.AffineConstantExpr):
            return arith_d.constant(ir.IndexType.get(), e.value)
        return binary[type(e)](emit(e.lhs), emit(e.rhs))

    return [emit(e) for e in exprs]
