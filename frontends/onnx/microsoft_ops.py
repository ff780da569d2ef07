"""Ops of com.microsoft that converters write for what the standard lacks, or lacked."""

from __future__ import annotations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dim_functions import dim_max
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.microsoft import MS
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, scalar, slice_axis, unsqueeze


@onnx_op("CDist", domain=MS)
def distances(cx: Context) -> Value:
    """C [m, n]: the distance, or its square, of each row of A [m, k] and each of B [n, k]."""
    far = xt.sub(unsqueeze(cx[0], [1]), unsqueeze(cx[1], [0]))
    square = xt.reduce(xt.mul(far, far), kind="sum", axes=(2,))
    metric = cx.attr("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        cx.fail(f"metric '{metric}' is not supported")
    return xt.sqrt(square) if metric == "euclidean" else square


@onnx_op("NGramRepeatBlock", domain=MS)
def block_repeated_ngrams(cx: Context) -> Value:
    """scores_out: -inf for the token that would repeat `ngram_size` tokens of input_ids [batch, length]."""
    ids, size = cx[0], int(cx.attr("ngram_size"))
    batch, length = cx.shape(0)
    count = dim_max(length - size + 1, 0)
    longer = xt.pad(ids, low=(0, 0), high=(0, size))        # what is behind a shorter text is not looked at
    same = full((batch, count), True, "i1")
    for n in range(size - 1):
        tokens, last = (slice_axis(longer, 1, at, at + many) for at, many in ((n, count), (count + n, 1)))
        same = xt.and_(same, xt.compare(tokens, last, direction="eq"))
    scores = cx[1]
    update = xt.select(same, scalar(-np.inf, scores), scalar(np.inf, scores))
    return xt.scatter_elements(scores, slice_axis(longer, 1, size - 1, size - 1 + count), update, axis=1,
                               reduction="min")


@onnx_op("CropAndResize", domain=MS)
def crop_and_resize(cx: Context) -> Value:
    """Y [rois, C, h, w]: the image of each box (y1, x1, y2, x2, 0 to 1, its corners on pixels) at another size."""
    x, rois = cx[0], cx[1]
    size, (count, _) = cx.dims(3), cx.shape(1)
    lines, inside, mode = [], full((1, 1, 1), True, "i1"), cx.attr("mode", "bilinear")
    for axis in (1, 0):
        low, high = (slice_axis(rois, 1, n, n + 1) for n in (axis, axis + 2))
        last = xt.sub(dim_scalar(cx.shape(0)[2 + axis], element(rois)), scalar(1, rois))
        steps = convert(xt.iota(shape=(1, size[axis]), axis=1, dtype="i64"), element(rois))
        between = dim_scalar(dim_max(size[axis] - 1, 1), element(rois))
        part = xt.div(steps, between) if size[axis] != 1 else full((1, 1), 0.5, element(rois))
        at = xt.mul(xt.add(low, xt.mul(part, xt.sub(high, low))), last)
        within = xt.and_(xt.compare(at, scalar(0, at), direction="ge"), xt.compare(at, last, direction="le"))
        at = xt.floor(xt.add(at, scalar(0.5, at))) if mode == "nearest" else at     # halves up
        shape = (count, 1, size[1]) if axis else (count, size[0], 1)
        inside = xt.and_(inside, xt.reshape(within, shape=shape))
        place = xt.sub(xt.div(xt.add(at, at), xt.maximum(last, scalar(1, last))), scalar(1, at))
        lines.append(xt.broadcast(xt.reshape(place, shape=(*shape, 1)), shape=(count, *size, 1)))
    grid = xt.concatenate(*lines, axis=3)
    crops = xt.grid_sample(xt.gather(x, cx[2], axis=0), convert(grid, element(x)), padding="border",
                           mode="linear" if mode == "bilinear" else mode, align_corners=True)
    return xt.select(unsqueeze(inside, [1]), crops, scalar(cx.attr("extrapolation_value", 0.0), crops))
