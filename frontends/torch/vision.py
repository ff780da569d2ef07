"""Grids, images as columns, and what torchvision does with boxes."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import (
    convert,
    dim_scalar,
    element,
    rank_of,
    scalar,
    slice_axis,
    squeeze,
    unsqueeze,
)
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.indexing import count_symbol
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(cx: Context) -> Value:
    """The input read at the grid's positions, -1 to 1."""
    return xt.grid_sample(cx.tensor("input"), cx.tensor("grid"), mode=_MODES[int(cx["interpolation_mode"])],
                          padding=_PADDINGS[int(cx["padding_mode"])], align_corners=bool(cx["align_corners"]))


@aten("affine_grid_generator")
def affine_grid(cx: Context) -> Value:
    """theta [N, n, n + 1] times each position (x, y, 1) of an image of `size` [N, C, ...]."""
    theta, spatial = cx.tensor("theta"), cx.dims("size")[2:]
    n, kind = len(spatial), element(theta)
    parts = []
    for axis in reversed(range(n)):
        shape: list[Dim] = [1] * (n + 1)
        shape[axis] = spatial[axis]
        line = _positions(spatial[axis], kind, bool(cx["align_corners"]))
        parts.append(xt.broadcast(xt.reshape(line, shape=tuple(shape)), shape=(*spatial, 1)))
    parts.append(xt.broadcast(xt.scalar(1, kind), shape=(*spatial, 1)))
    points = xt.concatenate(*parts, axis=n)
    product = xt.dot_general(theta, points, lhs_contract=(2,), rhs_contract=(n,))
    return xt.transpose(product, perm=(0, *range(2, n + 2), 1))


def _positions(size: Dim, kind: str, align_corners: bool) -> Value:
    """`size` positions from -1 to 1: the centres of elements, or from the first to the last."""
    at, one, n = xt.iota(shape=(size,), axis=0, dtype=kind), xt.scalar(1, kind), dim_scalar(size, kind)
    if align_corners:
        steps = xt.maximum(xt.sub(n, one), one)
        line = xt.sub(xt.div(xt.mul(at, xt.scalar(2, kind)), steps), one)
        return xt.select(xt.compare(n, one, direction="gt"), line, xt.scalar(0, kind))
    return xt.sub(xt.div(xt.add(xt.mul(at, xt.scalar(2, kind)), one), n), one)


@aten("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(cx: Context) -> Value:
    """[..., C r^2, H, W] <-> [..., C, H r, W r]."""
    x, shape = cx.tensor("self"), cx.shape("self")
    out = cx.out().shape
    lead = len(shape) - 3
    if "unshuffle" in cx.node.op:
        r = int(cx["downscale_factor"])
        c, h, w = shape[lead], *out[-2:]
        parts = xt.reshape(x, shape=(*shape[:lead], c, h, r, w, r))
        order = (0, 2, 4, 1, 3)
    else:
        r = int(cx["upscale_factor"])
        parts = xt.reshape(x, shape=(*shape[:lead], out[lead], r, r, *shape[-2:]))
        order = (0, 3, 1, 4, 2)
    return xt.reshape(xt.transpose(parts, perm=(*range(lead), *(lead + i for i in order))), shape=out)


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(cx: Context) -> Value:
    """Channels [groups, each] -> [each, groups]."""
    x, (batch, channels, *rest), groups = cx.tensor("self"), cx.shape("self"), int(cx["groups"])
    parts = xt.reshape(x, shape=(batch, groups, symbolic.floordiv(channels, groups), *rest))
    order = (0, 2, 1, *range(3, 3 + len(rest)))
    return xt.reshape(xt.transpose(parts, perm=order), shape=cx.out().shape)


@aten("col2im")
def col2im(cx: Context) -> Value:
    """Columns added into an image."""
    x = cx.tensor("self")
    alone = rank_of(x) == 2
    pads = cx.ints("padding", 2)
    out = xt.col2im(unsqueeze(x, [0]) if alone else x, image=cx.dims("output_size"), block=cx.ints("kernel_size", 2),
                    strides=cx.ints("stride", 2), low=pads, high=pads, dilations=cx.ints("dilation", 2))
    return squeeze(out, [0]) if alone else out


@aten("im2col")
def im2col(cx: Context) -> Value:
    """An image's windows as columns [N, C * block, windows]."""
    x = cx.tensor("self")
    alone = rank_of(x) == 3
    x = unsqueeze(x, [0]) if alone else x
    kernel, dilations = cx.ints("kernel_size", 2), cx.ints("dilation", 2)
    pads = cx.ints("padding", 2)
    x = xt.pad(x, low=(0, 0, *pads), high=(0, 0, *pads), value=0.0)
    for i, (k, d, s) in enumerate(zip(kernel, dilations, cx.ints("stride", 2), strict=True)):
        axis = 2 + 2 * i
        count = symbolic.floordiv(xt.shape_of(x)[axis] - (k - 1) * d - 1, s) + 1
        tap, window = (xt.iota(shape=(k, count), axis=a, dtype="i64") for a in (0, 1))
        at = xt.add(xt.mul(tap, xt.scalar(d, "i64")), xt.mul(window, xt.scalar(s, "i64")))
        x = xt.gather(x, at, axis=axis)
    x = xt.transpose(x, perm=(0, 1, 2, 4, 3, 5))
    shape = cx.out().shape
    return xt.reshape(x, shape=shape)


@aten("nms.default", namespace="torchvision")
def nms(cx: Context) -> Value:
    """Places [count] of the boxes dets [n, 4] (x1, y1, x2, y2) that are kept, the highest score first."""
    boxes, scores = cx.tensor("dets"), cx.tensor("scores")
    most, overlap = dim_scalar(xt.shape_of(scores)[0], "i64"), cx.scalar(cx["iou_threshold"], boxes)
    order = squeeze(xt.best_boxes(unsqueeze(boxes, [0]), unsqueeze(scores, [0, 1]), most, overlap), [0, 1])
    kept = xt.compare(order, scalar(0, order), direction="ge")
    return convert(xt.compress(order, kept, symbol=count_symbol(cx)), "i64")


@aten("roi_align.default", namespace="torchvision")
def roi_align(cx: Context) -> Value:
    """Images pooled over boxes [R, 5]: the number of the image, x1, y1, x2, y2."""
    rois = cx.tensor("rois")
    images = convert(squeeze(slice_axis(rois, 1, 0, 1), [1]), "i64")
    return xt.roi_align(cx.tensor("input"), slice_axis(rois, 1, 1, 5), images,
                        size=cx.ints("pooled_height") + cx.ints("pooled_width"), samples=max(cx["sampling_ratio"], 0),
                        spatial_scale=float(cx["spatial_scale"]), half_pixel=bool(cx["aligned"]))


@aten("deform_conv2d.default", namespace="torchvision")
def deform_conv(cx: Context) -> Value:
    """A convolution whose taps are moved by `offset`, and scaled by `mask` where there is one."""
    pads, mask = (cx["pad_h"], cx["pad_w"]), cx.tensor("mask") if cx["use_mask"] else None
    return xt.deform_conv(cx.tensor("input"), cx.tensor("weight"), cx.tensor("offset"), cx.tensor("bias"), mask,
                          strides=(cx["stride_h"], cx["stride_w"]), low=pads, high=pads,
                          dilations=(cx["dilation_h"], cx["dilation_w"]), groups=cx["groups"],
                          offset_groups=cx["offset_groups"])
