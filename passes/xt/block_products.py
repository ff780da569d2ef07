"""Multiplies bytes where a product with weights of few bits, which have a scale a block, may round its left side.

Before::

    %w = xt.dequantize(%q, %s, %z) {axis = 1, block = 32}                   of ui4[N, K], f32[N, B]
    %y = xt.dot_general(%x, %w) {precision = "i8"}                          of f32[.., K]

After::

    %m = max |%x| of each block / 127 : f32[B, .., 1];  %r = round(%x / %m) : i8[B, .., 32]
    %t = xt.dot_general(%r, %q) {lhs_batch = [0], rhs_batch = [0]}          of i8[B, .., 32] and ui8[B, N, 32], in i32
    %y = sum along B of (%t - %z * (sums of %r)) * %m * %s

so that dot product instructions make the sums of each block, and the scales multiply these. Only where the chip has
such instructions of bytes: others multiply decoded weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.matmul import BY_BLOCK
from xcc.dialects.xt.op import attrs_of, grouped_operands
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dot_instructions import DotProduct, dot_products_of
from xcc.passes.xt.graph.match import NoMatch, apply, dims_of, dtype_of, no_match
from xcc.passes.xt.graph.rewrite import erase_dead, name_of, producer, walk_ops
from xcc.passes.xt.products.panels import static_shape
from xcc.passes.xt.quant.quantised import is_constant, number_of, shift, with_sign
from xcc.symbolic import product
from xcc.weights import WeightStore

LARGEST = 127       # of the numbers that a block is rounded to


@dataclass(frozen=True)
class _Blocks:
    """Weights [n, blocks * size] of integers, and what a block of each row has: a scale, a zero point or None."""

    values: Value
    scale: Value
    zero: Value | None
    n: int
    blocks: int
    size: int

    def by_block(self, x: Value) -> Value:
        """[n, blocks], in f32, as [blocks, 1, n]."""
        return xt.reshape(xt.convert(xt.transpose(x, perm=(1, 0)), dtype="f32"), shape=(self.blocks, 1, self.n))


@register_pass
class BlockProducts(Pass):
    """Multiplies bytes, a block at a time, in products of precision "i8" with weights that have scales of blocks."""

    def run(self, module: Module, ctx: PassContext) -> None:
        say = ctx.verbose if getattr(ctx.options, "debug_patterns", False) else None
        dots = [d for d in dot_products_of(ctx.chip) if d.element == "i8"]
        for op in walk_ops(module) if dots else ():
            if name_of(op) == "dot_general" and attrs_of(op).precision == BY_BLOCK:
                apply(op, [lambda op: _product(op, dots, ctx.weights)], say)
        erase_dead(module)


def _product(op: Operation, dots: list[DotProduct], weights: WeightStore | None) -> Value | NoMatch:
    """The product by blocks."""
    a, x = attrs_of(op), op.operands[0]
    last, k = len(dims_of(x)) - 1, dims_of(x)[-1:]
    w = _weights(op.operands[1])
    if isinstance(w, str):
        return no_match(op, w)
    if tuple(a.lhs_contract) != (last,) or a.rhs_contract != (1,) or a.rhs_batch or k != dims_of(op.operands[1])[1:]:
        return no_match(op, "it does not sum along the blocks")
    if w.size % max(d.group for d in dots):
        return no_match(op, f"blocks of {w.size} are no groups")
    kept, moved = _sign(dtype_of(w.values), dots)
    numbers, steps = _rounded(x, w)
    right = with_sign(w.values, kept) if moved else xt.convert(w.values, dtype=kept)
    right = xt.transpose(xt.reshape(right, shape=(w.n, w.blocks, w.size)), perm=(1, 0, 2))
    total = xt.dot_general(numbers, right, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,),
                           dtype="i32")
    sums = xt.reduce(xt.convert(numbers, dtype="i32"), kind="sum", axes=(2,), keepdims=True)
    point = number_of(w.zero, weights)
    if point is None and w.zero is not None:
        zero = xt.add(w.by_block(w.zero), xt.constant(np.asarray(moved), "f32"))
        total = xt.sub(xt.convert(total, dtype="f32"), xt.mul(xt.convert(sums, dtype="f32"), zero))
    else:
        total = xt.sub(total, xt.mul(sums, xt.constant(np.asarray(int(point or 0) + moved), "i32")))
    scaled = xt.mul(xt.mul(xt.convert(total, dtype="f32"), w.by_block(w.scale)), steps)
    y = xt.reduce(scaled, kind="sum", axes=(0,))
    return xt.convert(xt.reshape(y, shape=(*dims_of(x)[:-1], w.n)), dtype=a.dtype)


def _weights(value: Value) -> _Blocks | str:
    """What `value` is dequantised from, filled up to whole blocks; or why it is no matrix of constants in blocks."""
    op, shape = producer(value, "dequantize"), static_shape(value)
    if op is None or not attrs_of(op).block or shape is None or len(shape) != 2 or attrs_of(op).axis != 1:
        return "the right side has no scales of blocks along its rows"
    values, scale, zero = grouped_operands(op)
    if not all(v is None or is_constant(v) for v in (values, scale, zero)):
        return "the right side is not constant"
    if xt.is_float(dtype_of(values)) or xt.width(dtype_of(values)) > 8:
        return f"the right side is of {dtype_of(values)}"
    (n, k), size = shape, attrs_of(op).block
    return _Blocks(_longer(values, -k % size), scale, zero, n, -(-k // size), size)


def _sign(dtype: str, dots: list[DotProduct]) -> tuple[str, int]:
    """The type of bytes that the instructions take weights of type `dtype` as, beside i8, and what is added to them."""
    own = "ui8" if dtype.startswith("ui") else "i8"
    kept = next(t for t in (own, "i8", "ui8") if any(d.takes("i8", t) for d in dots))
    return kept, 0 if kept == own or own == "ui8" and xt.width(dtype) < xt.width(kept) else shift(kept)


def _longer(x: Value, extra: int) -> Value:
    rank = len(dims_of(x))
    return xt.pad(x, low=(0,) * rank, high=(*(0,) * (rank - 1), extra)) if extra else x


def _rounded(x: Value, w: _Blocks) -> tuple[Value, Value]:
    """The rows of `x` as i8 [blocks, rows, size], and their steps, f32 [blocks, rows, 1].

    A block of zeros has a step of 0, which makes its products 0 whatever it is rounded to.
    """
    *rows, k = dims_of(x)
    assert isinstance(k, int)
    x = _longer(x, -k % w.size)
    x = xt.convert(xt.reshape(x, shape=(product(rows), w.blocks, w.size)), dtype="f32")
    most = xt.reduce(xt.abs(x), kind="max", axes=(2,), keepdims=True)
    largest = xt.constant(np.asarray(LARGEST), "f32")
    numbers = xt.convert(xt.round(xt.mul(x, xt.div(largest, most))), dtype="i8")
    step = xt.div(most, largest)
    return xt.transpose(numbers, perm=(1, 0, 2)), xt.transpose(step, perm=(1, 0, 2))
