"""Movement ops with affine access: they change the view of their operand and emit nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import AffineExpr, Value, arith_d, ir
from xcc.dialects.xt.fields import decode_dense
from xcc.passes.xt_to_linalg.build import scalar
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import index_constant, is_coded, stored
from xcc.passes.xt_to_linalg.build.view import View, dim_expr
from xcc.symbolic import Dim


@converts("constant")
def convert_constant(b: Builder, op: Op) -> View:
    """A splat lives in the bodies that use it; a small table is a constant tensor."""
    value = ir.DenseElementsAttr(op.operation.attributes["value"])
    if value.is_splat:
        return View(op.dims, op.dtype, splits=(1,) * len(op.dims), splat=value.get_splat_value())
    shape = [symbolic.evaluate(d, {}) for d in op.dims]
    kind = ir.RankedTensorType.get(shape, stored(op.dtype))
    if is_coded(op.dtype):
        codes = decode_dense(op.operation.attributes["value"]).view(np.int8)
        value = ir.DenseElementsAttr.get(codes.reshape(shape), type=kind)
    elif kind != value.type:
        value = ir.Attribute.parse(str(value).replace(f": {value.type}", f": {kind}"))
    return View.of(arith_d.ConstantOp(kind, value).result, op.dims, op.dtype)


@converts("dim")
def convert_dim(b: Builder, op: Op) -> View:
    """A size as an i64 scalar: a constant, or computed from the symbols."""
    value = op.dims_attr("value")[0]
    if isinstance(value, int):
        return View((), op.dtype, splat=ir.IntegerAttr.get(op.dtype, value))
    size = b.dim(value)
    return b.pointwise((), op.dtype, [], lambda _: arith_d.index_cast(op.dtype, size))


@converts("broadcast")
def convert_broadcast(b: Builder, op: Op) -> View:
    return op.operands[0].broadcast(op.dims)


@converts("transpose")
def convert_transpose(b: Builder, op: Op) -> View:
    return op.operands[0].transposed(op.attr("perm"))


@converts("slice")
def convert_slice(b: Builder, op: Op) -> View:
    """Static starts are affine; symbolic ones are read by coordinate. A negative stride counts down from the start.

    A start at the end of x, of a slice without elements, is moved into it: what reads that at 0 by clamping reads x.
    """
    x, starts, strides = op.operands[0], op.dims_attr("starts"), op.attr("strides")
    if symbolic.is_static(starts):
        coords = [dim_expr(i) * strides[i] + starts[i] for i in range(len(starts))]
        return x.through(op.dims, coords)
    offsets = [b.dim(s if s == 0 or isinstance(d, int) else symbolic.dim_min(s, _last(n)))
               for s, d, n in zip(starts, op.dims, x.dims, strict=True)]

    def body(_: list[Any], index: list[Value]) -> Value:
        return b.extract(x, [arith_d.addi(arith_d.muli(at, index_constant(strides[i])), offsets[i])
                             for i, at in enumerate(index)])

    return b.indexed(op.dims, op.dtype, [], body)


def _last(size: Dim) -> Dim:
    """The last index of a dim; 0 where it has none."""
    return symbolic.dim_max(size - 1, 0)


@converts("reverse")
def convert_reverse(b: Builder, op: Op) -> View:
    x, axes = op.operands[0], set(op.attr("axes"))
    if all(isinstance(x.dims[a], int) for a in axes):
        last: list[Any] = [d - 1 for d in x.dims]
        coords = [dim_expr(i) * -1 + last[i] if i in axes else dim_expr(i) for i in range(len(x.dims))]
        return x.through(op.dims, coords)
    lasts = {a: b.dim(_last(x.dims[a])) for a in axes}

    def body(_: list[Any], index: list[Value]) -> Value:
        return b.extract(x, [arith_d.subi(lasts[i], at) if i in axes else at for i, at in enumerate(index)])

    return b.indexed(op.dims, op.dtype, [], body)


@converts("iota")
def convert_iota(b: Builder, op: Op) -> View:
    axis, i64 = op.attr("axis"), ir.IntegerType.get_signless(64)
    return b.indexed(op.dims, op.dtype, [],
                     lambda _, index: scalar.convert(arith_d.index_cast(i64, index[axis]), i64, op.dtype))


@converts("reshape")
def convert_reshape(b: Builder, op: Op) -> View:
    """Unit dims come and go for free; dims that merge or split by static factors stay affine; others are computed."""
    x = op.operands[0]
    if x.is_splat:
        return x.through(op.dims, [dim_expr(0)] * len(x.dims) if op.dims else [])
    groups = _aligned(x.dims, op.dims)
    if groups is not None and all(symbolic.is_static(x.dims[i] for i in a[1:])
                                  and symbolic.is_static(op.dims[j] for j in c[1:]) for a, c in groups):
        return x.through(op.dims, _affine_reshape(x.dims, op.dims, groups))
    target = [b.dim(d) for d in op.dims]
    source = [b.dim(d) for d in x.dims]

    def body(_: list[Any], index: list[Any]) -> Any:
        flat = index_constant(0)
        for at, extent in zip(index, target, strict=True):
            flat = arith_d.addi(arith_d.muli(flat, extent), at)
        coords = []
        for extent in reversed(source):
            coords.append(arith_d.remui(flat, extent))
            flat = arith_d.divui(flat, extent)
        return b.extract(x, coords[::-1])

    return b.indexed(op.dims, op.dtype, [], body)


Group = tuple[list[int], list[int]]


def _aligned(old: tuple[Dim, ...], new: tuple[Dim, ...]) -> list[Group] | None:
    """Runs of old dims and of new dims with equal products, in order; None when they cannot be told."""
    a = [i for i, d in enumerate(old) if d != 1]
    c = [j for j, d in enumerate(new) if d != 1]
    groups: list[Group] = []
    i = j = 0
    while i < len(a) and j < len(c):
        left, right = [a[i]], [c[j]]
        i, j = i + 1, j + 1
        while (p := symbolic.product(old[k] for k in left)) != (q := symbolic.product(new[k] for k in right)):
            grow_left = p < q if isinstance(p, int) and isinstance(q, int) else len(str(p)) < len(str(q))
            if grow_left and i < len(a):
                left.append(a[i])
                i += 1
            elif j < len(c):
                right.append(c[j])
                j += 1
            elif i < len(a):
                left.append(a[i])
                i += 1
            else:
                return None
        groups.append((left, right))
    return groups if i == len(a) and j == len(c) else None


def _affine_reshape(old: Sequence[Any], new: Sequence[Any], groups: list[Group]) -> list[AffineExpr]:
    """The old coordinates as affine expressions over the new ones."""
    coords: list[AffineExpr] = [ir.AffineExpr.get_constant(0)] * len(old)
    for left, right in groups:
        flat = dim_expr(right[0])
        for j in right[1:]:
            flat = flat * new[j] + dim_expr(j)
        for i in reversed(left[1:]):
            coords[i] = ir.AffineExpr.get_mod(flat, old[i])
            flat = ir.AffineExpr.get_floor_div(flat, old[i])
        coords[left[0]] = flat
    return coords
