"""Embeddings, and sums of them."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import lowest
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, scalar, slice_axis
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.reduce import norm_over
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


@aten("embedding")
def embedding(cx: Context) -> Value:
    """Rows of the weight."""
    return xt.gather(cx.tensor("weight"), cx.tensor("indices"), axis=0)


@aten("embedding_renorm")
def embedding_renorm(cx: Context) -> Value:
    """self with the rows that indices name scaled to the norm `max_norm`, where theirs is larger."""
    x, most = cx.tensor("self"), float(cx["max_norm"])
    indices = convert(cx.tensor("indices"), "i64")
    indices = xt.reshape(indices, shape=(symbolic.product(xt.shape_of(indices)), 1))
    rows = xt.gather(x, xt.reshape(indices, shape=xt.shape_of(indices)[:1]), axis=0)
    norm = norm_over(xt.abs(rows), (1,), float(cx["norm_type"]), keepdims=True)
    scale = xt.div(scalar(most, norm), xt.add(norm, scalar(1e-7, norm)))
    rows = xt.select(xt.compare(norm, scalar(most, norm), direction="gt"), xt.mul(rows, scale), rows)
    return xt.scatter_nd(x, indices, rows, reduction="none")


@aten("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag.padding_idx", "embedding_bag")
def embedding_bag(cx: Context) -> tuple[Value, ...]:
    """Sum, mean or largest (mode 0, 1, 2) of the rows of each bag; a bag is what lies from its offset to the next.

    Then the bag of each index, the size of each bag, and what was largest: results of the shapes that torch gives.
    """
    weight, indices = cx.tensor("weight"), convert(cx.tensor("indices"), "i64")
    offsets = convert(cx.tensor("offsets"), "i64")
    n, bags, live = xt.shape_of(indices)[0], xt.shape_of(offsets)[0], live_indices(cx, indices)
    if cx["include_last_offset"]:       # what lies behind it is in no bag
        bags -= 1
        last, offsets = slice_axis(offsets, 0, bags, bags + 1), slice_axis(offsets, 0, 0, bags)
        live = xt.and_(live, xt.compare(xt.iota(shape=(n,), axis=0, dtype="i64"), last, direction="lt"))
    own = bag_of_each(n, offsets)
    sizes = bag_sizes(own, live, bags)
    rows = _rows(cx, weight, indices)
    mode = int(cx["mode"])
    out = _largest(rows, own, live, bags, sizes) if mode == 2 else _sums(rows, own, live, bags)
    if mode == 1:
        least = xt.maximum(sizes, xt.scalar(1, "i64"))
        out = xt.div(out, xt.reshape(convert(least, element(out)), shape=(bags, 1)))
    if mode == 2 and cx.wants(3):
        largest = convert(_largest_of(rows, own, live, out, indices), cx.out(3).dtype)
        return out, _as_torch(cx, 1, own), _as_torch(cx, 2, sizes), largest
    return out, *(_as_torch(cx, i + 1, v) for i, v in enumerate((own, sizes, sizes)))


def bag_sizes(own: Value, live: Value, bags: Dim) -> Value:
    """[bags]: how many indices of each bag count."""
    return xt.scatter_elements(full((bags,), 0, "i64"), own, convert(live, "i64"), axis=0, reduction="add")


def bag_of_each(n: Dim, offsets: Value) -> Value:
    """[n]: how many bags begin at the index or before, less one."""
    at = xt.iota(shape=(n, 1), axis=0, dtype="i64")
    begun = xt.compare(xt.reshape(offsets, shape=(1, xt.shape_of(offsets)[0])), at, direction="le")
    return xt.sub(xt.reduce(convert(begun, "i64"), kind="sum", axes=(1,)), xt.scalar(1, "i64"))


def live_indices(cx: Context, indices: Value) -> Value:
    """i1 [n]: which indices count; `padding_idx` does not."""
    padding = cx.get("padding_idx", -1)
    if padding < 0:
        if cx.node.op.endswith("padding_idx") and cx["padding_idx"] is not None:
            padding = dim_scalar(cx.shape("weight")[0] + padding, "i64")
        else:
            return full(xt.shape_of(indices), True, "i1")
    return xt.compare(indices, cx.value_of(padding, "i64"), direction="ne")


def _rows(cx: Context, weight: Value, indices: Value) -> Value:
    rows = xt.gather(weight, indices, axis=0)
    factors = cx.optional("per_sample_weights")
    if factors is None:
        return rows
    return xt.mul(rows, xt.reshape(convert(factors, element(rows)), shape=(xt.shape_of(indices)[0], 1)))


def _sums(rows: Value, own: Value, live: Value, bags: Dim) -> Value:
    n, width = xt.shape_of(rows)
    kept = xt.select(xt.reshape(live, shape=(n, 1)), rows, scalar(0, rows))
    start = full((bags, width), 0, element(rows))
    return xt.scatter_nd(start, xt.reshape(own, shape=(n, 1)), kept, reduction="add")


def _largest(rows: Value, own: Value, live: Value, bags: Dim, sizes: Value) -> Value:
    n, width = xt.shape_of(rows)
    least = xt.scalar(lowest(element(rows)), element(rows))
    kept = xt.select(xt.reshape(live, shape=(n, 1)), rows, least)
    start = xt.broadcast(least, shape=(bags, width))
    out = xt.scatter_nd(start, xt.reshape(own, shape=(n, 1)), kept, reduction="max")
    some = xt.compare(sizes, xt.scalar(0, "i64"), direction="gt")
    return xt.select(xt.reshape(some, shape=(bags, 1)), out, scalar(0, out))


def _largest_of(rows: Value, own: Value, live: Value, out: Value, indices: Value) -> Value:
    """[bags, width]: which row of the weights gave the largest, the first of several; 0 for an empty bag."""
    n, width = xt.shape_of(rows)
    none = dim_scalar(n, "i64")
    hit = xt.and_(xt.reshape(live, shape=(n, 1)), xt.compare(rows, xt.gather(out, own, axis=0), direction="eq"))
    place = xt.select(hit, xt.iota(shape=(n, width), axis=0, dtype="i64"), none)
    start = xt.broadcast(none, shape=xt.shape_of(out))
    first = xt.scatter_nd(start, xt.reshape(own, shape=(n, 1)), place, reduction="min")
    return xt.gather(xt.concatenate(indices, full((1,), 0, "i64"), axis=0), first, axis=0)


def _as_torch(cx: Context, result: int, value: Value) -> Value:
    """A result that only backward reads, where it has the shape that torch gives it; else zeros."""
    kind = cx.out(result)
    if kind.rank == 1 and kind.shape == tuple(xt.shape_of(value)):
        return convert(value, kind.dtype)
    return full(kind.shape, 0, kind.dtype)
