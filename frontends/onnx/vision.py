"""Regions of interest and boxes."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dim_functions import dim_min
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, scalar, slice_axis, unsqueeze
from xcc.symbolic import product


@onnx_op("RoiAlign", since=10)
def roi_align(cx: Context) -> Value:
    """Y = RoiAlign(X, rois, batch_indices); before opset 16 coordinates are not shifted by half a pixel."""
    shifted = cx.opset >= 16 and cx.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return xt.roi_align(cx[0], cx[1], cx[2], mode=cx.attr("mode", "avg"),
                        size=(cx.attr("output_height", 1), cx.attr("output_width", 1)),
                        samples=cx.attr("sampling_ratio", 0), spatial_scale=cx.attr("spatial_scale", 1.0),
                        half_pixel=shifted)


@onnx_op("AffineGrid", since=20)
def affine_grid(cx: Context) -> Value:
    """grid = AffineGrid(theta, size; align_corners): theta [N, k, k + 1] times positions of the k spatial dims, from -1
    to 1, the innermost first, and 1. (The schema's own body does not take a batch of 1.)"""
    declared = cx.declared() if cx.tensor(1).data is None else None
    spatial = declared[1:-1] if declared else cx.dims(1)[2:]
    k = len(spatial)
    if k not in (2, 3) or cx.rank(0) != 3:
        cx.misfit(f"{k} spatial dims, and theta of rank {cx.rank(0)}")
    lines = []
    for axis in reversed(range(k)):
        size = dim_scalar(spatial[axis], "f32")
        at = convert(xt.iota(shape=spatial, axis=axis, dtype="i64"), "f32")
        double = xt.add(at, at)
        at = xt.div(double, xt.sub(size, scalar(1, size))) if cx.attr("align_corners", 0) \
            else xt.div(xt.add(double, scalar(1, size)), size)
        lines.append(xt.reshape(xt.sub(at, scalar(1, size)), shape=(1, product(spatial))))
    points = xt.concatenate(*lines, full((1, product(spatial)), 1, "f32"), axis=0)
    grid = xt.dot_general(cx[0], convert(points, element(cx[0])), lhs_contract=(2,), rhs_contract=(0,))
    return xt.reshape(xt.transpose(grid, perm=(0, 2, 1)), shape=(cx.shape(0)[0], *spatial, k))


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(cx: Context) -> Value:
    """selected_indices [count, 3] (batch, class, box), best first: a box that overlaps a better kept one is dropped."""
    boxes, scores = _corners(cx[0], cx.attr("center_point_box", 0)), cx[1]
    most, overlap, least = _limit(cx, 2, 0, "i64"), _limit(cx, 3, 0.0, "f32"), _limit(cx, 4, None, "f32")
    order = xt.best_boxes(boxes, scores, *(v for v in (most, overlap, least) if v is not None))
    known = cx.tensor(2).data if cx.has(2) else None
    if known is not None:       # the others are -1
        order = slice_axis(order, 2, 0, dim_min(max(int(known.reshape(())), 0), cx.shape(1)[2]))
    kept = xt.compare(order, scalar(0, order), direction="ge")
    found = xt.transpose(xt.nonzero(kept, symbol=cx.graph.fresh_symbol(f"{cx.node.output[0]}_count")), perm=(1, 0))
    box = unsqueeze(convert(xt.gather_nd(order, found), "i64"), [1])
    return xt.concatenate(slice_axis(found, 1, 0, 2), box, axis=1)


def _limit(cx: Context, i: int, default: float | None, kind: str) -> Value | None:
    if cx.has(i):
        return xt.reshape(convert(cx[i], kind), shape=())
    return None if default is None else xt.scalar(default, kind)


def _corners(boxes: Value, centered: int) -> Value:
    """y1, x1, y2, x2 of [..., 4], with y1 <= y2 and x1 <= x2."""
    a, b, c, d = (slice_axis(boxes, 2, i, i + 1) for i in range(4))
    if centered:  # x, y, width, height
        half_w, half_h = xt.mul(c, scalar(0.5, c)), xt.mul(d, scalar(0.5, d))
        a, b, c, d = xt.sub(b, half_h), xt.sub(a, half_w), xt.add(b, half_h), xt.add(a, half_w)
    return xt.concatenate(xt.minimum(a, c), xt.minimum(b, d), xt.maximum(a, c), xt.maximum(b, d), axis=2)
