"""Gradients of what reads elements of its input with fixed weights, an axis after the other: the transposed weights."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, rank_of, scalar, slice_axis
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.embedding import bag_of_each, bag_sizes, live_indices
from xcc.frontends.torch.registry import aten
from xcc.frontends.torch.resize import options_of, scales_of
from xcc.symbolic import Dim


def identity(size: Dim, dtype: str) -> Value:
    """The identity matrix."""
    row, column = (xt.iota(shape=(size, size), axis=a, dtype="i64") for a in (0, 1))
    return convert(xt.compare(row, column, direction="eq"), dtype)


def transposed_product(grad: Value, axis: int, weights: Value) -> Value:
    """`grad` with dim `axis` multiplied by weights [out, in] from the left: of size in."""
    rank = rank_of(grad)
    out = xt.dot_general(grad, weights, lhs_contract=(axis,), rhs_contract=(0,))
    return xt.transpose(out, perm=(*range(axis), rank - 1, *range(axis, rank - 1)))


_RESIZES = tuple(f"{kind}_backward" for kind in (
    *(f"{name}{n}d" for n in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact")),
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"))


@aten(*_RESIZES)
def resize_backward(cx: Context) -> Value:
    """The gradient of a resize, whose weights are the identity resized; of whole factors of nearest, sums."""
    grad, shape = cx.tensor("grad_output"), cx.dims("input_size")
    options, scales = options_of(cx), scales_of(cx, shape, tuple(xt.shape_of(grad)))
    for axis in range(2, len(shape)):
        size, out = shape[axis], xt.shape_of(grad)[axis]
        factor = _whole_factor(size, out, scales[axis]) if options["mode"] == "nearest" else None
        if factor is not None:
            grad = _sums(grad, axis, size, factor)
            continue
        weights = xt.resize_(identity(size, element(grad)), shape=(out, size), scales=(scales[axis], 1.0), **options)
        grad = transposed_product(grad, axis, weights)
    return grad


def _whole_factor(size: Dim, out: Dim, scale: float) -> int | None:
    """f where every element becomes f in a row."""
    if isinstance(size, int) and isinstance(out, int):
        factor = out // size if size and out % size == 0 else 0
    else:
        factor = int(scale) if scale == int(scale) and out == size * int(scale) else 0
    return factor if factor > 0 and scale in (0.0, float(factor)) else None


def _sums(grad: Value, axis: int, size: Dim, factor: int) -> Value:
    shape = xt.shape_of(grad)
    parts = xt.reshape(grad, shape=(*shape[:axis], size, factor, *shape[axis + 1:]))
    return xt.reduce(parts, kind="sum", axes=(axis + 1,))


@aten("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def replication_pad_backward(cx: Context) -> Value:
    """What was repeated at an edge is added to it; what was cut gets 0."""
    grad, shape, pads = cx.tensor("grad_output"), cx.shape("self"), cx.ints("padding")
    for i in range(len(pads) // 2):
        axis = len(shape) - 1 - i
        size, out = shape[axis], xt.shape_of(grad)[axis]
        row = xt.sub(xt.iota(shape=(out, 1), axis=0, dtype="i64"), xt.scalar(pads[2 * i], "i64"))
        source = xt.minimum(xt.maximum(row, xt.scalar(0, "i64")), dim_scalar(size - 1, "i64"))
        here = xt.compare(source, xt.iota(shape=(1, size), axis=1, dtype="i64"), direction="eq")
        grad = transposed_product(grad, axis, convert(here, element(grad)))
    return grad


@aten("hardshrink_backward", "softshrink_backward")
def shrink_backward(cx: Context) -> Value:
    """The gradient outside of [-lambd, lambd]."""
    grad = cx.tensor("grad_out" if "grad_out" in cx.args else "grad_output")
    x = cx.tensor("self")
    inside = xt.compare(xt.abs(x), cx.scalar(cx["lambd"], x), direction="le")
    return xt.select(inside, scalar(0, grad), grad)


@aten("_embedding_bag_backward", "_embedding_bag_dense_backward")
def embedding_bag_backward(cx: Context) -> Value:
    """The bag's gradient added to each of its rows: times the row's weight, or divided by the bag's size; of the
    largest ones to theirs."""
    mode = int(cx["mode"])
    if cx["scale_grad_by_freq"]:
        cx.fail("the gradient of an embedding bag is supported without scale_grad_by_freq")
    if mode == 2:
        return _largest_backward(cx)
    grad, indices = cx.tensor("grad"), convert(cx.tensor("indices"), "i64")
    n, width = xt.shape_of(indices)[0], xt.shape_of(grad)[1]
    own = _bags_of(cx, n) if "offsets" in cx.args else convert(cx.tensor("offset2bag"), "i64")
    live = live_indices(cx, indices)
    rows = xt.gather(grad, own, axis=0)
    factors = cx.optional("per_sample_weights")
    if factors is not None:
        rows = xt.mul(rows, xt.reshape(factors, shape=(n, 1)))
    if mode == 1:
        sizes = xt.gather(bag_sizes(own, live, xt.shape_of(grad)[0]), own, axis=0)
        rows = xt.div(rows, xt.reshape(convert(xt.maximum(sizes, xt.scalar(1, "i64")), element(rows)), shape=(n, 1)))
    rows = xt.select(xt.reshape(live, shape=(n, 1)), rows, scalar(0, rows))
    start = full((cx.dims("num_weights")[0], width), 0, element(rows))
    return xt.scatter_nd(start, xt.reshape(indices, shape=(n, 1)), rows, reduction="add")


def _largest_backward(cx: Context) -> Value:
    grad = cx.tensor("grad")
    sizes = xt.reshape(cx.tensor("bag_size"), shape=(xt.shape_of(grad)[0], 1))
    kept = xt.select(xt.compare(sizes, scalar(0, sizes), direction="gt"), grad, scalar(0, grad))
    start = full((cx.dims("num_weights")[0], xt.shape_of(grad)[1]), 0, element(grad))
    return xt.scatter_elements(start, convert(cx.tensor("maximum_indices"), "i64"), kept, axis=0, reduction="add")


@aten("_embedding_bag_per_sample_weights_backward")
def embedding_bag_weights_backward(cx: Context) -> Value:
    """The product of each row and its bag's gradient."""
    grad, indices = cx.tensor("grad"), convert(cx.tensor("indices"), "i64")
    rows = xt.mul(xt.gather(cx.tensor("weight"), indices, axis=0),
                  xt.gather(grad, _bags_of(cx, xt.shape_of(indices)[0]), axis=0))
    out = xt.reduce(rows, kind="sum", axes=(1,))
    return xt.select(live_indices(cx, indices), out, scalar(0, out))


def _bags_of(cx: Context, n: Dim) -> Value:
    """The bag of each of `n` indices; offsets may have one more, the end of the last bag."""
    offsets = convert(cx.tensor("offsets"), "i64")
    return bag_of_each(n, slice_axis(offsets, 0, 0, cx.shape("grad")[0]))
