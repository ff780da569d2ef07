"""Convolution."""

import math

import numpy as np

from xcc.dialects.xt import products
from xcc.dialects.xt.broadcasting import window_size
from xcc.dialects.xt.fields import dims, dtype, integer, operand, per_dim, text
from xcc.dialects.xt.matmul import PRECISIONS, accumulator
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.reduce import windows
from xcc.dialects.xt.shape import Pad
from xcc.dialects.xt.types import TensorType, is_float, numpy_dtype
from xcc.symbolic import Dim, dim_max, floordiv

LAYOUTS = {"NCHW": ((0, 1), ()), "NHWC": ((0,), (1,)), "CHWN": ((1,), (0,))}
"""Dims of NCHW that stand before the spatial ones, and behind them."""


class Convolution(XtOp, name="convolution"):
    """Cross-correlation of x with the filter w over any number of spatial dims.

    layout, of x and of the result: NCHW (channel second), NHWC (channel last) or CHWN (channel first, batch last);
    filter: OIHW, HWIO or OHWI, where I is the channels of a group; with CHWN, GIHWO, [groups * I, h, w, O / groups]: a
    group's channels are its own; or in blocks of P outputs (one group only): OHWIo, [O / P, h, w, I, P], or OHWIoi with
    every G input channels of an output next to each other, [O / P, h, w, I / G, P, G]. Of a packed filter the first
    `outputs` are used, or all where that is 0.
    `lhs_dilation` - 1 zeros lie between elements of x (transposed convolution), then `low` and `high` zeros around
    (negative crops). `rhs_dilation` spreads the filter. Output channels divide into `groups` equal parts.
    `dtype` is the result type (default x's); sums are formed in it, and in f32 for narrow floats.
    `precision` "tf32" lets f32 operands be rounded to 10 bits of mantissa, as a chip's matrix instructions read them.
    """

    x = operand()
    w = operand()
    strides = per_dim(1, but=2)
    low = per_dim(0, dims, but=2)
    high = per_dim(0, dims, but=2)
    lhs_dilation = per_dim(1, but=2)
    rhs_dilation = per_dim(1, but=2)
    groups = integer(1)
    outputs = integer(0)
    layout = text("NCHW", tuple(LAYOUTS))
    filter = text("OIHW", ("OIHW", "HWIO", "OHWI", "GIHWO", "OHWIo", "OHWIoi"))
    dtype = dtype(None)
    precision = text("", PRECISIONS, optional=True)
    access = "contraction"

    def normalize(a: Attrs, x: TensorType, w: TensorType) -> None:
        a.dtype = a.dtype or x.dtype

    def infer(a: Attrs, x: TensorType, w: TensorType) -> TensorType:
        if is_float(x.dtype) != is_float(w.dtype) or is_float(x.dtype) != is_float(a.dtype):
            raise InferError(f"cannot convolve {x.dtype} with {w.dtype} into {a.dtype}")
        packed = len(a.filter.lstrip("G")) - len("OHWI")
        if (a.layout == "CHWN") != (a.filter == "GIHWO"):
            raise InferError(f"layout CHWN and filter GIHWO go together, not {a.layout} and {a.filter}")
        if x.rank < 3 or w.rank != x.rank + packed:
            raise InferError(f"x needs rank 3 at least and w {x.rank + packed}, not {x.rank} and {w.rank}")
        if packed and a.groups != 1:
            raise InferError(f"a packed filter goes with one group, not {a.groups}")
        batch, channels, spatial = split_layout(x.shape, a.layout)
        out_channels, in_channels, kernel = split_filter(w.shape, a.filter, a.groups)
        if not same_dims(in_channels * a.groups, channels):
            raise InferError(f"w takes {in_channels} channels a group, x has {channels} in {a.groups} groups")
        if a.outputs:
            out_channels = _used(a, out_channels, w.shape[len(x.shape)])
        if isinstance(out_channels, int) and out_channels % a.groups:
            raise InferError(f"{out_channels} output channels do not divide into {a.groups} groups")
        shape: list[Dim] = []
        for d, n in enumerate(spatial):
            spread = dim_max(n - 1, 0) * a.lhs_dilation[d] + 1 if a.lhs_dilation[d] > 1 else n
            size = window_size(spread, kernel[d], a.strides[d], a.low[d], a.high[d], a.rhs_dilation[d])
            if isinstance(size, int) and size < 0:
                raise InferError(f"the filter's {kernel[d]} elements do not fit into spatial dim {d} of size {n}")
            shape.append(size)
        full = (batch, out_channels, *shape)
        return TensorType(tuple(full[d] for d in _order(a.layout, x.rank)), a.dtype)

    def evaluate(a: Attrs, x: Array, w: Array) -> Array:
        wide = accumulator(a.dtype)
        last, order = x.ndim - 1, _order(a.layout, x.ndim)
        x = x.transpose(np.argsort(order))
        if a.filter == "GIHWO":
            w = np.concatenate(np.split(w, a.groups), -1)
            w = np.moveaxis(w, last, 0)
        if a.filter == "OHWIoi":
            w = np.moveaxis(w, -1, -2).reshape(*w.shape[:-3], -1, w.shape[-2])
        if a.filter in ("OHWIo", "OHWIoi"):
            w = np.moveaxis(w, -1, 1).reshape(-1, *w.shape[1:-1])
            w = np.moveaxis(w, last, 1)[:a.outputs or None]
        w = np.moveaxis(w, (last, last - 1), (0, 1)) if a.filter == "HWIO" else w
        w = np.moveaxis(w, last, 1) if a.filter == "OHWI" else w
        spatial = x.ndim - 2
        padded = Pad.evaluate(Attrs(low=(0, 0, *a.low), high=(0, 0, *a.high),
                                    interior=(0, 0, *(d - 1 for d in a.lhs_dilation)), mode="constant", value=0), x)
        zero = (0,) * x.ndim
        view = windows(padded, Attrs(window=(1, 1, *w.shape[2:]), strides=(1, 1, *a.strides), low=zero, high=zero,
                                     dilations=(1, 1, *a.rhs_dilation)), 0)
        view = view[(slice(None),) * x.ndim + (0, 0)]
        parts = []
        size, outs = w.shape[1], w.shape[0] // a.groups
        for g in range(a.groups):
            image = np.moveaxis(view[:, g * size:(g + 1) * size], 1, 1 + spatial).astype(wide)
            kernel = w[g * outs:(g + 1) * outs].astype(wide)
            rows = image.shape[:1 + spatial]
            columns = image.reshape(math.prod(rows), math.prod(kernel.shape[1:]))
            out = products.matmul(columns, kernel.reshape(outs, columns.shape[1]).T)
            parts.append(np.moveaxis(out.reshape(*rows, outs), -1, 1))
        out = np.concatenate(parts, 1).astype(numpy_dtype(a.dtype))
        return np.ascontiguousarray(out.transpose(order))


