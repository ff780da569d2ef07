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
    end = xt.reshape(dim_scalar(n, "i64"), shape=(1,))
    if cx["include_last_offset"]:       # what lies behind it is in no bag
        bags -= 1
        end, offsets = slice_axis(offsets, 0, bags, bags + 1), slice_axis(offsets, 0, 0, bags)
        live = xt.and_(live, xt.compare(xt.iota(shape=(n,), axis=0, dtype="i64"), end, direction="lt"))
    starts = _inside(xt.concatenate(offsets, end, axis=0), n)
    own = bag_of_each(n, offsets)
    mode = int(cx["mode"])
    least = lowest(element(weight)) if mode == 2 else 0
    if _padding(cx) is None and cx.optional("per_sample_weights") is None:      # rows of the table, not copied
        order, rows = _inside(indices, xt.shape_of(weight)[0] - 1), weight
        sizes = xt.sub(slice_axis(starts, 0, 1, bags + 1), slice_axis(starts, 0, 0, bags))
    else:
        order, rows = xt.iota(shape=(n,), axis=0, dtype="i64"), _rows(cx, weight, indices, live, least)
        ones = xt.reshape(convert(live, "i64"), shape=(n, 1))
        sizes = xt.reshape(_combined(starts, order, ones, 0, "add"), shape=(bags,))
    out = _combined(starts, order, rows, least, "max" if mode == 2 else "add")
    if mode == 1:
        out = xt.div(out, xt.reshape(convert(xt.maximum(sizes, xt.scalar(1, "i64")), element(out)), shape=(bags, 1)))
    if mode == 2:
        some = xt.compare(sizes, xt.scalar(0, "i64"), direction="gt")
        out = xt.select(xt.reshape(some, shape=(bags, 1)), out, scalar(0, out))
    if mode == 2 and cx.wants(3):
        largest = convert(_largest_of(xt.gather(weight, indices, axis=0), own, live, out, indices), cx.out(3).dtype)
        return out, _as_torch(cx, 1, own), _as_torch(cx, 2, sizes), largest
    return out, *(_as_torch(cx, i + 1, v) for i, v in enumerate((own, sizes, sizes)))


def _inside(x: Value, last: Dim) -> Value:
    """Numbers from 0 to `last`."""
    return xt.minimum(xt.maximum(x, xt.scalar(0, "i64")), dim_scalar(last, "i64"))


def _combined(starts: Value, order: Value, rows: Value, first: float, kind: str) -> Value:
    """[bags, width]: `first` and the rows of each bag."""
    return xt.combine_segments(full((1, 1), first, element(rows)), starts, order, rows, reduction=kind)


def bag_sizes(own: Value, live: Value, bags: Dim) -> Value:
    """[bags]: how many indices of each bag count."""
    return xt.scatter_elements(full((bags,), 0, "i64"), own, convert(live, "i64"), axis=0, reduction="add")


def bag_of_each(n: Dim, offsets: Value) -> Value:
    """[n]: how many bags begin at the index or before, less one."""
    begun = xt.scatter_elements(full((n + 1,), 0, "i64"), _inside(offsets, n), full(xt.shape_of(offsets), 1, "i64"),
                                axis=0, reduction="add")
    return xt.sub(slice_axis(xt.cumulative(begun, kind="sum", axis=0), 0, 0, n), xt.scalar(1, "i64"))


def _padding(cx: Context) -> Value | None:
    """The index that does not count, i64, or None."""
    padding = cx.get("padding_idx", -1)
    if padding >= 0:
        return cx.value_of(padding, "i64")
    if cx.node.op.endswith("padding_idx") and cx["padding_idx"] is not None:
        return dim_scalar(cx.shape("weight")[0] + padding, "i64")
    return None


def live_indices(cx: Context, indices: Value) -> Value:
    """i1 [n]: which indices count; `padding_idx` does not."""
    padding = _padding(cx)
    return full(xt.shape_of(indices), True, "i1") if padding is None else xt.compare(indices, padding, direction="ne")


def _rows(cx: Context, weight: Value, indices: Value, live: Value, dead: float) -> Value:
    """[n, width]: the row of each index times its factor; `dead` where it does not count."""
    rows, column = xt.gather(weight, indices, axis=0), (xt.shape_of(indices)[0], 1)
    factors = cx.optional("per_sample_weights")
    if factors is not None:
        rows = xt.mul(rows, xt.reshape(convert(factors, element(rows)), shape=column))
    return xt.select(xt.reshape(live, shape=column), rows, xt.scalar(dead, element(rows)))


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
