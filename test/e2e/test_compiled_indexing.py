"""Gather, scatter, sort, top-k, running sums and results of a size that is data, compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import FLOATS, INTEGERS, SIZES, SMALL, arrays, check, examples, filled, shapes
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.types import numpy_dtype

F32 = np.dtype(np.float32)
BOOL = np.dtype(bool)
PLAIN = [*FLOATS, *INTEGERS]
INDEX = st.sampled_from([np.dtype(np.int64), np.dtype(np.int64), np.dtype(np.int32)])


def indices(data: Any, shape: Any, sizes: Any, seed: int = 7, wild: bool = True) -> Any:
    """Positions below `sizes` (broadcast to `shape`), some negative; with `wild` some outside, which are clamped."""
    rng, n = np.random.default_rng(seed), np.broadcast_to(np.asarray(sizes), shape)
    low, high = (-n - 2, n + 2) if wild and data.draw(st.booleans()) else (-n, n)
    return np.floor(low + rng.random(shape) * (high - low)).astype(data.draw(INDEX))


def unique_indices(data: Any, shape: Any, axis: int, size: int, seed: int = 7) -> Any:
    """Different positions along `axis`, so that the order of writes does not count."""
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random([size if d == axis else n for d, n in enumerate(shape)]), axis)
    cut = np.take(order, np.arange(shape[axis]), axis)
    return np.where(rng.random(cut.shape) < 0.3, cut - size, cut).astype(data.draw(INDEX))


@given(st.data())
@examples(14)
def test_gather(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 4), SMALL.filter(bool)), [*PLAIN, BOOL]))
    axis = data.draw(st.integers(0, x.ndim - 1))
    batch = data.draw(st.integers(0, axis))
    shape = (*x.shape[:batch], *data.draw(shapes((0, 2), SIZES, 200)))
    at = indices(data, shape, x.shape[axis])
    back = data.draw(st.booleans()) and not batch
    check(lambda v, i: xt.gather(v, i, axis=axis - v.type.rank if back else axis, batch_dims=batch), x, at,
          dynamic=data.draw(st.booleans()))


@given(st.data())
@examples(10)
def test_gather_nd(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 4), SMALL.filter(bool)), [*PLAIN, BOOL]))
    batch = data.draw(st.integers(0, x.ndim - 1))
    depth = data.draw(st.integers(0 if batch == 0 else 1, x.ndim - batch))
    outer = (*x.shape[:batch], *data.draw(shapes((0 if batch else 1, 2), SMALL)))
    at = indices(data, (*outer, depth), x.shape[batch:batch + depth])
    check(lambda v, i: xt.gather_nd(v, i, batch_dims=batch), x, at)


@given(st.data())
@examples(10)
def test_gather_elements(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 4), SMALL.filter(bool)), [*PLAIN, BOOL]))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shape = [data.draw(st.integers(0, n)) for n in x.shape]
    shape[axis] = data.draw(SMALL)
    check(lambda v, i: xt.gather_elements(v, i, axis=axis), x, indices(data, shape, x.shape[axis]))


@given(st.data())
@examples(14)
def test_scatter_elements(data: Any) -> None:
    dtype = data.draw(st.sampled_from(PLAIN))
    x = data.draw(arrays(shapes((1, 4), SMALL.filter(bool)), [dtype]))
    axis = data.draw(st.integers(0, x.ndim - 1))
    kind = data.draw(st.sampled_from(["none", "add", "mul", "max", "min"]))
    shape = [data.draw(st.integers(0, n)) for n in x.shape]
    if kind == "none":
        at = unique_indices(data, shape, axis, x.shape[axis])
    else:
        shape[axis] = data.draw(SMALL)
        at = indices(data, shape, x.shape[axis], wild=False)
    back = x.ndim if data.draw(st.booleans()) else 0
    check(lambda v, i, u: xt.scatter_elements(v, i, u, axis=axis - back, reduction=kind), x, at,
          filled(shape, dtype, 3, 0.5, 1.5), tolerance=4)


@given(st.data())
@examples(8)
def test_scatter_of_rows(data: Any) -> None:
    """One index for all of a row, or of a part of it, repeated for its elements."""
    x = data.draw(arrays(shapes((2, 3), SMALL.filter(bool)), ["float32", "int32"]))
    axis, kind = data.draw(st.integers(0, x.ndim - 1)), data.draw(st.sampled_from(["none", "add", "max"]))
    shape = [data.draw(st.sampled_from([n, n // 2])) for n in x.shape]
    shape[axis] = data.draw(SMALL)
    given = [n if d == axis else data.draw(st.sampled_from([1, 1, n])) for d, n in enumerate(shape)]
    at = indices(data, given, x.shape[axis], wild=False)
    check(lambda v, i, u: xt.scatter_elements(v, xt.broadcast(i, shape=shape), u, axis=axis, reduction=kind), x, at,
          filled(shape, str(x.dtype), 3, 0.5, 1.5), tolerance=4)


@given(st.data())
@examples(6)
def test_segments(data: Any) -> None:
    """Rows of a table that a list names, combined in parts of the list: some empty, some wider than a block."""
    dtype = data.draw(st.sampled_from(["float32", "float16", "int32"]))
    width, places, named = data.draw(st.sampled_from([1, 5, 64, 300])), data.draw(SMALL), data.draw(st.integers(0, 9))
    starts = np.sort(indices(data, (places + 1,), named + 1, wild=False) % (named + 1)).astype(np.int32)
    x = filled([data.draw(st.sampled_from([1, n])) for n in (places, width)], dtype, 2, 0.5, 1.5)
    kind = data.draw(st.sampled_from(["add", "mul", "max", "min"]))
    check(lambda v, s, o, u: xt.combine_segments(v, s, o, u, reduction=kind), x, starts,
          indices(data, (named,), 7, wild=False) % 7, filled((7, width), dtype, 3, 0.5, 1.5), tolerance=8)


@given(st.data())
@examples(14)
def test_scatter_nd(data: Any) -> None:
    dtype = data.draw(st.sampled_from(PLAIN))
    x = data.draw(arrays(shapes((1, 4), SMALL.filter(bool)), [dtype]))
    depth = data.draw(st.integers(1, x.ndim))
    kind = data.draw(st.sampled_from(["none", "add", "mul", "max", "min"]))
    outer = data.draw(shapes((1, 2), SMALL))
    at = indices(data, (*outer, depth), x.shape[:depth], wild=False)
    if kind == "none":
        lead = x.shape[:depth]
        count = min(int(np.prod(lead)), int(np.prod(outer)))
        flat = np.random.default_rng(5).permutation(int(np.prod(lead)))[:count]
        at, outer = np.stack(np.unravel_index(flat, lead), -1).astype(np.int64), (count,)
    updates = filled((*outer, *x.shape[depth:]), dtype, 3, 0.5, 1.5)
    check(lambda v, i, u: xt.scatter_nd(v, i, u, reduction=kind), x, at, updates, tolerance=4)


@given(st.data())
@examples(10)
def test_sort(data: Any) -> None:
    """Equal elements keep their order, so that indices are exact too."""
    x = data.draw(arrays(shapes((1, 3)), PLAIN))
    x = np.round(x.astype(np.float64)).astype(x.dtype) if data.draw(st.booleans()) else x
    axis, down = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.booleans())
    check(lambda v: xt.sort(v, axis=axis, descending=down), x, dynamic=data.draw(st.booleans()))


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "i64", "ui64", "ui8"])
def test_sorts_of_rows_of_any_length(dtype: str, down: bool) -> None:
    """Around the network's vectors and blocks: ties, both zeros, infinities and NaN."""
    rows = []
    for n in (1, 7, 8, 9, 23, 64, 65, 130, 257):
        x = np.random.default_rng(n).integers(0, 5, (2, n)).astype(np.float32)
        if dtype in ("f32", "bf16", "f64"):
            x[:, ::9], x[0, 4::37], x[1, 5::41], x[0, 6::43], x[1, 7::47] = -0.0, np.inf, np.nan, -np.nan, -np.inf
        rows.append(x.astype(numpy_dtype(dtype)))

    def sorts(*values: Any) -> Any:
        return tuple(made for v in values for made in xt.sort(v, axis=1, descending=down))

    check(sorts, *rows, dynamic=down)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i64", "ui8"])
