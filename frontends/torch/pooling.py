"""Pools over windows of one size."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import dim_scalar, rank_of, scalar, squeeze, unsqueeze
from xcc.frontends.shared.pooling import average, pool
from xcc.frontends.shared.windows import Shape, Window, ceil_high
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten


def batched(x: Value, spatial: int) -> tuple[Value, bool]:
    """`x` with a batch dim, and whether it had none."""
    alone = rank_of(x) == spatial + 1
    return (unsqueeze(x, [0]) if alone else x), alone


def window_of(cx: Context, spatial: Shape) -> tuple[Window, Shape]:
    """The window of a pool, and its padding at the end with what ceil_mode adds."""
    n = len(spatial)
    kernel = cx.ints("kernel_size", n)
    strides = cx.ints("stride", n) if cx.get("stride") else kernel
    pads = cx.ints("padding", n)
    dilations = cx.ints("dilation", n) if "dilation" in cx.args else (1,) * n
    w = Window(kernel, strides, dilations, pads, pads)
    return w, ceil_high(spatial, w) if cx.get("ceil_mode") else pads


def spatial_dims(cx: Context) -> int:
    """How many spatial dims the op has: the digit before the d in its name."""
    name = cx.node.op.split(".")[1]
    return next(n for n in (1, 2, 3) if f"{n}d" in name)


@aten("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(cx: Context) -> Value:
    x, alone = batched(cx.tensor("self"), spatial_dims(cx))
    w, high = window_of(cx, tuple(xt.shape_of(x)[2:]))
    out = pool(x, "max", w, high)
    return squeeze(out, [0]) if alone else out


@aten("max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool1d_with_indices")
def max_pool_with_indices(cx: Context) -> Value | tuple[Value, ...]:
    """The largest elements, and their positions in the plane (row-major)."""
    if not cx.wants(1):
        return max_pool(cx)
    x, alone = batched(cx.tensor("self"), spatial_dims(cx))
    spatial = tuple(xt.shape_of(x)[2:])
    w, high = window_of(cx, spatial)
    values, flat = xt.max_pool_with_indices(x, window=w.kernel, strides=w.strides, low=w.low, high=high,
                                            dilations=w.dilations)
    plane = dim_scalar(symbolic.dim_max(symbolic.product(spatial), 1), "i64")
    out = values, xt.rem(flat, plane)
    return tuple(squeeze(v, [0]) for v in out) if alone else out


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(cx: Context) -> Value:
    x, alone = batched(cx.tensor("self"), spatial_dims(cx))
    w, high = window_of(cx, tuple(xt.shape_of(x)[2:]))
    divisor = cx.get("divisor_override")
    if divisor is None:
        out = average(x, w, high, bool(cx["count_include_pad"]))
    else:
        out = xt.div(pool(x, "sum", w, high), scalar(int(divisor), x))
    return squeeze(out, [0]) if alone else out
