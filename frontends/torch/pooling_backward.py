"""Gradients of pools."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import element, full, rank_of, scalar, squeeze
from xcc.frontends.shared.pooling import pool, window_count
from xcc.frontends.shared.windows import Window
from xcc.frontends.torch.adaptive import window_lengths, window_sums
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.pooling import batched, spatial_dims, window_of
from xcc.frontends.torch.registry import aten


@aten("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "adaptive_max_pool2d_backward",
      "adaptive_max_pool3d_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward")
def max_pool_backward(cx: Context) -> Value:
    """Each gradient is added where its maximum was: positions in the plane."""
    grad, shape, n = cx.tensor("grad_output"), cx.shape("self"), spatial_dims(cx)
    first = len(shape) - n
    rows, plane = symbolic.product(shape[:first]), symbolic.product(shape[first:])
    windows = symbolic.product(xt.shape_of(grad)[first:])
    flat, where = (xt.reshape(v, shape=(rows, windows)) for v in (grad, cx.tensor("indices")))
    start = full((rows, plane), 0, element(grad))
    return xt.reshape(xt.scatter_elements(start, where, flat, axis=1, reduction="add"), shape=shape)


@aten("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(cx: Context) -> Value:
    """Each gradient, divided by its window's count, is added to all of the window: sums over the gradients spread."""
    n = spatial_dims(cx)
    x, alone = batched(cx.tensor("self"), n)
    grad, _ = batched(cx.tensor("grad_output"), n)
    spatial = tuple(xt.shape_of(x)[2:])
    w, high = window_of(cx, spatial)
    divisor = cx.get("divisor_override")
    counts = window_count(x, w, high, bool(cx["count_include_pad"])) if divisor is None else scalar(int(divisor), x)
    each = xt.div(grad, counts)
    spread = xt.pad(each, low=(0,) * (n + 2), high=(0,) * (n + 2), interior=(0, 0, *(s - 1 for s in w.strides)),
                    value=0.0)
    reach = zip(xt.shape_of(spread)[2:], w.kernel, w.low, spatial, strict=True)
    back = Window(w.kernel, (1,) * n, (1,) * n, tuple(k - 1 - p for k, p in zip(w.kernel, w.low, strict=True)),
                  tuple(p + size - length for length, _, p, size in reach))
    out = pool(spread, "sum", back)
    return squeeze(out, [0]) if alone else out


@aten("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(cx: Context) -> Value:
    """The windows that an element is in are those of a pool the other way, from the windows to the elements."""
    grad, shape = cx.tensor("grad_output"), cx.shape("self")
    rank = rank_of(grad)
    for axis in range(rank - spatial_dims(cx), rank):
        out = xt.shape_of(grad)[axis]
        lengths = window_lengths(shape[axis], out, element(grad))
        each = xt.div(grad, xt.reshape(lengths, shape=(out, *[1] * (rank - axis - 1))))
        grad = window_sums(each, axis, shape[axis])
    return grad