def test_top_k_of_rows(dtype: str, largest: bool) -> None:
    """Rows of several blocks: ties, both zeros, infinities and NaN of either sign, the best in the last elements."""
    x = np.random.default_rng(3).integers(0, 9, (3, 131, 2)).astype(np.float32)
    x[:, 130], x[:, 129] = (9, -1) if largest else (-1, 9)
    if dtype in ("f32", "bf16"):
        x[:, ::9], x[:, 4::37], x[0, 5::41], x[1, 6::43], x[2, 7::47] = -0.0, np.inf, np.nan, -np.nan, -np.inf
    check(lambda v: xt.top_k(v, k=20, axis=1, largest=largest), x.astype(numpy_dtype(dtype)))


@given(st.data())
@examples(10)
def test_top_k(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 3)), PLAIN))
    x = np.round(x.astype(np.float64)).astype(x.dtype) if data.draw(st.booleans()) else x
    axis, largest = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.booleans())
    k = data.draw(st.integers(0, x.shape[axis]))
    check(lambda v: xt.top_k(v, k=k, axis=axis, largest=largest), x)


@given(st.data())
@examples(10)
def test_cumulative(data: Any) -> None:
    kind = data.draw(st.sampled_from(["sum", "prod", "max", "min", "logsumexp"]))
    floats = kind == "logsumexp"
    x = data.draw(arrays(shapes((1, 3)), FLOATS if floats else PLAIN, *((0.9, 1.1) if kind == "prod" else (-3, 3))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    check(lambda v: xt.cumulative(v, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse), x,
          dynamic=data.draw(st.booleans()), tolerance=8)


@given(st.data())
@examples(6)
def test_nonzero_and_compress(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 3), SMALL), [F32, BOOL, np.dtype(np.int8)]))
    x = np.where(np.random.default_rng(1).random(x.shape) < 0.5, np.zeros_like(x), x)
    axis, flat = data.draw(st.integers(0, x.ndim - 1)), data.draw(st.booleans())
    keep = filled((x.size if flat else x.shape[axis],), BOOL, 2)
    check(lambda v, c: (xt.nonzero(v, symbol="n"), xt.compress(v, c, symbol="m", axis=axis, flat=flat)), x, keep)


