"""Products, reductions, scans and sorts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc._mlir import Operation
from xcc.dialects.tile.op import Attrs, InferError, TileOp
from xcc.dialects.tile.types import TileType, is_float, is_integer
from xcc.dialects.xt.fields import axes, axis, boolean, integer, integers, operand, region, text, variadic
from xcc.dialects.xt.numeric import Array

KINDS = ("sum", "prod", "max", "min", "umax", "umin", "and", "or", "xor")
_NUMPY: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
                          "umax": np.maximum, "umin": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
                          "xor": np.bitwise_xor, "minnum": np.fmin, "maxnum": np.fmax}
WIDE = {"f16": "f32", "bf16": "f32", "i8": "i32"}


def check_kind(kind: str, dtype: str) -> None:
    """InferError where values of `dtype` cannot be combined so."""
    bits = kind in ("and", "or", "xor")
    if (is_float(dtype) and (bits or kind[0] == "u")) or (dtype == "i1" and not bits):
        raise InferError(f"kind {kind} does not take {dtype}")


def _wide(x: Array) -> Array:
    """Sums of 16 bits and less are kept in 32."""
    return x.astype(np.float32) if x.dtype.itemsize <= 2 and x.dtype.kind not in "biu" else x


def _signless(kind: str, x: Array) -> Array:
    return x.view(f"u{x.dtype.name}") if kind[0] == "u" else x


class Contract(TileOp, name="contract"):
    """acc + a @ b: a[..., m, k], b[..., k, n], acc[..., m, n]. Products of f16 and bf16 are summed in f32, of i8 in i32
    where acc is so. `unsigned` says which of a and b (0, 1) are unsigned integers."""

    a = operand()
    b = operand()
    acc = operand()
    unsigned = integers(())

    def infer(a: Attrs, x: TileType, y: TileType, acc: TileType) -> TileType:
        if x.rank < 2 or x.rank != y.rank or x.rank != acc.rank or x.shape[:-2] != y.shape[:-2] \
                or x.shape[-1] != y.shape[-2] or acc.shape != (*x.shape[:-1], y.shape[-1]):
            raise InferError(f"{x} times {y} plus {acc}: shapes [..., m, k], [..., k, n] and [..., m, n] are needed")
        if x.dtype != y.dtype or "i1" in (x.dtype, acc.dtype) or is_float(x.dtype) != is_float(acc.dtype):
            raise InferError(f"a product of {x.dtype} and {y.dtype}, summed in {acc.dtype}")
        if acc.dtype not in (x.dtype, WIDE.get(x.dtype), "f32") or acc.dtype == "index":
            raise InferError(f"products of {x.dtype} are not summed in {acc.dtype}")
        return acc

    def evaluate(a: Attrs, x: Array, y: Array, acc: Array) -> Array:
        pair = [v.view(f"u{v.dtype.name}") if i in a.unsigned else v for i, v in enumerate((x, y))]
        wide = acc.dtype if acc.dtype.kind in "iu" or acc.dtype.itemsize >= 4 else np.dtype(np.float32)
        with np.errstate(all="ignore"):
            return (acc.astype(wide) + np.matmul(*(v.astype(wide) for v in pair))).astype(acc.dtype)


class Reduce(TileOp, name="reduce"):
    """The elements along `axes` combined, these dims left out; all of them give a scalar. `max` and `min` of floats are
    NaN where an element is; of integers they are signed, `umax` and `umin` not. Sums of 16-bit floats are rounded at
    the end, or at each step."""

    x = operand()
    kind = text(choices=KINDS)
    axes = axes(None)

    def infer(a: Attrs, x: TileType) -> TileType:
        check_kind(a.kind, x.dtype)
        if not a.axes:
            raise InferError("no axis to reduce along")
        return x.with_shape([n for d, n in enumerate(x.shape) if d not in a.axes])

    def evaluate(a: Attrs, x: Array) -> Array:
        with np.errstate(all="ignore"):
            y = _signless(a.kind, _wide(x))
            return np.asarray(_NUMPY[a.kind].reduce(y, axis=tuple(a.axes), dtype=y.dtype)).astype(x.dtype)


class Scan(TileOp, name="scan"):
    """Along `axis`, each element combined with all before it (`reverse`: behind it); `exclusive`: without itself, the
    first is what changes nothing."""

    x = operand()
    kind = text(choices=("sum", "prod", "max", "min", "umax", "umin"))
    axis = axis(-1)
    reverse = boolean(False)
    exclusive = boolean(False)

    def infer(a: Attrs, x: TileType) -> TileType:
        check_kind(a.kind, x.dtype)
        return x

    def evaluate(a: Attrs, x: Array) -> Array:
        y = np.moveaxis(_signless(a.kind, _wide(x)), a.axis, 0)
        y = y[::-1] if a.reverse else y
        with np.errstate(all="ignore"):
            out = _NUMPY[a.kind].accumulate(y, 0, dtype=y.dtype)
        if a.exclusive:
            out = np.concatenate([np.full_like(out[:1], neutral(a.kind, x.dtype)), out[:-1]])
        return np.ascontiguousarray(np.moveaxis(out[::-1] if a.reverse else out, 0, a.axis)).astype(x.dtype)


def neutral(kind: str, dtype: Any) -> Any:
    """What changes nothing, of a numpy dtype."""
    if kind in ("sum", "or", "xor", "umax"):
        return 0
    if kind == "prod":
        return 1
    if kind in ("and", "umin"):
        return -1
    if dtype.kind not in "iu":
        return -np.inf if kind == "max" else np.inf
    return np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max


class _Combining:
    """What ops with a region that combines two elements share."""

    @classmethod
    def region_problem(cls, op: Operation) -> str | None:
        block = op.regions[0].blocks[0]
        want = [TileType.of(v).dtype for v in op.operands]
        have = [str(v.type) for v in block.arguments]
        if have != want * 2:
            return f"has a region of ({', '.join(have)}), not of ({', '.join(want * 2)})"
        last = list(block.operations)[-1].operation if len(block.operations) else None
        if last is None or last.name != "tile.yield" or [str(v.type) for v in last.operands] != want:
            return f"has a region that does not end with a tile.yield of ({', '.join(want)})"
        return None


def _same_shapes(xs: tuple[TileType, ...]) -> TileType:
    if not xs or not xs[0].shape or any(x.shape != xs[0].shape for x in xs):
        raise InferError(f"{', '.join(map(str, xs)) or 'nothing'}: tiles of one shape are needed")
    return xs[0]


class ReduceBy(_Combining, TileOp, name="reduce_by"):
    """Like reduce along one `axis`, of several tiles at once and by the region `combine`, which takes an element of
    each, then another one of each, and yields what they make together. It must be associative; the order is kept."""

    xs = variadic()
    combine = region()
    axis = axis(-1)
    result_names = ("results",)
    variadic_results = True

    def infer(a: Attrs, xs: tuple[TileType, ...]) -> tuple[TileType, ...]:
        _same_shapes(xs)
        return tuple(x.with_shape([n for d, n in enumerate(x.shape) if d != a.axis]) for x in xs)

    def evaluate(a: Attrs, xs: Any, combine: Callable[..., Any]) -> tuple[Array, ...]:
        parts = [[np.take(x, i, a.axis) for x in xs] for i in range(xs[0].shape[a.axis])]
        while len(parts) > 1:
            parts = [list(combine(*p, *q)) for p, q in zip(parts[::2], parts[1::2], strict=True)]
        return tuple(parts[0])


class ScanBy(_Combining, TileOp, name="scan_by"):
    """Like scan along `axis`, of several tiles at once and by the region `combine` (see reduce_by)."""

    xs = variadic()
    combine = region()
    axis = axis(-1)
    reverse = boolean(False)
    result_names = ("results",)
    variadic_results = True

    def infer(a: Attrs, xs: tuple[TileType, ...]) -> tuple[TileType, ...]:
        _same_shapes(xs)
        return tuple(xs)

    def evaluate(a: Attrs, xs: Any, combine: Callable[..., Any]) -> tuple[Array, ...]:
        count = xs[0].shape[a.axis]
        order = range(count - 1, -1, -1) if a.reverse else range(count)
        out: list[Any] = [None] * count
        last: list[Any] = []
        for i in order:
            mine = [np.take(x, i, a.axis) for x in xs]
            last = out[i] = list(combine(*last, *mine)) if last else mine
        return tuple(np.stack([row[n] for row in out], a.axis) for n in range(len(xs)))


class Sort(TileOp, name="sort"):
    """Integer tiles [rows, n] sorted along each row, signed, compared one tile after the other: the first of each row,
    as many as `keep`."""

    words = variadic()
    keep = integer(0)
    result_names = ("sorted",)
    variadic_results = True

    def infer(a: Attrs, words: tuple[TileType, ...]) -> tuple[TileType, ...]:
        x = _same_shapes(words)
        for w in words:
            if w.rank != 2 or not is_integer(w.dtype) or w.dtype == "index":
                raise InferError(f"{w} is sorted; integers [rows, n] are needed")
        keep = a.keep or x.shape[1]
        if keep & keep - 1 or not 0 < keep <= x.shape[1]:
            raise InferError(f"keep = {keep} is no power of two up to {x.shape[1]}")
        return tuple(w.with_shape([w.shape[0], keep]) for w in words)

    def evaluate(a: Attrs, words: Any) -> tuple[Array, ...]:
        order = np.lexsort(tuple(reversed(words)), axis=1)
        return tuple(np.take_along_axis(w, order, 1)[:, :a.keep or w.shape[1]] for w in words)


class Accumulate(TileOp, name="accumulate"):
    """`memory`[column * stride + place] combined with the updates [n, columns] that have this place of `at`, in the
    order of their rows. `kind` "last" leaves the last of them there. A negative place is none; places are below
    `limit`. The memory is a workgroup's own."""

    effects = "both"
    result_names = ()
    memory = operand()
    at = operand()
    updates = operand()
    kind = text(choices=("sum", "prod", "max", "min", "umax", "umin", "and", "or", "xor", "minnum", "maxnum", "last"))
    limit = integer()
    stride = integer()

    def infer(a: Attrs, memory: TileType, places: TileType, updates: TileType) -> None:
        if not memory.is_buffer or memory.rank != 1 or memory.dtype != updates.dtype:
            raise InferError(f"the memory is {memory}; one dim of {updates.dtype} is needed")
        if places.shape != updates.shape or places.rank != 2 or places.dtype != "i32":
            raise InferError(f"places are {places} for the updates {updates}; i32 [n, columns] of one shape are needed")

    def evaluate(a: Attrs, memory: Array, places: Array, updates: Array) -> None:
        for row, column in np.ndindex(places.shape):
            if places[row, column] >= 0:
                at = column * a.stride + places[row, column]
                memory[at] = updates[row, column] if a.kind == "last" \
                    else _NUMPY[a.kind](memory[at], updates[row, column])