def _used(a: Attrs, filled: Dim, panel: Dim) -> int:
    """The outputs of a packed filter for `filled` that are used: all but some of the last panel."""
    if not a.filter.startswith("OHWIo") or not isinstance(filled, int) or not isinstance(panel, int) \
            or not 0 <= filled - a.outputs < panel:
        raise InferError(f"a {a.filter} filter of {filled} outputs does not hold {a.outputs}")
    return int(a.outputs)


def _order(layout: str, rank: int) -> tuple[int, ...]:
    """The dims of a value in `layout`, by their numbers in NCHW."""
    before, after = LAYOUTS[layout]
    return (*before, *range(2, rank), *after)


def split_layout(shape: tuple[Dim, ...], layout: str) -> tuple[Dim, Dim, tuple[Dim, ...]]:
    """Batch, channels and spatial dims."""
    batch, channels, *spatial = (shape[d] for d in np.argsort(_order(layout, len(shape))))
    return batch, channels, tuple(spatial)


def split_filter(shape: tuple[Dim, ...], layout: str, groups: int) -> tuple[Dim, Dim, tuple[Dim, ...]]:
    """Output channels, input channels a group and kernel dims."""
    if layout == "GIHWO":
        return shape[-1] * groups, floordiv(shape[0], groups), shape[1:-1]
    if layout == "OIHW":
        return shape[0], shape[1], shape[2:]
    if layout == "OHWI":
        return shape[0], shape[-1], shape[1:-1]
    if layout == "OHWIo":
        return shape[0] * shape[-1], shape[-2], shape[1:-2]
    if layout == "OHWIoi":
        return shape[0] * shape[-2], shape[-3] * shape[-1], shape[1:-3]
    return shape[-1], shape[-2], shape[:-2]
