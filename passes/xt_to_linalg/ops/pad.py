"""Padding: a generic that clamps the coordinate, reads, and selects the padding outside.

A pad marked ``xcc.stored`` that is only a result of its kernel is a ``tensor.pad``: its input's tiles are stored at an
offset, and zeros around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Operation, Value, arith_d, ir, tensor_d
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.registry import Op, converts
from xcc.passes.xt_to_linalg.build.types import constant
from xcc.passes.xt_to_linalg.build.view import View, expand_dims
from xcc.symbolic import Dim

ROUNDS = 4
"""Up to here steps without a division take less time."""


def pad_view(b: Builder, x: View, low: Sequence[Dim], high: Sequence[Dim], interior: Sequence[int],
             value: float | int | View, dims: Sequence[Dim] | None = None) -> View:
    """`x` with `low` and `high` elements of `value` around each dim (negative: cropped) and `interior` between."""
    if not any(low) and not any(high) and not any(interior):
        return x
    dims = dims or [_padded(*args) for args in zip(x.dims, low, high, interior, strict=True)]
    lows = [b.dim(d) if d != 0 else None for d in low]
    fill, number = (value, 0) if isinstance(value, View) else (None, value)
    empty = any(d == 0 for d in x.dims)

    def body(scalars: list[Any], index: list[Value]) -> Value:
        outside = scalars[0] if fill is not None else constant(x.dtype, number)
        if empty:
            return outside
        inside, coords = None, []
        for i, at in enumerate(index):
            if lows[i] is None and high[i] == 0 and interior[i] == 0:
                coords.append(at)
                continue
            if lows[i] is not None:
                at = arith_d.subi(at, lows[i])
            checks = []
            if interior[i]:
                step = b.dim(interior[i] + 1)
                on_grid = arith_d.cmpi(arith_d.CmpIPredicate.eq, arith_d.remsi(at, step), b.dim(0))
                at = arith_d.floordivsi(at, step)
                checks.append(on_grid)
            checks.append(b.in_range(at, x.dims[i]))
            for check in checks:
                inside = check if inside is None else arith_d.andi(inside, check)
            coords.append(b.clamp(at, x.dims[i]))
        return arith_d.select(inside, b.extract(x, coords), outside)

    return b.indexed(dims, x.dtype, [fill] if fill is not None else [], body)


def _padded(d: Dim, low: Dim, high: Dim, interior: int) -> Dim:
    spread = d if interior == 0 else (d - 1) * (interior + 1) + 1
    return spread + low + high


@converts("pad")
def convert_pad(b: Builder, op: Op) -> View:
    x, low, high, interior = op.operands[0], op.dims_attr("low"), op.dims_attr("high"), op.attr("interior")
    mode = op.attr("mode")
    interior = interior or (0,) * len(x.dims)
    if mode == "constant":
        value: Any = op.operands[1] if len(op.operands) > 1 else op.attr("value", 0)
        if "xcc.stored" in op.operation.attributes and _only_returned(op.operation):
            return _stored_pad(b, x, _static(low), _static(high), value, op.dims)
        return pad_view(b, x, low, high, interior, value, op.dims)
    lows = [b.dim(d) for d in low]

    def body(_: list[Any], index: list[Value]) -> Value:
        coords = [at if low[i] == 0 and high[i] == 0 else
                  _outside(b, mode, arith_d.subi(at, lows[i]), x.dims[i], symbolic.dim_max(low[i], high[i]))
                  for i, at in enumerate(index)]
        return b.extract(x, coords)

    return b.indexed(op.dims, x.dtype, [], body)


def _outside(b: Builder, mode: str, at: Value, extent: Dim, most: Dim) -> Value:
    """A coordinate at most `most` outside [0, extent) brought inside: clamped, wrapped, or mirrored without repeating
    the edge.

    Where it is known how often it is around at most, which is at most `most` times, no division finds it: vectors have
    none.
    """
    if mode == "edge":
        return b.clamp(at, extent)
    rounds = _rounds(mode, most, extent)
    period = b.dim(symbolic.dim_max(2 * (extent - 1), 1) if mode == "reflect" else extent)
    if rounds is None:
        at, rounds = _from_end(b, arith_d.remsi(at, period), period), 0
        if mode == "reflect":
            at = arith_d.minsi(at, arith_d.subi(period, at))
    for _ in range(rounds):
        if mode == "reflect":
            at = arith_d.maxsi(at, arith_d.subi(b.dim(0), at))
            at = arith_d.minsi(at, arith_d.subi(period, at))
        else:
            beyond = arith_d.cmpi(arith_d.CmpIPredicate.sge, at, period)
            at = arith_d.select(beyond, arith_d.subi(at, period), _from_end(b, at, period))
    return b.clamp(at, extent)


def _rounds(mode: str, most: Dim, extent: Dim) -> int | None:
    """How often a coordinate at most `most` outside is mirrored at both ends, or moved by the extent, until it is
    inside: each time it is nearer by the extent (less one where mirrored, and one element is the edge itself). None
    where these are many or nobody knows."""
    if not isinstance(most, int):
        return None
    size = max(extent - (mode == "reflect"), 1) if isinstance(extent, int) else 1
    rounds = -(-most // size)
    return rounds if rounds <= ROUNDS else None


def _from_end(b: Builder, at: Value, period: Value) -> Value:
    """`at`, or one period on where that is negative."""
    negative = arith_d.cmpi(arith_d.CmpIPredicate.slt, at, b.dim(0))
    return arith_d.select(negative, arith_d.addi(at, period), at)


def _only_returned(operation: Operation) -> bool:
    return all(use.owner.operation.name == "func.return" for use in operation.results[0].uses)


def _static(side: Sequence[Dim]) -> list[int]:
    return [d for d in side if isinstance(d, int)]


def _stored_pad(b: Builder, x: View, low: Sequence[int], high: Sequence[int], value: float | int,
                dims: Sequence[Dim]) -> View:
    """`x` made in this kernel, with a border of `value`; dims that are not padded stay split as they are."""
    if any(p > 1 and (lo, hi) != (0, 0) for p, lo, hi in zip(x.splits, low, high, strict=True)):
        x = x.plain()
    x = b.computed(x)
    if x.source_dims != expand_dims(x.dims, x.splits):      # unit dims at other places
        x = b.pointwise(x.dims, x.dtype, [x], lambda s: s[0])
    assert x.source is not None
    splits = x.splits
    shape = expand_dims(dims, splits)
    at = [n for n, p in enumerate(splits) for _ in range(1 if p == 1 else 2)]
    lows, highs = ([side[n] if splits[n] == 1 else 0 for n in at] for side in (low, high))
    element = ir.RankedTensorType(x.source.type).element_type
    sizes = [d if isinstance(d, int) else ir.ShapedType.get_dynamic_size() for d in shape]
    pad = tensor_d.PadOp(ir.RankedTensorType.get(sizes, element), x.source, [], [], lows, highs)
    index = ir.IndexType.get()
    block = pad.operation.regions[0].blocks.append(*[index] * len(shape))
    with ir.InsertionPoint(block):
        tensor_d.YieldOp(constant(x.dtype, value))
    return View.of_split(pad.result, dims, x.dtype, splits)
