"""Order along a dim, and what is found by it."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.bounds import interval
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, element, full, rank_of, scalar, slice_axis
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.graph import HIGHEST
from xcc.frontends.torch.indexing import count_symbol, line
from xcc.frontends.torch.promotion import category
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim

SEARCHED = 32       # elements of a row in which halving is quicker than a comparison with each


def _numbers(x: Value) -> Value:
    """Bools as numbers, which alone have an order."""
    return convert(x, "ui8") if element(x) == "i1" else x


@aten("sort", "sort.stable")
def sort(cx: Context) -> tuple[Value, Value]:
    """Values and indices."""
    x = cx.tensor("self")
    if not cx.rank():
        return x, xt.scalar(0, "i64")
    values, places = xt.sort(_numbers(x), axis=cx.axis(), descending=bool(cx["descending"]))
    return convert(values, element(x)), places


@aten("argsort", "argsort.stable")
def argsort(cx: Context) -> Value:
    return sort(cx)[1]


@aten("topk")
def topk(cx: Context) -> list[Value] | tuple[Value, Value]:
    """The k first in order along dim."""
    x, k = cx.tensor("self"), cx.dims("k")[0]
    if not cx.rank():
        return [xt.reshape(v, shape=cx.out(n).shape) for n, v in
                enumerate(xt.top_k(line(_numbers(x)), k=k, axis=0, largest=bool(cx["largest"])))]
    values, places = xt.top_k(_numbers(x), k=k, axis=cx.axis(), largest=bool(cx["largest"]))
    return convert(values, element(x)), places


@aten("kthvalue")
def kthvalue(cx: Context) -> list[Value]:
    """The k-th smallest along dim, and its place."""
    x, k = line(_numbers(cx.tensor("self"))), cx["k"]
    parts = xt.sort(x, axis=cx.axis())
    return [xt.reshape(slice_axis(p, cx.axis(), k - 1, k), shape=cx.out(n).shape) for n, p in enumerate(parts)]


@aten("median.dim", "nanmedian.dim", "median", "nanmedian")
def median(cx: Context) -> list[Value]:
    """The lower of the middle values: NaN where there is one, of the numbers alone for nanmedian."""
    x = cx.tensor("self")
    whole = "dim" not in cx.args or not cx.rank()
    x = xt.reshape(x, shape=(symbolic.product(cx.shape("self")),)) if whole else x
    axis = 0 if whole else cx.axis()
    values, places = xt.sort(x, axis=axis)
    size = xt.shape_of(x)[axis]
    if category(element(x)) == 2:
        middle = _middle(cx, x, axis, size)
    else:
        middle = xt.scalar((size - 1) // 2, "i64") if isinstance(size, int) else \
            xt.dim(value=symbolic.floordiv(size - 1, 2))
    shape = [1 if d == axis else n for d, n in enumerate(xt.shape_of(x))]
    middle = xt.broadcast(middle, shape=tuple(shape))
    return [xt.reshape(xt.gather_elements(v, middle, axis=axis), shape=cx.out(n).shape)
            for n, v in enumerate((values, places)[:len(cx.node.results)])]


def _middle(cx: Context, x: Value, axis: int, size: Dim) -> Value:
    """The place of the median among the sorted values, of which NaN are the last."""
    numbers = xt.reduce(convert(xt.not_(xt.is_nan(x)), "i64"), kind="sum", axes=(axis,), keepdims=True)
    half = xt.div(xt.sub(numbers, xt.scalar(1, "i64")), xt.scalar(2, "i64"))
    half = xt.maximum(half, xt.scalar(0, "i64"))
    if "nanmedian" in cx.node.op:
        return half
    all_of = cx.value_of(size, "i64")
    return xt.select(xt.compare(numbers, all_of, direction="lt"), numbers, half)


@aten("mode")
def mode(cx: Context) -> list[Value]:
    """The smallest of the values that come most often along dim, and where it is last."""
    x = cx.tensor("self")
    if not cx.rank():
        return [x, xt.scalar(0, "i64")]
    axis = cx.axis()
    values, places = xt.sort(_numbers(x), axis=axis)
    size, shape = xt.shape_of(x)[axis], list(xt.shape_of(x))
    shape[axis] = 1
    changed = xt.compare(slice_axis(values, axis, 1, size), slice_axis(values, axis, 0, size - 1), direction="ne")
    changed = xt.concatenate(full(shape, True, "i1"), changed, axis=axis)
    at = xt.iota(shape=xt.shape_of(x), axis=axis, dtype="i64")
    begun = xt.cumulative(xt.select(changed, at, xt.scalar(0, "i64")), kind="max", axis=axis)
    last = xt.arg_reduce(xt.sub(at, begun), kind="argmax", axis=axis, keepdims=True)
    return [xt.reshape(xt.gather_elements(v, last, axis=axis), shape=cx.out(n).shape)
            for n, v in enumerate((convert(values, element(x)), places))]


@aten("searchsorted.Tensor", "searchsorted.Scalar", "bucketize.Tensor", "bucketize.Scalar")
def searchsorted(cx: Context) -> Value:
    """How many of each sorted row are below a value, or not above it with `right`."""
    rows = cx.tensor("sorted_sequence" if "sorted_sequence" in cx.args else "boundaries")
    if cx.args.get("sorter") is not None:
        rows = xt.gather_elements(rows, cx.tensor("sorter"), axis=rank_of(rows) - 1)
    kind = cx.result_type("self", "sorted_sequence" if "sorted_sequence" in cx.args else "boundaries")
    value = cx.value_of(cx["self"], kind)
    right = bool(cx["right"]) or cx.args.get("side") == "right"
    shape = xt.shape_of(rows)
    most = int(min(HIGHEST, interval(cx.graph.bounds, shape[0])[1])) if len(shape) == 1 else 0
    if most >= SEARCHED:
        size = cx.value_of(shape[0], "i64")
        return convert(_searched(convert(rows, kind), size, most.bit_length(), value, right), cx.out().dtype)
    rows = xt.reshape(convert(rows, kind), shape=(*shape[:-1], *[1] * (1 if len(shape) > 1 else rank_of(value)),
                                                  shape[-1]))
    wide = xt.reshape(value, shape=(*xt.shape_of(value), 1))
    below = _is_below(rows, wide, right)
    count = xt.reduce(convert(below, "i64"), kind="sum", axes=(rank_of(below) - 1,))
    return convert(xt.reshape(count, shape=cx.out().shape), cx.out().dtype)


def _searched(row: Value, size: Value, bits: int, value: Value, right: bool) -> Value:
    """As `searchsorted` in one row of `size` elements: the bits of how many are below, from the highest one."""
    found = full(xt.shape_of(value), 0, "i64")
    for bit in reversed(range(bits)):
        more = xt.add(found, xt.scalar(1 << bit, "i64"))
        last = xt.sub(xt.minimum(more, size), xt.scalar(1, "i64"))
        below = _is_below(xt.gather(row, last, axis=0), value, right)
        fits = xt.compare(more, size, direction="le")
        found = xt.select(xt.and_(fits, below), more, found)
    return found


@aten("histc")
def histogram(cx: Context) -> Value:
    """How many elements are in each of `bins` parts of [min, max], which are those of self where they are equal."""
    x, bins = xt.reshape(cx.tensor("self"), shape=(symbolic.product(cx.shape("self")),)), cx.ints("bins")[0]
    low, high = (xt.reshape(cx.value_of(cx[n], element(x)), shape=()) for n in ("min", "max"))
    if cx["min"] == cx["max"] and xt.shape_of(x)[0] != 0:
        low, high = (xt.reduce(x, kind=n, axes=(0,), keepdims=False) for n in ("min", "max"))
    same = xt.compare(low, high, direction="eq")
    low, high = (xt.select(same, xt.add(v, scalar(s, v)), v) for v, s in ((low, -1), (high, 1)))
    inside = xt.and_(xt.compare(x, low, direction="ge"), xt.compare(x, high, direction="le"))
    place = xt.div(xt.mul(xt.sub(x, low), scalar(bins, x)), xt.sub(high, low))
    place = xt.select(inside, xt.minimum(place, scalar(bins - 1, x)), scalar(bins, x))       # behind all: not counted
    one = full(xt.shape_of(x), 1, "i32")
    counts = xt.scatter_elements(full((bins + 1,), 0, "i32"), convert(place, "i64"), one, axis=0, reduction="add")
    return convert(slice_axis(counts, 0, 0, bins), element(x))


def _is_below(rows: Value, value: Value, right: bool) -> Value:
    """Whether elements of `rows` are below `value`, or not above it with `right`. NaN is above all numbers and equal to
    itself."""
    below = xt.compare(rows, value, direction="le" if right else "lt")
    if category(element(value)) != 2:
        return below
    nan = xt.is_nan(value)
    return xt.or_(below, nan if right else xt.and_(nan, xt.not_(xt.is_nan(rows))))


@aten("_unique2", "unique_dim", "unique_consecutive")
def unique(cx: Context) -> list[Value | None]:
    """Distinct elements (slices along dim), where each went, and how many there are of each."""
    x = cx.tensor("self")
    flat = cx.args.get("dim") is None
    axis = 0 if flat else cx.axis()
    if "consecutive" in cx.node.op:
        return _consecutive(cx, x)
    found = xt.unique(_numbers(x), symbol=count_symbol(cx), axis=axis, flat=flat, sorted=True)
    return _unique_results(cx, convert(found[0], element(x)), found[2], found[3])


def _unique_results(cx: Context, values: Value, inverse: Value, counts: Value) -> list[Value | None]:
    out: list[Value | None] = [values]
    for n, value in enumerate((inverse, counts), 1):
        kind = cx.out(n)
        wanted = cx.wants(n) and kind.shape != (0,)
        out.append(xt.reshape(value, shape=kind.shape) if wanted else full((0,), 0, "i64") if cx.wants(n) else None)
    return out


def _consecutive(cx: Context, x: Value) -> list[Value | None]:
    """Of neighbours that are equal the first."""
    if cx["dim"] is not None and cx.rank() != 1:
        cx.fail("dim is not supported for tensors of more than one dim")
    flat = xt.reshape(x, shape=(symbolic.product(cx.shape("self")),))
    size = xt.shape_of(flat)[0]
    if size == 0:
        empty = xt.iota(shape=(0,), axis=0, dtype="i64")
        return _unique_results(cx, flat, empty, empty)
    changed = xt.compare(slice_axis(flat, 0, 1, size), slice_axis(flat, 0, 0, size - 1), direction="ne")
    first = xt.concatenate(xt.broadcast(xt.scalar(True, "i1"), shape=(1,)), changed, axis=0)
    places = xt.sub(xt.cumulative(convert(first, "i64"), kind="sum", axis=0), xt.scalar(1, "i64"))
    symbol = count_symbol(cx)
    values = xt.compress(flat, first, symbol=symbol)
    count = symbolic.sym(symbol)
    counts = xt.scatter_elements(xt.broadcast(xt.scalar(0, "i64"), shape=(count,)), places,
                                 xt.broadcast(xt.scalar(1, "i64"), shape=(size,)), axis=0, reduction="add")
    return _unique_results(cx, values, places, counts)
