"""Pools to a given size. Window i of `out` over `size` elements is [floor(i size / out), ceil((i + 1) size / out))."""

from __future__ import annotations

from collections.abc import Sequence

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import lowest
from xcc.frontends.shared.helpers import convert, dim_scalar, element, mean, rank_of, scalar
from xcc.frontends.shared.pooling import pool
from xcc.frontends.shared.windows import Window
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.pooling import spatial_dims
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


def adaptive_windows(size: Dim, out: Dim) -> tuple[Value, Value]:
    """Positions i64 [out, longest] of each window's elements, and i1 alike: whether they are still in the window."""
    longest = symbolic.ceildiv(size, out) + 1
    row, step = (xt.iota(shape=(out, longest), axis=a, dtype="i64") for a in (0, 1))
    n, m, one = dim_scalar(size, "i64"), dim_scalar(out, "i64"), xt.scalar(1, "i64")
    start = xt.div(xt.mul(row, n), m)
    end = xt.div(xt.add(xt.mul(xt.add(row, one), n), xt.sub(m, one)), m)
    at = xt.add(start, step)
    return at, xt.compare(at, end, direction="lt")


def window_lengths(size: Dim, out: Dim, dtype: str) -> Value:
    """How many elements each window has, [out]."""
    inside = adaptive_windows(size, out)[1]
    return xt.reduce(convert(inside, dtype), kind="sum", axes=(1,))


def gathered(x: Value, axis: int, out: Dim, fill: Value) -> Value:
    """x with dim `axis` as two: the windows, and their elements, `fill` where a window has ended."""
    at, inside = adaptive_windows(xt.shape_of(x)[axis], out)
    parts = xt.gather(x, at, axis=axis)
    shape = (*[1] * axis, *xt.shape_of(at), *[1] * (rank_of(x) - axis - 1))
    return xt.select(xt.reshape(inside, shape=shape), parts, fill)


def window_sums(x: Value, axis: int, out: Dim) -> Value:
    return xt.reduce(gathered(x, axis, out, scalar(0, x)), kind="sum", axes=(axis + 1,))


def _even(shape: Sequence[Dim], out: Sequence[Dim]) -> bool:
    return all(isinstance(n, int) and isinstance(m, int) and m > 0 and n and n % m == 0
               for n, m in zip(shape, out, strict=True))


@aten("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool2d",
      "adaptive_avg_pool3d")
def adaptive_avg_pool(cx: Context) -> Value:
    """Means of the windows."""
    x, n = cx.tensor("self"), spatial_dims(cx)
    shape, wanted = xt.shape_of(x), cx.out().shape
    first = len(shape) - n
    if all(d == 1 for d in wanted[first:]):
        return mean(x, range(first, len(shape)))
    if _even(shape[first:], wanted[first:]):
        kernel = tuple(int(a) // int(b) for a, b in  # type: ignore[arg-type]
                       zip(shape[first:], wanted[first:], strict=True))
        flat = xt.reshape(x, shape=(symbolic.product(shape[:first]), 1, *shape[first:]))
        total = pool(flat, "sum", Window(kernel, kernel, (1,) * n, (0,) * n, (0,) * n))
        return xt.reshape(xt.div(total, scalar(symbolic.product(kernel), x)), shape=wanted)  # type: ignore[arg-type]
    for axis in range(first, len(shape)):
        x = _mean_axis(x, axis, wanted[axis])
    return x


def _mean_axis(x: Value, axis: int, out: Dim) -> Value:
    lengths = window_lengths(xt.shape_of(x)[axis], out, element(x))
    return xt.div(window_sums(x, axis, out), xt.reshape(lengths, shape=(out, *[1] * (rank_of(x) - axis - 1))))


@aten("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(cx: Context) -> tuple[Value, Value]:
    """The largest elements of the windows, and their positions in the plane (row-major)."""
    x, n = cx.tensor("self"), spatial_dims(cx)
    first = rank_of(x) - n
    wanted = cx.out().shape[first:]
    windows, where = x, xt.scalar(0, "i64")
    for i, out in enumerate(wanted):
        size = xt.shape_of(x)[first + i]
        windows = gathered(windows, first + 2 * i, out, xt.scalar(lowest(element(x)), element(x)))
        at = adaptive_windows(size, out)[0]
        place: list[Dim] = [1] * (2 * n)
        place[2 * i:2 * i + 2] = xt.shape_of(at)
        where = xt.add(xt.mul(where, dim_scalar(size, "i64")), xt.reshape(at, shape=tuple(place)))
    return best_of_windows(windows, where, first, cx.out().shape)


def best_of_windows(windows: Value, where: Value, first: int, shape: Sequence[Dim]) -> tuple[Value, Value]:
    """The largest elements of windows [..., windows, taps, windows, taps, ...], whose spatial dims begin at `first`,
    and what `where` has for them; both of `shape`. `where` is alike, or has the spatial dims alone."""
    values, where = _taps_last(windows, first), _taps_last(where, first - rank_of(windows) + rank_of(where))
    best = xt.arg_reduce(values, kind="argmax", axis=-1, keepdims=True)
    where = xt.broadcast(where, shape=xt.shape_of(values))
    largest, places = (xt.reshape(xt.gather_elements(v, best, axis=rank_of(v) - 1), shape=tuple(shape))
                       for v in (values, where))
    return largest, places


def _taps_last(x: Value, first: int) -> Value:
    """[..., windows, taps, windows, taps] from dim `first` on -> [..., windows, windows, taps * taps]."""
    shape = xt.shape_of(x)
    outs, taps = range(first, len(shape), 2), range(first + 1, len(shape), 2)
    moved = xt.transpose(x, perm=(*range(first), *outs, *taps))
    return xt.reshape(moved, shape=(*shape[:first], *(shape[a] for a in outs),
                                    symbolic.product(shape[a] for a in taps)))
