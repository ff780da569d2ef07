"""Reads and writes at computed positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import along, convert, element, full, scalar, unsqueeze
from xcc.symbolic import Dim, Expr


@onnx_op("Gather")
def gather(cx: Context) -> Value:
    """output = Gather(data, indices, axis)."""
    return xt.gather(cx[0], cx[1], axis=cx.axis())


@onnx_op("GatherElements")
def gather_elements(cx: Context) -> Value:
    return xt.gather_elements(cx[0], cx[1], axis=cx.axis())


@onnx_op("GatherND")
def gather_nd(cx: Context) -> Value:
    return xt.gather_nd(cx[0], cx[1], batch_dims=cx.attr("batch_dims", 0))


@onnx_op("Scatter", "ScatterElements")
def scatter_elements(cx: Context) -> Value:
    return xt.scatter_elements(cx[0], cx[1], cx[2], axis=cx.axis(), reduction=cx.attr("reduction", "none"))


@onnx_op("ScatterND")
def scatter_nd(cx: Context) -> Value:
    """The ranks say how many dims of the data an index vector names."""
    depth = cx.rank(0) + cx.rank(1) - 1 - cx.rank(2)
    return xt.scatter_nd(cx[0], with_last(cx, 1, depth), cx[2], reduction=cx.attr("reduction", "none"))


def with_last(cx: Context, i: int, size: int) -> Value:
    """Operand `i`, whose last dim must be `size`, as all ranks decide; a free one is compared in a run."""
    x, dims = cx[i], cx.shape(i)
    if not dims or isinstance(dims[-1], int):
        return x
    return xt.reshape(x, shape=(*dims[:-1], size))


@onnx_op("NonZero")
def nonzero(cx: Context) -> Value:
    """[rank, count] coordinates; the count is a symbol, the same for all that count these elements."""
    flags = cx.graph.model.flags
    there = flags.places(cx[0])
    if there is not None:
        return there
    name = cx.graph.fresh_symbol(f"{cx.node.output[0]}_count")
    out = xt.nonzero(cx[0], symbol=name)
    flags.note(cx[0], name, out)
    return out


@onnx_op("Compress")
def compress(cx: Context) -> Value:
    """A condition that is longer than the data counts as far as there is data, as in onnxruntime."""
    name = cx.graph.fresh_symbol(f"{cx.node.output[0]}_count")
    flat = cx.attr("axis") is None
    axis = 0 if flat else cx.normal_axis(cx.attr("axis"))
    if cx.rank(1) != 1:
        cx.misfit(f"the condition has rank {cx.rank(1)}, not 1")
    given, there = cx.shape(1)[0], symbolic.product(cx.shape(0)) if flat else cx.shape(0)[axis]
    condition = cx[1] if given == there else xt.slice(cx[1], starts=(0,), limits=(symbolic.dim_min(given, there),))
    out = xt.compress(cx[0], condition, symbol=name, axis=axis, flat=flat)
    cx.graph.model.flags.note(condition, name)
    return out


@onnx_op("Unique")
def unique(cx: Context) -> Any:
    """Y, indices?, inverse_indices?, counts?"""
    name = cx.graph.fresh_symbol(f"{cx.node.output[0]}_count")
    axis = cx.attr("axis")
    out = xt.unique(cx[0], symbol=name, axis=0 if axis is None else cx.normal_axis(axis), flat=axis is None,
                    sorted=bool(cx.attr("sorted", 1)))
    return tuple(out)


@onnx_op("OneHot")
def one_hot(cx: Context) -> Value:
    """output = OneHot(indices, depth, values, axis)."""
    indices = cx[0]
    rank = cx.rank(0) + 1
    axis = cx.normal_axis(cx.attr("axis", -1), rank)
    depth = _depth(cx, axis)
    kind = element(indices) if np.dtype(cx.dtype(0)).kind in "iu" else "i64"
    places = unsqueeze(convert(indices, kind), [axis])
    size = convert(xt.dim(value=depth) if isinstance(depth, Expr) else xt.scalar(depth, "i64"), kind)
    places = xt.select(xt.compare(places, scalar(0, places), direction="lt"), xt.add(places, size), places)
    line = along(xt.iota(shape=(depth,), axis=0, dtype=kind), axis, rank)
    off, on = (xt.reshape(xt.slice(cx[2], starts=(i,), limits=(i + 1,)), shape=()) for i in range(2))
    return xt.select(xt.compare(places, line, direction="eq"), on, off)


def _depth(cx: Context, axis: int) -> Dim:
    declared = cx.declared()
    data = cx.tensor(1).data
    if data is None and declared is not None:
        return declared[axis]
    if data is not None and data.dtype != object:
        return int(data.reshape(-1)[0])
    return cx.dims(1)[0]


@onnx_op("ReverseSequence")
def reverse_sequence(cx: Context) -> Value:
    """The first sequence_lens[b] elements of the time axis reversed, for each b of the batch axis."""
    batch, time = cx.attr("batch_axis", 1), cx.attr("time_axis", 0)
    x, shape = cx[0], cx.shape(0)
    lengths = along(convert(cx[1], "i64"), batch, 2)
    steps = along(xt.iota(shape=(shape[time],), axis=0, dtype="i64"), time, 2)
    places = xt.select(xt.compare(steps, lengths, direction="lt"),
                       xt.sub(xt.sub(lengths, xt.scalar(1, "i64")), steps), steps)
    if {batch, time} != {0, 1}:
        cx.fail(f"batch_axis {batch} and time_axis {time} must be 0 and 1")
    wide = xt.reshape(places, shape=(*xt.shape_of(places), *[1] * (len(shape) - 2)))
    return xt.gather_elements(x, xt.broadcast(wide, shape=shape), axis=time)


@onnx_op("TensorScatter")
def tensor_scatter(cx: Context) -> Value:
    """Writes `update` into the cache along `axis` at write_indices[b], wrapping around in mode circular."""
    past, update = cx[0], cx[1]
    axis = cx.axis(default=-2)
    shape, new = cx.shape(0), cx.shape(1)
    start = convert(cx[2], "i64") if cx.has(2) else full((shape[0],), 0, "i64")
    rank = len(shape)
    batch = along(start, 0, rank)
    places = xt.add(batch, along(xt.iota(shape=(new[axis],), axis=0, dtype="i64"), axis, rank))
    if cx.attr("mode", "linear") == "circular":
        size = shape[axis]
        limit = xt.dim(value=size) if isinstance(size, Expr) else xt.scalar(size, "i64")
        places = xt.mod(places, limit)
    return xt.scatter_elements(past, xt.broadcast(places, shape=new), update, axis=axis)


@onnx_op("MaxUnpool")
def max_unpool(cx: Context) -> Value:
    """Puts X's elements at flat positions I of zeros.

    The positions count in the shape that the attributes give. `output_shape` adds zeros behind it, as in ONNX's
    reference and its tests, where onnxruntime counts in `output_shape`.
    """
    x, shape = cx[0], cx.shape(0)
    kernel = cx.attr("kernel_shape")
    strides = cx.attr("strides", [1] * len(kernel))
    pads = cx.attr("pads", [0] * 2 * len(kernel))
    spatial: list[Dim] = [(n - 1) * s - pads[i] - pads[i + len(kernel)] + k
                          for i, (n, s, k) in enumerate(zip(shape[2:], strides, kernel, strict=True))]
    source = (shape[0], shape[1], *spatial)
    target = cx.dims_or_declared(2) if cx.has(2) else source
    if len(target) != len(source):
        cx.misfit(f"output_shape has {len(target)} dims and X {len(source)}")
    behind = tuple(t - s for t, s in zip(target, source, strict=True))
    if any(isinstance(d, int) and d < 0 for d in behind):
        cx.misfit(f"output_shape {list(map(str, target))} is smaller than {list(map(str, source))}, the shape that the "
                  f"attributes give")
    total = symbolic.product(source)
    flat = xt.scatter_elements(full((total,), 0, element(x)), xt.reshape(cx[1], shape=(symbolic.product(shape),)),
                               xt.reshape(x, shape=(symbolic.product(shape),)), axis=0)
    out = xt.reshape(flat, shape=source)
    return xt.pad(out, low=(0,) * len(source), high=behind) if any(d != 0 for d in behind) else out
