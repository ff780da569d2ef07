"""deform_conv."""

from __future__ import annotations

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, convert, dim_scalar, drop, dtype, shape, take
from xcc.symbolic import Dim


@decomposes("deform_conv")
def deform_conv(a: Attrs, x: Value, w: Value, offset: Value, bias: Value | None, mask: Value | None) -> Value:
    """Each tap of each output pixel is read once for all channels that are made of it, as one long image; a convolution
    of 1x1 sums them up."""
    n, channels, *image = shape(x)
    out, _, *kernel = shape(w)
    parts, taps, size = a.offset_groups, symbolic.product(kernel), list(shape(offset)[2:])
    rows = (taps * size[0], size[1])
    moves = xt.reshape(convert(offset, "f32"), shape=(n * parts, taps, 2, *size))
    places = [_places(a, drop(take(moves, 2, d, d + 1), 2), kernel, d, image[d]) for d in (1, 0)]
    grid = xt.concatenate(*[xt.reshape(p, shape=(n * parts, *rows, 1)) for p in places], axis=3)
    each = symbolic.floordiv(channels, parts)
    read = xt.grid_sample(xt.reshape(x, shape=(n * parts, each, *image)), grid)
    if mask is not None:
        scale = xt.reshape(convert(mask, dtype(x)), shape=(n * parts, 1, *rows))
        read = xt.mul(read, scale)
    columns = xt.reshape(read, shape=(n, channels * taps, *size))
    flat = xt.reshape(w, shape=(out, shape(w)[1] * taps, 1, 1))
    y = xt.convolution(columns, flat, groups=a.groups)
    return y if bias is None else xt.add(y, xt.reshape(convert(bias, dtype(y)), shape=(out, 1, 1)))


def _places(a: Attrs, moves: Value, kernel: list[Dim], d: int, size: Dim) -> Value:
    """Where taps read along spatial dim `d`, of `size` elements, from -1 to 1 between the outer edges of the image.

    moves: [images, taps, oh, ow], from where a tap of a plain convolution reads.
    """
    count = shape(moves)[2 + d]
    steps = np.indices([int(k) for k in kernel])[d].reshape(-1, 1, 1)     # type: ignore[arg-type]
    first = xt.constant((steps * a.dilations[d] - a.low[d]).astype(np.float32))
    pixel = convert(xt.iota(shape=(count, 1) if d == 0 else (count,), axis=0, dtype="i32"), "f32")
    at = xt.add(moves, xt.add(first, xt.mul(pixel, const(a.strides[d], pixel))))
    scale = xt.div(const(2.0, at), dim_scalar(size, "f32"))
    return xt.sub(xt.mul(xt.add(at, const(0.5, at)), scale), const(1.0, at))
