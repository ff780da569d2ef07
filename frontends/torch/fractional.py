"""Pools whose windows begin at places that a random number of each plane draws."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, element, rank_of, slice_axis
from xcc.frontends.torch.adaptive import best_of_windows
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.pooling import batched, spatial_dims
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


def _starts(sample: Value, size: Dim, out: int, kernel: int) -> Value:
    """Where the windows of each plane begin, i64 [..., out]: the last one as far back as it can."""
    shape = (*xt.shape_of(sample), out)
    last = dim_scalar(size - kernel, "i64")
    at = xt.iota(shape=shape, axis=len(shape) - 1, dtype=element(sample))
    if out == 1:
        return xt.broadcast(last, shape=shape)
    step = xt.div(convert(last, element(sample)), xt.scalar(out - 1, element(sample)))
    wide = xt.reshape(sample, shape=(*shape[:-1], 1))
    begin = xt.sub(convert(xt.mul(xt.add(at, wide), step), "i64"), convert(xt.mul(wide, step), "i64"))
    return xt.select(xt.compare(at, xt.scalar(out - 1, element(at)), direction="eq"), last, begin)


@aten("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(cx: Context) -> tuple[Value, Value]:
    """The largest elements of the windows, and their positions in the plane (row-major)."""
    n = spatial_dims(cx)
    x, _ = batched(cx.tensor("self"), n)
    samples = cx.tensor("random_samples")
    kernel, outs = cx.ints("kernel_size", n), cx.ints("output_size", n)
    order = (1, 0) if n == 2 else (0, 1, 2)     # of the numbers among a plane's
    windows, where = x, xt.scalar(0, "i64")
    for i, (k, out, place) in enumerate(zip(kernel, outs, order, strict=True)):
        axis, size = 2 + 2 * i, xt.shape_of(x)[2 + i]
        own = xt.reshape(slice_axis(samples, 2, place, place + 1), shape=xt.shape_of(samples)[:2])
        start = _starts(own, size, out, k)
        taps = xt.iota(shape=(1, 1, 1, k), axis=3, dtype="i64")
        at = xt.add(xt.reshape(start, shape=(*xt.shape_of(start), 1)), taps)
        windows = _read(windows, at, axis)
        around = (*xt.shape_of(at)[:2], *[1] * (2 * i), out, k, *[1] * (2 * (n - 1 - i)))
        where = xt.add(xt.mul(where, dim_scalar(size, "i64")), xt.reshape(at, shape=around))
    return best_of_windows(windows, where, 2, cx.out().shape)


def _read(x: Value, at: Value, axis: int) -> Value:
    """x with dim `axis` as two, windows and taps: its elements at `at` [batch, channels, windows, taps]."""
    shape = xt.shape_of(x)
    lead, out, taps = xt.shape_of(at)[:2], *xt.shape_of(at)[2:]
    places = xt.reshape(at, shape=(*lead, *[1] * (axis - 2), out * taps, *[1] * (rank_of(x) - axis - 1)))
    whole = (*shape[:axis], out * taps, *shape[axis + 1:])
    read = xt.gather_elements(x, xt.broadcast(places, shape=whole), axis=axis)
    return xt.reshape(read, shape=(*shape[:axis], out, taps, *shape[axis + 1:]))
