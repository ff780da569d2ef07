"""Builds the linalg body of one kernel: what converters use to read values and to emit generics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xcc._mlir import AffineExpr, AffineMap, Type, Value, arith_d, ir, linalg_d, tensor_d
from xcc.passes.xt_to_linalg.build.dims import DimEmitter
from xcc.passes.xt_to_linalg.build.types import constant, is_float, stored
from xcc.passes.xt_to_linalg.build.view import (
    View,
    dim_expr,
    expand_dims,
    identity_exprs,
    ssa_coordinates,
    substitute_exprs,
)
from xcc.symbolic import Dim

Body = Callable[[list[Any]], Sequence[Any] | Any]
Read = tuple[View, Sequence[Any] | None]


class Builder:
    """Emits at the end of the kernel's block. `dim` turns a symbolic dim into an index value.

    precision: of the compilation's products, as CompileOptions has it.
    """

    def __init__(self, dim: DimEmitter, precision: str = "") -> None:
        self.dim, self.precision = dim, precision

    def empty(self, dims: Sequence[Dim], dtype: Type) -> Value:
        sizes = [d if isinstance(d, int) else self.dim(d) for d in dims]
        return tensor_d.empty(sizes, stored(dtype))

    def fill(self, dims: Sequence[Dim], dtype: Type, value: float | int) -> Value:
        """A tensor of one value: the start of a reduction."""
        scalar, init = constant(dtype, value), self.empty(dims, dtype)
        op = linalg_d.FillOp([init.type], [scalar], [init])
        block = op.operation.regions[0].blocks.append(scalar.type, scalar.type)
        with ir.InsertionPoint(block):
            linalg_d.YieldOp([block.arguments[0]])
        return op.operation.results[0]

    def generic(self, loops: Sequence[Dim], outs: Sequence[tuple[Value, Sequence[AffineExpr]]], reads: Sequence[Read],
                body: Body, reduction: Sequence[int] = ()) -> list[Value]:
        """One linalg.generic over `loops`; those in `reduction` are reduction loops.

        `outs` gives (initial tensor, coordinates over the loops). `reads` gives views with the expanded coordinates
        of each as expressions over the loops (None: the loops themselves). The body gets the scalars read, then for a
        reduction the accumulators, and returns what to yield. A `tensor.empty` states sizes that no operand does.
        """
        n = len(loops)
        operands: list[Value] = []
        maps: list[AffineMap] = []
        slots: list[int | View] = []
        for view, coords in reads:
            if view.is_splat:
                slots.append(view)
                continue
            exprs = compose(view.exprs, coords, n)
            if any(e == dim_expr(i) and loops[i] != d for e, d in zip(exprs, view.source_dims, strict=True)
                   for i in range(n)):
                view = self.materialize(view)
                exprs = compose(view.exprs, coords, n)
            m = ir.AffineMap.get(n, 0, list(exprs))
            at = next((i for i, (o, k) in enumerate(zip(operands, maps, strict=True)) if o == view.source and k == m),
                      None)
            if at is None:
                assert view.source is not None
                at = len(operands)
                operands.append(view.source)
                maps.append(m)
            slots.append(at)
        out_maps = [ir.AffineMap.get(n, 0, list(exprs)) for _, exprs in outs]
        unseen = [i for i in range(n) if not any(dim_expr(i) == e for m in maps + out_maps for e in m.results)]
        if unseen:
            operands.append(self.empty([loops[i] for i in unseen], ir.IntegerType.get_signless(8)))
            maps.append(ir.AffineMap.get(n, 0, [dim_expr(i) for i in unseen]))
        inits = [init for init, _ in outs]
        kinds = ["reduction" if i in set(reduction) else "parallel" for i in range(n)]
        op = linalg_d.GenericOp(
            [v.type for v in inits], operands, inits,
            ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps + out_maps]),
            ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds]))
        types = [ir.RankedTensorType(v.type).element_type for v in operands + inits]
        block = op.operation.regions[0].blocks.append(*types)
        with ir.InsertionPoint(block):
            scalars = [splat_constant(s) if isinstance(s, View) else block.arguments[s] for s in slots]
            if reduction:
                scalars += list(block.arguments)[len(operands):]
            results = body(scalars)
            linalg_d.YieldOp(list(results) if isinstance(results, (list, tuple)) else [results])
        return list(op.operation.results)

    def materialize(self, view: View) -> View:
        """A view that ends before its source does, as a value of its own: a loop has the size of what it indexes."""
        loops = expand_dims(view.dims, view.splits)

        def body(_: list[Any]) -> Value:
            index = [loop_index(i) for i in range(len(loops))]
            return tensor_d.extract(view.source, ssa_coordinates(view.exprs, index))

        out = self.generic(loops, [(self.empty(loops, view.dtype), identity_exprs(len(loops)))], [], body)[0]
        return View.of_split(out, view.dims, view.dtype, view.splits)

    def pointwise(self, dims: Sequence[Dim], dtype: Type, inputs: Sequence[View], body: Body) -> View:
        """A parallel generic over `dims`; the inputs broadcast to it. Loops follow a split that an input has."""
        views = [v.broadcast(dims) for v in inputs]
        splits = common_splits(views, len(dims))
        loops = expand_dims(dims, splits)
        reads = [(v if v.is_splat else replace(v, exprs=v.over(splits), splits=tuple(splits)), None) for v in views]
        init = self.empty(loops, dtype)
        result = self.generic(loops, [(init, identity_exprs(len(loops)))], reads, body)[0]
        return View.of_split(result, dims, dtype, splits)

    def indexed(self, dims: Sequence[Dim], dtype: Type, inputs: Sequence[View],
                body: Callable[[list[Any], list[Any]], Any]) -> View:
        """A parallel generic over plain `dims` whose body gets the scalars read and the loop indices."""
        views = [v.broadcast(dims).plain() for v in inputs]
        init = self.empty(dims, dtype)

        def with_indices(scalars: list[Value]) -> Value:
            return body(scalars, [loop_index(i) for i in range(len(dims))])

        reads: list[Read] = [(v, None) for v in views]
        return View.of(self.generic(dims, [(init, identity_exprs(len(dims)))], reads, with_indices)[0], dims, dtype)

    def extract(self, view: View, coords: Sequence[Value]) -> Value:
        """In a body: element `coords` (index values, in bounds) of `view`."""
        if view.is_splat:
            return splat_constant(view)
        return tensor_d.extract(view.source, ssa_coordinates(view.plain().exprs, coords))

    def in_range(self, index: Value, extent: Dim) -> Value:
        """In a body: 0 <= index < extent, as one unsigned comparison."""
        return arith_d.cmpi(arith_d.CmpIPredicate.ult, index, self.dim(extent))

    def clamp(self, index: Value, extent: Dim) -> Value:
        """In a body: `index` moved into [0, extent)."""
        return arith_d.maxsi(arith_d.minsi(index, self.dim(extent - 1)), self.dim(0))

    def result(self, view: View) -> tuple[Value, tuple[Dim, ...]]:
        """A tensor made in this kernel with the elements of `view` in row-major order, and its dims."""
        view = self.computed(view)
        assert view.source is not None
        return view.source, view.source_dims

    def computed(self, view: View) -> View:
        """`view` itself where it is a whole value made in this kernel, else a copy."""
        if view.source is not None and not isinstance(view.source.owner, ir.Block) and view.is_whole():
            return view
        return self.pointwise(view.dims, view.dtype, [view], lambda s: s[0])


def compose(exprs: Sequence[AffineExpr], coords: Sequence[Any] | None, n: int) -> Sequence[AffineExpr]:
    """`exprs` with dimension i replaced by ``coords[i]``, over `n` dimensions; as they are for None."""
    return exprs if coords is None else substitute_exprs(exprs, coords, n)


def common_splits(views: Sequence[View], rank: int) -> list[int]:
    """For each dim the split of the first view that has one."""
    out = [1] * rank
    for v in views:
        if not v.is_splat:
            out = [o if o > 1 else p for o, p in zip(out, v.splits, strict=True)]
    return out


def splat_constant(view: View) -> Value:
    assert view.splat is not None
    value = view.splat.value
    return constant(view.dtype, float(value) if is_float(view.dtype) else int(value))


def loop_index(i: int) -> Value:
    """In a body: the index of loop i."""
    return linalg_d.IndexOp(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)).result
