"""Movement ops whose positions are data: gathers, slices at computed starts, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir, owner_op, tensor_d
from xcc.passes.shared.attributes import PIECES
from xcc.passes.xt.graph.memory_uses import constant_starts
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import is_unsigned
from xcc.passes.xt_to_linalg.build.view import View, dim_expr
from xcc.symbolic import Dim

_I = arith_d.CmpIPredicate


def to_index(value: Value, dtype: Type) -> Value:
    """In a body: an integer of element type `dtype` as an index."""
    index = ir.IndexType.get()
    return arith_d.index_castui(index, value) if is_unsigned(dtype) else arith_d.index_cast(index, value)


def wrapped(b: Builder, value: Value, dtype: Type, extent: Dim) -> Value:
    """A data index made valid: negative ones count from the end, the rest is clamped."""
    at = to_index(value, dtype)
    if not is_unsigned(dtype):
        negative = arith_d.cmpi(_I.slt, at, b.dim(0))
        at = arith_d.select(negative, arith_d.addi(at, b.dim(extent)), at)
    return b.clamp(at, extent)


@converts("gather")
def convert_gather(b: Builder, op: Op) -> View:
    x, indices = op.operands
    axis, batch = op.attr("axis"), op.attr("batch_dims", 0)
    n_index = len(indices.dims) - batch
    at = [dim_expr(i) for i in range(len(op.dims))]
    read = indices.through(op.dims, at[:batch] + at[axis:axis + n_index])

    def body(scalars: list[Value], index: list[Value]) -> Value:
        picked = wrapped(b, scalars[0], indices.dtype, x.dims[axis])
        return b.extract(x, [*index[:axis], picked, *index[axis + n_index:]])

    return b.indexed(op.dims, op.dtype, [read], body)


@converts("gather_nd")
def convert_gather_nd(b: Builder, op: Op) -> View:
    x, indices = op.operands
    batch, depth, outer = op.attr("batch_dims", 0), indices.dims[-1], len(indices.dims) - 1
    assert isinstance(depth, int)
    at = [dim_expr(i) for i in range(outer)]
    reads = [indices.through(op.dims, [*at, ir.AffineExpr.get_constant(k)]) for k in range(depth)]

    def body(scalars: list[Value], index: list[Value]) -> Value:
        picked = [wrapped(b, s, indices.dtype, x.dims[batch + k]) for k, s in enumerate(scalars)]
        return b.extract(x, [*index[:batch], *picked, *index[outer:]])

    return b.indexed(op.dims, op.dtype, reads, body)


@converts("gather_elements")
def convert_gather_elements(b: Builder, op: Op) -> View:
    x, indices = op.operands
    axis = op.attr("axis")

    def body(scalars: list[Value], index: list[Value]) -> Value:
        picked = wrapped(b, scalars[0], indices.dtype, x.dims[axis])
        return b.extract(x, [*index[:axis], picked, *index[axis + 1:]])

    return b.indexed(op.dims, op.dtype, [indices], body)


def _starts(b: Builder, starts: Sequence[Value], x: View, sizes: Sequence[Dim]) -> list[Value]:
    """In a body: the i64 scalars `starts` as indices, clamped so that the box of `sizes` is inside `x`."""
    i64 = ir.IntegerType.get_signless(64)
    out = []
    for start, n, size in zip(starts, x.dims, sizes, strict=True):
        most = n - symbolic.dim_max(size, 1) if isinstance(size, symbolic.Expr) else n - size     # a place in x
        at = arith_d.minsi(to_index(start, i64), b.dim(most))
        out.append(arith_d.maxsi(at, b.dim(0)))
    return out


@converts("dynamic_slice")
def convert_dynamic_slice(b: Builder, op: Op) -> View:
    x, *starts = op.operands

    def body(scalars: list[Value], index: list[Value]) -> Value:
        begins = _starts(b, scalars, x, op.dims)
        return b.extract(x, [arith_d.addi(at, begin) for at, begin in zip(index, begins, strict=True)])

    return b.indexed(op.dims, op.dtype, starts, body)


@converts("dynamic_update_slice")
def convert_dynamic_update_slice(b: Builder, op: Op) -> View:
    x, update, *starts = op.operands
    if any(d == 0 for d in update.dims):
        return x
    if IN_PLACE in op.operation.attributes:
        return _stored_update(b, x, update, constant_starts(op.operation))

    def body(scalars: list[Value], index: list[Value]) -> Value:
        old, *begins = scalars
        at = [arith_d.subi(i, s) for i, s in zip(index, _starts(b, begins, x, update.dims), strict=True)]
        inside = None
        for i, n in zip(at, update.dims, strict=True):
            check = b.in_range(i, n)
            inside = check if inside is None else arith_d.andi(inside, check)
        new = b.extract(update, [b.clamp(i, n) for i, n in zip(at, update.dims, strict=True)])
        return new if inside is None else arith_d.select(inside, new, old)

    return b.indexed(op.dims, op.dtype, [x, *starts], body)


def _stored_update(b: Builder, x: View, update: View, starts: Sequence[int]) -> View:
    """`update` at constant places of memory that holds `x`, an argument, already; of one value it stands for memory
    that nobody reads. The tiles of `update` are stored there, and nothing else."""
    update = b.computed(update.plain())
    if update.source_dims != update.dims:
        update = b.pointwise(update.dims, update.dtype, [update], lambda s: s[0])
    into = b.empty(x.dims, x.dtype) if x.source is None else x.source
    sizes = [b.dim(d) for d in update.dims if not isinstance(d, int)]
    dynamic = ir.ShapedType.get_dynamic_size()
    out = tensor_d.InsertSliceOp(update.source, into, [], sizes, [], list(starts),
                                 [d if isinstance(d, int) else dynamic for d in update.dims], [1] * len(starts))
    return View.of(out.result, x.dims, x.dtype)


@converts("concatenate")
def convert_concatenate(b: Builder, op: Op) -> View:
    """Every operand is read at a clamped coordinate; the last one that begins at or before the coordinate is taken."""
    axis = op.attr("axis")
    parts: list[tuple[Dim, View]] = []
    offset: Dim = 0
    for x in op.operands:
        if x.dims[axis] != 0:
            parts.append((offset, x))
        offset = offset + x.dims[axis]
    if len(parts) == 1 and symbolic.is_static(op.dims):
        return parts[0][1]
    if not parts:
        return op.operands[0]

    def body(_: list[Any], index: list[Value]) -> Value | None:
        out = None
        for start, x in parts:
            at = index[axis] if start == 0 else arith_d.subi(index[axis], b.dim(start))
            value = b.extract(x, [*index[:axis], b.clamp(at, x.dims[axis]), *index[axis + 1:]])
            if out is None:
                out = value
            else:
                out = arith_d.select(arith_d.cmpi(_I.sge, index[axis], b.dim(start)), value, out)
        if out is not None and len(parts) > 1:
            owner_op(out).attributes[PIECES] = ir.UnitAttr.get()
        return out

    return b.indexed(op.dims, op.dtype, [], body)
