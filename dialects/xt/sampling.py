"""Reads at positions that are data: grid_sample, roi_align, deform_conv; and col2im, the adjoint of a window."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc.dialects.xt.broadcasting import same_dtype, shape_text, window_size
from xcc.dialects.xt.fields import boolean, dims, integer, integers, number, operand, optional, text
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.products import matmul
from xcc.dialects.xt.resize import keys
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import product


class GridSample(XtOp, name="grid_sample"):
    """x [N, C, in...] read at the normalised positions grid [N, out..., k] (last entry: innermost dim, -1 to 1).

    mode nearest, linear or cubic; outside x counts as `padding`: zeros, border or reflection. With `align_corners`
    -1 and 1 are the centres of the border elements, else their outer edges.
    """

    x = operand()
    grid = operand()
    mode = text("linear", ("nearest", "linear", "cubic"))
    padding = text("zeros", ("zeros", "border", "reflection"))
    align_corners = boolean(False)
    access = "movement"

    def infer(a: Attrs, x: TensorType, grid: TensorType) -> TensorType:
        check_float(grid)
        if grid.rank != x.rank or grid.shape[-1] != x.rank - 2:
            raise InferError(f"the grid {shape_text(grid.shape)} does not fit x of rank {x.rank}")
        return x.with_shape([*x.shape[:2], *grid.shape[1:-1]])

    def sampled(a: Attrs, x: TensorType, grid: TensorType) -> Sequence[int]:
        return range(2, x.rank)

    def evaluate(a: Attrs, x: Array, grid: Array) -> Array:
        def f(v: Array) -> Array:
            spatial = v.shape[2:]
            points: Array = grid.astype(np.float32)[..., ::-1]
            sizes = np.array(spatial, np.float32)
            points = (points + 1) / 2 * (sizes - 1) if a.align_corners else ((points + 1) * sizes - 1) / 2
            images = [_interpolate(a, image, p) for image, p in zip(v, points, strict=True)]
            return np.stack(images) if images else np.zeros((0, v.shape[1], *grid.shape[1:-1]), v.dtype)

        return in_float(f, x)


def _reflect(p: Array, size: int, align: bool) -> Array:
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span <= 0:
        return np.zeros_like(p)
    t = np.abs(p - low)
    flips, rest = np.floor(t / span), np.fmod(t, span)
    return np.where(flips % 2 == 0, rest + low, span - rest + low)


def _interpolate(a: Attrs, image: Array, points: Array) -> Array:
    """image [C, in...] at points [out..., k] in elements."""
    sizes = image.shape[1:]
    if a.padding == "border" and a.mode != "cubic":
        points = np.stack([np.clip(points[..., d], 0, n - 1) for d, n in enumerate(sizes)], -1)
    if a.padding == "reflection" and a.mode != "cubic":
        points = np.stack([np.clip(_reflect(points[..., d], n, a.align_corners), 0, n - 1)
                           for d, n in enumerate(sizes)], -1)
    base = np.rint(points) if a.mode == "nearest" else np.floor(points)
    offsets = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[a.mode]
    total = np.zeros((image.shape[0], *points.shape[:-1]), image.dtype)
    for step in np.ndindex(*([len(offsets)] * len(sizes))):
        weight, inside = np.ones(points.shape[:-1], image.dtype), np.ones(points.shape[:-1], bool)
        index = []
        for d, (n, s) in enumerate(zip(sizes, step, strict=True)):
            at = base[..., d] + offsets[s]
            distance = points[..., d] - at
            if a.mode == "linear":
                weight = weight * (1 - np.abs(distance))
            elif a.mode == "cubic":
                weight = weight * np.vectorize(lambda t: keys(t, -0.75), otypes=[image.dtype])(distance)
            if a.padding == "reflection":
                at = np.rint(_reflect(at, n, a.align_corners))
            elif a.padding == "zeros":
                inside &= (at >= 0) & (at < n)
            index.append(np.clip(np.nan_to_num(at), 0, max(n - 1, 0)).astype(np.int64))
        total += np.where(inside, weight * image[(slice(None), *index)], 0)
    return total


class RoiAlign(XtOp, name="roi_align"):
    """x [N, C, H, W] pooled over boxes rois [R, 4] (x1, y1, x2, y2) of images `batch` [R] to [R, C, h, w].

    Each output cell takes the mean (or the max) of `samples` x `samples` bilinear reads (0: as many as the cell spans,
    none where it spans nothing: 0).
    `half_pixel` shifts boxes by half an element and drops the minimum box size of 1.
    """

    x = operand()
    rois = operand()
    batch = operand()
    size = integers((1, 1))
    samples = integer(0)
    spatial_scale = number(1.0)
    mode = text("avg", ("avg", "max"))
    half_pixel = boolean(True)

    def infer(a: Attrs, x: TensorType, rois: TensorType, batch: TensorType) -> TensorType:
        same_dtype(check_float(x), rois)
        if x.rank != 4 or rois.rank != 2 or batch.rank != 1:
            raise InferError(f"x, rois and batch have ranks 4, 2 and 1, not {x.rank}, {rois.rank} and {batch.rank}")
        return x.with_shape((rois.shape[0], x.shape[1], *a.size))

    def sampled(a: Attrs, x: TensorType, rois: TensorType, batch: TensorType) -> Sequence[int]:
        return (0, 2, 3)

    def evaluate(a: Attrs, x: Array, rois: Array, batch: Array) -> Array:
        def f(v: Array, boxes: Array) -> Array:
            out = np.zeros((len(boxes), v.shape[1], *a.size), v.dtype)
            for i, (box, b) in enumerate(zip(boxes, batch, strict=True)):
                shift = 0.5 if a.half_pixel else 0.0
                x1, y1, x2, y2 = (c * a.spatial_scale - shift for c in box)
                spans = (y2 - y1, x2 - x1)
                spans = spans if a.half_pixel else tuple(max(s, 1.0) for s in spans)
                cells = [s / n for s, n in zip(spans, a.size, strict=True)]
                counts = [a.samples or int(np.clip(np.nan_to_num(np.ceil(c)), 0, 2**31)) for c in cells]
                ys, xs = (_samples(*row) for row in zip((y1, x1), cells, a.size, counts, v.shape[2:], strict=True))
                for at in np.ndindex(*a.size):
                    points, total = (ys[at[0]], xs[at[1]]), math.prod(counts)
                    parts = _bilinear_parts(v[int(b)], *points)
                    if a.mode == "avg":
                        summed: Any = sum(parts)
                        out[i][:, *at] = summed.sum((1, 2)) / max(total, 1)
                    else:
                        least = -np.inf if 0 < total == math.prod(map(len, points)) else 0.0
                        out[i][:, *at] = np.maximum.reduce(parts).max((1, 2), initial=least)
            return out

        return in_float(f, x, rois)


def _samples(start: float, cell: float, cells: int, count: int, size: int) -> list[Array]:
    """For each cell the positions of its samples, without some of those over one element outside of `size`: 0."""
    out = []
    for at in range(cells):
        low, high = 0, count
        if cell > 0:
            ends = ((p - start) * count / cell - at * count for p in (-1, size))
            low, high = (int(np.clip(np.nan_to_num(e) + margin, 0, count))
                         for e, margin in zip(ends, (-2, 2), strict=True))
        out.append((start + (at * count + np.arange(low, high) + 0.5) * cell / count).astype(np.float32))
    return out


def _bilinear_parts(image: Array, ys: Array, xs: Array) -> list[Array]:
    """The four weighted corner values at each (y, x); 0 more than one element outside."""
    height, width = image.shape[1:]
    inside = ((ys >= -1) & (ys <= height))[:, None] & ((xs >= -1) & (xs <= width))
    sides = []
    for p, n in ((ys, height), (xs, width)):
        p = np.where((p >= 0) & (p <= n), p, 0)
        low = np.minimum(np.floor(p).astype(np.int64), n - 1)
        p = np.where(low >= n - 1, low, p)
        sides.append(((low, 1 - (p - low)), (np.minimum(low + 1, n - 1), p - low)))
    return [np.where(inside, image[:, y][:, :, x] * (wy[:, None] * wx), 0)
            for y, wy in sides[0] for x, wx in sides[1]]


class DeformConv(XtOp, name="deform_conv"):
    """Convolution (NCHW, OIHW) whose taps are moved by `offset` [N, 2*og*kh*kw, oh, ow] (y then x) and scaled by
    `mask` [N, og*kh*kw, oh, ow]; og = offset_groups."""

    x = operand()
    w = operand()
    offset = operand()
    bias = optional()
    mask = optional()
    strides = integers((1, 1))
    low = integers((0, 0))
    high = integers((0, 0))
    dilations = integers((1, 1))
    groups = integer(1)
    offset_groups = integer(1)
    access = "composite"

    def infer(a: Attrs, x: TensorType, w: TensorType, offset: TensorType, bias: TensorType,
              mask: TensorType | None) -> TensorType:
        same_dtype(check_float(x), w, offset)
        if not x.rank == w.rank == offset.rank == 4:
            raise InferError("x, w and offset have rank 4")
        out = [window_size(*row) for row in zip(x.shape[2:], w.shape[2:], a.strides, a.low, a.high, a.dilations,
                                                strict=True)]
        if not all(map(same_dims, out, offset.shape[2:])):
            raise InferError(f"offset {shape_text(offset.shape)} does not fit an output of {shape_text(out)}")
        return x.with_shape((x.shape[0], w.shape[0], *out))

    def evaluate(a: Attrs, x: Array, w: Array, offset: Array, bias: Array, mask: Array | None) -> Array:
        kh, kw = w.shape[2:]
        n, channels = x.shape[:2]
        oh, ow = offset.shape[2:]

        def f(x: Array, w: Array, offset: Array) -> Array:
            moves = offset.reshape(n, a.offset_groups, kh, kw, 2, oh, ow)
            scale = np.ones_like(moves[:, :, :, :, 0]) if mask is None else mask.astype(x.dtype).reshape(
                n, a.offset_groups, kh, kw, oh, ow)
            columns = np.zeros((n, channels, kh, kw, oh, ow), x.dtype)
            size = channels // a.offset_groups
            zeros = Attrs(mode="linear", padding="zeros", align_corners=True)
            rows, cols = np.arange(oh)[:, None], np.arange(ow)
            for b, g, i, j in np.ndindex(n, a.offset_groups, kh, kw):
                y = rows * a.strides[0] - a.low[0] + i * a.dilations[0] + moves[b, g, i, j, 0]
                z = cols * a.strides[1] - a.low[1] + j * a.dilations[1] + moves[b, g, i, j, 1]
                part = slice(g * size, (g + 1) * size)
                columns[b, part, i, j] = _interpolate(zeros, x[b, part], np.stack([y, z], -1)) * scale[b, g, i, j]
            depth = channels // a.groups * kh * kw
            split = columns.reshape(n, a.groups, depth, oh * ow)
            out = matmul(w.reshape(a.groups, w.shape[0] // a.groups, depth), split).reshape(n, w.shape[0], oh, ow)
            return out if bias is None else out + bias.astype(out.dtype).reshape(-1, 1, 1)

        return in_float(f, x, w, offset)


class Col2im(XtOp, name="col2im"):
    """Columns x [N, C*prod(block), windows] added into an image [N, C, image...]: the adjoint of taking windows."""

    x = operand()
    image = dims()
    block = integers()
    strides = integers(None)
    low = integers(None)
    high = integers(None)
    dilations = integers(None)

    def normalize(a: Attrs, x: TensorType) -> None:
        for name, value in (("strides", 1), ("low", 0), ("high", 0), ("dilations", 1)):
            if getattr(a, name) is None:
                setattr(a, name, (value,) * len(a.block))

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if x.rank != 3:
            raise InferError(f"x has rank {x.rank}, not 3")
        block = int(np.prod(a.block))
        outs = [window_size(*row) for row in zip(a.image, a.block, a.strides, a.low, a.high, a.dilations, strict=True)]
        if not same_dims(product(outs), x.shape[2]) or (isinstance(x.shape[1], int) and x.shape[1] % block):
            raise InferError(f"{shape_text(x.shape)} are no columns of an image {shape_text(a.image)}")
        return x.with_shape((x.shape[0], x.shape[1] // block, *a.image))

    def evaluate(a: Attrs, x: Array) -> Array:
        image = static_dims(a.image, "image")
        channels = x.shape[1] // int(np.prod(a.block))
        padded = [lo + n + hi for lo, n, hi in zip(a.low, image, a.high, strict=True)]
        outs = [window_size(*row) for row in zip(image, a.block, a.strides, a.low, a.high, a.dilations, strict=True)]

        def f(v: Array) -> Array:
            columns = v.reshape(v.shape[0], channels, *a.block, *outs)
            out = np.zeros((v.shape[0], channels, *padded), v.dtype)
            for at in np.ndindex(*a.block):
                place = tuple(slice(i * d, i * d + (o - 1) * s + 1, s)
                              for i, d, o, s in zip(at, a.dilations, outs, a.strides, strict=True))
                out[(slice(None), slice(None), *place)] += columns[(slice(None), slice(None), *at)]
            return out[(slice(None), slice(None), *(slice(lo, lo + n) for lo, n in zip(a.low, image, strict=True)))]

        return in_float(f, x)