@given(st.data())
@examples(6)
def test_unique(data: Any) -> None:
    x = data.draw(arrays(shapes((1, 3), SMALL.filter(bool)), [F32, np.dtype(np.int64), np.dtype(np.int8)]))
    x = np.round(x.astype(np.float64)).astype(x.dtype)
    axis, flat, ordered = data.draw(st.integers(0, x.ndim - 1)), data.draw(st.booleans()), data.draw(st.booleans())
    check(lambda v: xt.unique(v, symbol="n", axis=axis, flat=flat, sorted=ordered), x)


@given(st.data())
@examples(10)
def test_dynamic_slices(data: Any) -> None:
    """A box at places that are data is read, or written; places outside are clamped."""
    x = data.draw(arrays(shapes((1, 4), SMALL), [*PLAIN, BOOL]))
    sizes = [data.draw(st.integers(0, n)) for n in x.shape]
    at = np.array([data.draw(st.integers(-3, 9)) for _ in sizes], np.int64)
    update = filled(sizes, x.dtype, 5)

    def body(v: Any, u: Any, at: Any) -> Any:
        starts = [xt.reshape(xt.slice(at, starts=(d,), limits=(d + 1,)), shape=()) for d in range(len(sizes))]
        return xt.dynamic_slice(v, *starts, sizes=sizes), xt.dynamic_update_slice(v, u, *starts)

    check(body, x, update, at)
