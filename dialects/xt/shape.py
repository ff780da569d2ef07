"""Shape ops: views and movements with index arithmetic known at compile time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.dialects.xt.broadcasting import broadcast_shapes, merge_dim, same_dtype, shape_text
from xcc.dialects.xt.fields import axes, axis, dims, dtype, integer, integers, number, operand, per_dim, text, variadic
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, ListOp, XtOp, axis_of, same_dims
from xcc.dialects.xt.reading import check_rank
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.symbolic import Dim


def static_dims(values: Sequence[Dim], what: str) -> tuple[int, ...]:
    """`values` as ints; evaluation takes attributes whose symbols have been replaced."""
    if not symbolic.is_static(values):
        raise ValueError(f"{what} {shape_text(values)} still holds symbols")
    return tuple(int(v) for v in values)  # type: ignore[arg-type]


class Reshape(XtOp, name="reshape"):
    """The same elements in row-major order with another shape. The number of elements does not change."""

    x = operand()
    shape = dims()
    access = "view"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if not same_dims(symbolic.product(x.shape), symbolic.product(a.shape)):
            raise InferError(f"cannot reshape {shape_text(x.shape)} to {shape_text(a.shape)}")
        return x.with_shape(a.shape)

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.reshape(x, static_dims(a.shape, "shape"))


class Broadcast(XtOp, name="broadcast"):
    """x repeated to `shape` by numpy's rule: aligned at the right, dims of 1 are stretched."""

    x = operand()
    shape = dims()
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        merged = broadcast_shapes(x.shape, a.shape)
        if len(merged) != len(a.shape) or not all(map(same_dims, merged, a.shape)):
            raise InferError(f"{shape_text(x.shape)} does not broadcast to {shape_text(a.shape)}")
        return x.with_shape(a.shape)

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.broadcast_to(x, static_dims(a.shape, "shape"))


class Transpose(XtOp, name="transpose"):
    """Dim i of the result is dim perm[i] of x. Without `perm` all dims are reversed."""

    x = operand()
    perm = integers(None)
    access = "movement"

    def normalize(a: Attrs, x: TensorType) -> None:
        perm = range(x.rank - 1, -1, -1) if a.perm is None else a.perm
        a.perm = tuple(axis_of(p, x.rank, "perm entry") for p in perm)

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if sorted(a.perm) != list(range(x.rank)):
            raise InferError(f"perm {list(a.perm)} is no permutation of {x.rank} dims")
        return x.with_shape([x.shape[p] for p in a.perm])

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.transpose(x, a.perm)


class Pad(XtOp, name="pad"):
    """low[i] elements before and high[i] after each dim, and interior[i] between neighbours (constant mode only).

    mode: constant (`value`), edge (the border element), reflect (without the border), wrap. Negative low or high
    crops, in constant mode.
    """

    x = operand()
    low = per_dim(kind=dims)
    high = per_dim(kind=dims)
    interior = per_dim(0)
    mode = text("constant", ("constant", "edge", "reflect", "wrap"))
    value = number(0.0)
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if a.mode != "constant" and any(a.interior):
            raise InferError(f"interior padding does not go with mode {a.mode}")
        out = []
        for n, low, high, inner in zip(x.shape, a.low, a.high, a.interior, strict=True):
            size = low + n + high + (symbolic.dim_max(n - 1, 0) * inner if inner else 0)
            if isinstance(size, int) and size < 0:
                raise InferError(f"padding {low}, {high} crops more than the {n} elements of a dim")
            out.append(size)
        return x.with_shape(out)

    def sampled(a: Attrs, x: TensorType) -> Sequence[int]:
        return [d for d in range(x.rank) if a.mode != "constant" and (a.low[d] != 0 or a.high[d] != 0)]

    def evaluate(a: Attrs, x: Array) -> Array:
        low, high = static_dims(a.low, "low"), static_dims(a.high, "high")
        if a.mode != "constant":
            return np.pad(x, list(zip(low, high, strict=True)), mode=a.mode) if x.ndim else x
        value = np.array(a.value).astype(x.dtype)
        spread = np.full([n + max(n - 1, 0) * i for n, i in zip(x.shape, a.interior, strict=True)], value, x.dtype)
        spread[tuple(slice(None, None, i + 1) for i in a.interior)] = x
        shape = [lo + n + hi for lo, n, hi in zip(low, spread.shape, high, strict=True)]
        out = np.full(shape, value, x.dtype)
        if 0 in out.shape:
            return out
        source = tuple(slice(max(0, -lo), n - max(0, -hi)) for lo, n, hi in zip(low, spread.shape, high, strict=True))
        target = tuple(slice(max(0, lo), n - max(0, hi)) for lo, n, hi in zip(low, shape, high, strict=True))
        out[target] = spread[source]
        return out


class Concatenate(ListOp, name="concatenate"):
    """The operands one after the other along `axis`; other dims are equal."""

    xs = variadic()
    axis = axis()
    access = "movement"

    def infer(a: Attrs, xs: Sequence[TensorType]) -> TensorType:
        same_dtype(*xs)
        first = xs[0]
        shape = list(first.shape)
        for x in xs[1:]:
            check_rank("an operand", x.shape, first.rank)
            for d in range(first.rank):
                merged = shape[d] + x.shape[d] if d == a.axis else merge_dim(shape[d], x.shape[d])
                if merged is None:
                    raise InferError(f"dim {d} differs: {shape[d]} and {x.shape[d]}")
                shape[d] = merged
        return first.with_shape(shape)

    def evaluate(a: Attrs, xs: Sequence[Any]) -> Array:
        return np.concatenate(xs, a.axis)


class Reverse(XtOp, name="reverse"):
    """x backwards along `axes`."""

    x = operand()
    axes = axes()
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        return x

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.flip(x, a.axes)


class Iota(XtOp, name="iota"):
    """The coordinate along `axis` of each element of `shape`."""

    shape = dims()
    axis = integer(0)
    dtype = dtype("i64")
    access = "movement"

    def normalize(a: Attrs) -> None:
        a.axis = axis_of(a.axis, len(a.shape))

    def infer(a: Attrs) -> TensorType:
        axis_of(a.axis, len(a.shape))
        return TensorType(a.shape, a.dtype)

    def evaluate(a: Attrs) -> Array:
        shape = static_dims(a.shape, "shape")
        line = np.arange(shape[a.axis]).astype(numpy_dtype(a.dtype))
        return np.broadcast_to(line.reshape([-1 if d == a.axis else 1 for d in range(len(shape))]), shape)
