"""Products, reductions, scans and sorts of tiles: functions of :mod:`xcc.tile`. An `axis` may be negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

from xcc._mlir import ir
from xcc.dialects import tile as tile_d
from xcc.dialects.tile.types import is_float
from xcc.tile.control import for_
from xcc.tile.functions import arange, bitcast, constant, full, where, zeros
from xcc.tile.places import place
from xcc.tile.values import Value, as_value, broadcast, complain, convert, emit, signless

ROUND = 4       # steps of a sorting network that take as long as to find a row's next element


def dot(a: Value, b: Value, acc: Value | None = None) -> Value:
    """acc + a @ b, of tiles [..., m, k] and [..., k, n]. Without `acc` from 0 on: f16 and bf16 give f32, i8 gives
    i32."""
    if acc is None:
        narrow = {"f16": "f32", "bf16": "f32", "i8": "i32", "ui8": "i32"}
        wide = narrow.get(a.dtype, "f32" if a.dtype[:2] == "f8" else a.dtype)
        acc = zeros((*a.shape[:-1], b.shape[-1] if b.shape else 1), wide)
    unsigned = tuple(i for i, v in enumerate((a, b)) if v.dtype[0] == "u")
    return Value(emit("contract", a.ir, b.ir, acc.ir, unsigned=unsigned), acc.dtype)


def _reduced(kind: str, x: Value, axis: int | Sequence[int] | None, keepdims: bool) -> Value:
    axes = tuple(range(x.rank)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    kind = f"u{kind}" if x.dtype[0] == "u" and kind in ("max", "min") else kind
    out = Value(emit("reduce", x.ir, kind=kind, axes=axes), x.dtype)
    left = {d % x.rank for d in axes}
    return out if not keepdims else _kept(out, [1 if d in left else n for d, n in enumerate(x.shape)])


def _kept(x: Value, shape: Sequence[int]) -> Value:
    return x.reshape(tuple(shape)) if x.shape else broadcast(x, shape)


def sum(x: Value, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    """The sum along `axis`, of all without one."""
    return _reduced("sum", x, axis, keepdims)


def prod(x: Value, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    return _reduced("prod", x, axis, keepdims)


def max(x: Value, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    """The largest along `axis`; NaN where one is."""
    return _reduced("max", x, axis, keepdims)


def min(x: Value, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    return _reduced("min", x, axis, keepdims)


def any(x: Value, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    return _reduced("or", convert(x, "i1"), axis, keepdims)


def all(x: Value, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
    return _reduced("and", convert(x, "i1"), axis, keepdims)


def reduce(xs: Value | Sequence[Value], axis: int, combine: Callable[..., Any], keepdims: bool = False) -> Any:
    """The elements of one tile or several along `axis`, combined by the associative function `combine` of scalars:
    with n tiles it takes 2n and gives n."""
    return _combined("reduce_by", xs, axis, combine, keepdims)


def scan(xs: Value | Sequence[Value], axis: int, combine: Callable[..., Any], reverse: bool = False) -> Any:
    """Running results of `combine` (see reduce) along `axis`."""
    return _combined("scan_by", xs, axis, combine, reverse=reverse)


def _combined(name: str, xs: Any, axis: int, combine: Callable[..., Any], keepdims: bool = False,
              **attributes: Any) -> Any:
    tiles = [xs] if isinstance(xs, Value) else list(xs)
    op = emit(name, *(x.ir for x in tiles), axis=axis, **attributes)
    kinds = [ir.Type.parse(signless(x.dtype)) for x in tiles] * 2
    block = op.regions[0].blocks.append(*kinds, arg_locs=[place()] * len(kinds))
    with ir.InsertionPoint(block):
        given = [Value(v, x.dtype) for v, x in zip(block.arguments, tiles * 2, strict=True)]
        made = combine(*given)
        made = [made] if isinstance(made, Value) else list(made)
        emit("yield", *(convert(as_value(v), x.dtype).ir for v, x in zip(made, tiles, strict=True)))
    why = tile_d.problem_of(op)
    if why is not None:
        raise complain(why)
    out = [Value(r, x.dtype) for r, x in zip(op.results, tiles, strict=True)]
    if keepdims:
        d = axis % tiles[0].rank
        out = [_kept(v, (*x.shape[:d], 1, *x.shape[d + 1:])) for v, x in zip(out, tiles, strict=True)]
    return out[0] if isinstance(xs, Value) else tuple(out)


def _arg(x: Value, axis: int, best: Value, keepdims: bool) -> Value:
    """The first place along `axis` of what equals `best`, or of a NaN, which `best` is then, too."""
    d = axis % x.rank
    places = broadcast(arange(x.shape[d]).reshape((x.shape[d],) + (1,) * (x.rank - d - 1)), x.shape)
    found = x == broadcast(best, x.shape)
    if is_float(x.dtype):
        found = found | (x != x)
    return min(where(found, places, x.shape[d]), axis, keepdims)


def argmax(x: Value, axis: int = -1, keepdims: bool = False) -> Value:
    """The i32 place of the largest along `axis`, the first of several, or of the first NaN."""
    return _arg(x, axis, max(x, axis, keepdims=True), keepdims)


def argmin(x: Value, axis: int = -1, keepdims: bool = False) -> Value:
    """The i32 place of the smallest along `axis`, the first of several, or of the first NaN."""
    return _arg(x, axis, min(x, axis, keepdims=True), keepdims)


def cumsum(x: Value, axis: int = -1, reverse: bool = False, exclusive: bool = False) -> Value:
    """Running sums along `axis`."""
    return Value(emit("scan", x.ir, kind="sum", axis=axis, reverse=reverse, exclusive=exclusive), x.dtype)


def cumprod(x: Value, axis: int = -1, reverse: bool = False, exclusive: bool = False) -> Value:
    return Value(emit("scan", x.ir, kind="prod", axis=axis, reverse=reverse, exclusive=exclusive), x.dtype)


def cummax(x: Value, axis: int = -1, reverse: bool = False) -> Value:
    kind = "umax" if x.dtype[0] == "u" else "max"
    return Value(emit("scan", x.ir, kind=kind, axis=axis, reverse=reverse), x.dtype)


def sort(x: Value, descending: bool = False) -> Value:
    """x sorted along its last dim; -0 and 0 are apart, NaN comes last (first with `descending`)."""
    key = _key(_rows(x))
    key = ~key if descending else key
    (made,) = (Value(r) for r in emit("sort", key.ir))
    return _unkey(~made if descending else made, x.dtype).reshape(x.shape)


def order(x: Value, descending: bool = False, keep: int = 0) -> tuple[Value, Value]:
    """The first `keep` (0: all) of x sorted along its last dim, and their i32 places there, of equal elements the
    first one first; NaN comes last (first with `descending`)."""
    rows = _rows(x)
    key = _key(where(rows == 0, 0, rows) if is_float(x.dtype) else rows)     # -0 is 0
    key = ~key if descending else key
    if 0 < ROUND * keep <= _steps(rows.shape[1]):
        made, places = _first(key, keep)
    else:
        at = broadcast(arange(rows.shape[1]), rows.shape)
        made, places = (Value(r) for r in emit("sort", key.ir, at.ir, keep=keep))
    shape = (*x.shape[:-1], keep or x.shape[-1])
    return _unkey(~made if descending else made, x.dtype).reshape(shape), places.reshape(shape)


def _steps(n: int) -> int:
    """Steps of a network that sorts `n` elements, a power of two."""
    merges = n.bit_length() - 1
    return merges * (merges + 1) // 2


def _first(key: Value, keep: int) -> tuple[Value, Value]:
    """The `keep` least of each row and their places, in rounds: the least of those behind the one before."""
    n = key.shape[1]
    at, column = broadcast(arange(n), key.shape), arange(keep).reshape((1, keep))
    rows = (key.shape[0], 1)
    largest = constant((1 << int(key.dtype[1:]) - 1) - 1, key.dtype)

    def body(turn: Value, last: Value, place: Value, made: Value, places: Value) -> list[Value]:
        behind = (key > last) | ((key == last) & (at > place))
        least = min(where(behind, key, largest), 1, keepdims=True)
        found = min(where(behind & (key == least), at, n), 1, keepdims=True)
        here = column == convert(turn, "i32")
        return [least, found, where(here, least, made), where(here, found, places)]

    *_, made, places = for_(0, keep, 1, [full(rows, -1 << int(key.dtype[1:]) - 1, key.dtype), full(rows, -1, "i32"),
                                   zeros((rows[0], keep), key.dtype), zeros((rows[0], keep), "i32")], body)
    return made, places


def _rows(x: Value) -> Value:
    return x.reshape((-(-product(x.shape) // x.shape[-1]), x.shape[-1]))


def _key(x: Value) -> Value:
    """Signed integers of the order of x."""
    if not is_float(x.dtype):
        whole = convert(x, "i32") if x.dtype in ("i1", "i8", "i16", "ui8", "ui16") else x
        if x.dtype in ("ui32", "ui64"):
            return bitcast(whole ^ (1 << int(x.dtype[2:]) - 1), x.dtype[1:])
        return whole
    wide = convert(x, "f32") if x.dtype not in ("f32", "f64") else x
    bits = 64 if wide.dtype == "f64" else 32
    raw = bitcast(where(wide == wide, wide, float("nan")), f"i{bits}")
    return raw ^ ((raw >> bits - 1) & ((1 << bits - 1) - 1))


def _unkey(key: Value, dtype: str) -> Value:
    if not is_float(dtype):
        return bitcast(key, dtype) ^ (1 << int(dtype[2:]) - 1) if dtype in ("ui32", "ui64") else convert(key, dtype)
    bits = int(key.dtype[1:])
    raw = key ^ ((key >> bits - 1) & ((1 << bits - 1) - 1))
    return convert(bitcast(raw, f"f{bits}"), dtype)
