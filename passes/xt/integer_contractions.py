"""Keeps quantised models in integers: contractions of bytes, byte tensors between layers.

Before::

    %y = xt.convolution(xt.dequantize(%x, %sx, %zx), xt.dequantize(%w, %sw)) : f32
    %q = xt.quantize(xt.add(%y, xt.dequantize(%b, %sx * %sw)), %sy, %zy) : ui8

After::

    %t = xt.convolution(%x, %w) : (ui8, i8) -> i32
    %q = xt.requantize(xt.mul(xt.convert(xt.add(%t, %c)), %sx * %sw / %sy)) {zero_point = zy} : ui8

with %c = %b - %zx * (sum of %w), which `xt-fold` computes. Everything is found by dataflow.
8-bit floats, which have no zero points, are multiplied alike where the chip has matrix instructions for f16 at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of, grouped_operands
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.decompose.build import dim_scalar
from xcc.passes.xt.graph.match import NoMatch, Pattern, apply, array_of, dims_of, dtype_of, no_match, through
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import at, erase_dead, name_of, producer, walk_ops
from xcc.passes.xt.products.product_sides import MANY_ROWS
from xcc.passes.xt.quant.quantised import (
    MOVES,
    Quantised,
    Signs,
    divided,
    flat,
    is_constant,
    is_per_tensor,
    number_of,
    quantised,
    shift,
    with_sign,
)
from xcc.passes.xt.quant.quantised_moves import QuantisedMoves
from xcc.symbolic import Dim, product
from xcc.weights import WeightStore

GROUP = 4       # bytes whose products a lane of i32 sums


@register_pass
class IntegerContractions(Pass):
    """Turns contractions of dequantised bytes, or of bytes less a zero point in i32, into contractions of the bytes.

    activations: the sign that left operands get, "ui8" or "i8"; "" takes what the chip multiplies with signed weights,
        or leaves them as they are where it has no such instruction, or one for all signs. The zero point moves along.

    Right sides become signed, except on chips whose matrix instructions take all signs. Other instructions want a right
    side packed: one that is no weight is multiplied in bytes where enough rows pay for that.
    """

    activations: str = ""

    def run(self, module: Module, ctx: PassContext) -> None:
        say = ctx.verbose if getattr(ctx.options, "debug_patterns", False) else None
        chip = Signs.of(ctx.chip)
        rules, sign = _Rules(ctx.weights, chip), self.activations or chip.left
        stages: list[dict[str, Pattern]] = [
            {**dict.fromkeys((*MOVES, "reduce_window"), rules.move), "quantize": rules.repeated},
            {"quantize": lambda op: rules.with_sign(op, sign)} if sign else {},
            {"convolution": lambda op: rules.convolution(op, sign),
             "dot_general": lambda op: rules.product(op, sign)},
            {"quantize": rules.requantise},
        ]
        for stage in stages:
            for op in walk_ops(module):
                pattern = stage.get(name_of(op))
                if pattern is not None:
                    apply(op, [pattern], say)
            erase_dead(module)


class _Rules(QuantisedMoves):
    def __init__(self, weights: WeightStore | None, chip: Signs) -> None:
        super().__init__(weights)
        self.chip = chip

    # contractions ----------------------------------------------------------------------------------------------------
    def convolution(self, op: Operation, sign: str) -> Value | NoMatch:
        """The sums of a convolution of bytes, corrected by the zero point and scaled."""
        a = attrs_of(op)
        if a.layout != "NCHW" or a.filter != "OIHW":
            return no_match(op, "the layout is not the models' own")
        sides = self._sides(op, sign, channel=0)
        if isinstance(sides, NoMatch):
            return sides
        x, w, left = sides
        if left is not None and not self.chip.both:
            return no_match(op, "the weights have zero points: sums of windows are a convolution more")
        image, rank = x.values, len(dims_of(x.values))
        rest = vars(a) | {"dtype": _sum_type(x)}
        point = number_of(x.zero, self.weights)
        if point != 0 and (any(n != 0 for n in (*a.low, *a.high)) or any(n != 1 for n in a.lhs_dilation)):
            if point is None:
                return no_match(op, "it is padded by a zero point that is not constant")
            image = xt.pad(image, low=(0, 0, *a.low), high=(0, 0, *a.high), value=point,
                           interior=(0, 0, *(n - 1 for n in a.lhs_dilation)))
            rest |= dict.fromkeys(("low", "high"), (0,) * (rank - 2)) | {"lhs_dilation": (1,) * (rank - 2)}
        total = xt.convolution(image, w.values, **rest)
        axes = tuple(range(1, rank))
        if left is not None:
            window = dims_of(w.values)[1:]
            ones = xt.constant(np.ones((a.groups, *window)), dtype_of(w.values))
            sums = self._less_zeros(xt.convolution(image, ones, **rest), x, product(window))
            if a.groups > 1:
                n, outputs, *space = dims_of(total)
                sums = xt.broadcast(xt.reshape(sums, shape=(n, a.groups, 1, *space)),
                                    shape=(n, a.groups, outputs // a.groups, *space))
                sums = xt.reshape(sums, shape=dims_of(total))
            each = (*dims_of(left), *[1] * (rank - 2)) if dims_of(left) else ()
            total = xt.sub(total, xt.mul(sums, xt.reshape(left, shape=each)))
        return self._finished(op, total, x, w, axes, (dims_of(w.values)[0], *[1] * (rank - 2)))

    def product(self, op: Operation, sign: str) -> Value | NoMatch:
        """As `convolution`, of matrices; right sides with zero points need the sums of the rows too."""
        a, right = attrs_of(op), dims_of(op.operands[1])
        batch = len(a.rhs_batch)
        computed = self.chip.both or self._pays_for_packing(op)
        if len(a.rhs_contract) != 1 or len(right) != batch + 2 or batch and not computed \
                or any(tuple(d) != tuple(range(batch)) for d in (a.lhs_batch, a.rhs_batch)):
            return no_match(op, "the right side is no matrix, or one of several in an unusual order")
        channel = 2 * batch + 1 - a.rhs_contract[0]
        sides = self._sides(op, sign, channel, computed)
        if isinstance(sides, NoMatch):
            return sides
        x, w, left = sides
        depth = right[a.rhs_contract[0]]
        operands = [x.values, w.values]
        if not self.chip.both and not is_constant(w.values):
            operands = _whole_groups(operands, (a.lhs_contract, a.rhs_contract))
        total = xt.dot_general(*operands, **(vars(a) | {"dtype": _sum_type(x)}))
        if left is not None:
            rows = xt.reduce(xt.convert(x.values, dtype="i32"), kind="sum", axes=a.lhs_contract)
            rows = self._less_zeros(rows, x, depth)
            total = xt.sub(total, xt.mul(xt.reshape(rows, shape=(*dims_of(rows), 1)), left))
        sums = (*right[:batch], *(1,) * (len(dims_of(total)) - batch - 1), right[channel]) if batch else None
        return self._finished(op, total, x, w, a.rhs_contract, (right[channel],), sums)

    def _less_zeros(self, sums: Value, x: Quantised, terms: Dim) -> Value:
        """Sums of `terms` bytes of x less as many zero points."""
        if x.zero is None:
            return sums
        return xt.sub(sums, xt.mul(dim_scalar(terms, "i32"), xt.convert(flat(x.zero), dtype="i32")))

    def _pays_for_packing(self, op: Operation) -> bool:
        """Whether a computed right side may be brought into groups for dot product instructions: it is multiplied by
        enough rows."""
        a, left = attrs_of(op), dims_of(op.operands[0])
        last = len(left) - 1
        rows = nominal_count(tuple(d for n, d in enumerate(left) if n not in (*a.lhs_batch, last)), {})
        return self.chip.dots and tuple(a.lhs_contract) == (last,) and rows >= MANY_ROWS

    def _sides(self, op: Operation, sign: str, channel: int,
               computed: bool = False) -> NoMatch | tuple[Quantised, Quantised, Value | None]:
        """The operands in the chip's signs, and the zero point left to the right one (i32, one number or a vector, None
        for 0); or why they do not serve. computed: the right one need not be a weight."""
        x, w = (quantised(v) for v in op.operands)
        if x is None or w is None or (x.scale is None) != (w.scale is None):
            return no_match(op, "its operands are no bytes with scales")
        if not is_per_tensor(x):
            return no_match(op, "the left side has a scale for each channel")
        if not is_per_tensor(w) and (w.axis != channel or len(dims_of(w.values)) > 2 and name_of(op) == "dot_general"):
            return no_match(op, "the weights have scales along another dim than the result's channels")
        if any(xt.is_float(dtype_of(v.values)) for v in (x, w)):
            return self._floats(op, x, w)
        if not is_constant(w.values) and not computed and not self.chip.both:
            return no_match(op, "the right side is not constant")
        point = number_of(w.zero, self.weights)
        kept = self.chip.right or dtype_of(w.values)
        moved = 0 if kept == dtype_of(w.values) else shift(kept)
        left = None
        if point is None:
            each = () if is_per_tensor(Quantised(w.values, w.zero)) else (dims_of(w.values)[channel],)
            zero = xt.convert(xt.reshape(w.zero, shape=each), dtype="i32")
            left = xt.add(zero, xt.constant(np.asarray(moved), "i32"))
        elif int(point) + moved:
            left = xt.constant(np.asarray(int(point) + moved), "i32")
        w = Quantised(with_sign(w.values, kept), None, w.scale, w.axis)
        if sign and dtype_of(x.values) != sign:
            zero = x.zero if x.zero is not None else xt.constant(np.zeros(()), "i32")
            there = xt.add(xt.convert(flat(zero), dtype="i32"), xt.constant(np.asarray(shift(sign)), "i32"))
            x = Quantised(with_sign(x.values, sign), there, x.scale)
        return x, w, left

    def _floats(self, op: Operation, x: Quantised, w: Quantised) -> Any:
        """As `_sides`, of 8-bit floats: sums of exact products in f32."""
        if not self.chip.floats or not all(xt.is_float(dtype_of(v.values)) for v in (x, w)):
            return no_match(op, "the chip has no instruction for these bytes")
        if any(number_of(v.zero, self.weights) != 0 for v in (x, w)):
            return no_match(op, "8-bit floats have zero points")
        return Quantised(x.values, None, x.scale), Quantised(w.values, None, w.scale, w.axis), None

    def _finished(self, op: Operation, total: Value, x: Quantised, w: Quantised, axes: tuple[int, ...],
                  shape: Sequence[Dim],
                  sums_shape: Sequence[Dim] | None = None) -> Value:
        """total - zero * (sums of w), with an integer bias behind the op, times the scales.

        shape: of a vector of the channels, as it broadcasts to the result; `sums_shape`: of sums of w, where another.
        """
        terms = []
        if number_of(x.zero, self.weights) != 0:
            sums = xt.reduce(xt.convert(w.values, dtype="i32"), kind="sum", axes=axes)
            term = xt.neg(xt.mul(sums, xt.convert(flat(x.zero), dtype="i32")))
            terms.append(xt.reshape(term, shape=sums_shape or shape))
        if x.scale is None:
            return xt.add(total, *terms) if terms else total
        scale = xt.mul(flat(x.scale), flat(w.scale) if is_per_tensor(w) else xt.reshape(w.scale, shape=shape))
        if _sum_type(x) == "f32":
            return xt.mul(total, scale)
        adder, bias = self._integer_bias(op.results[0], scale)
        with at(op if adder is None else adder):
            terms += [] if bias is None else [xt.reshape(bias, shape=shape)]
            if terms:
                total = xt.add(total, xt.add(*terms) if len(terms) == 2 else terms[0])
            y = xt.mul(xt.convert(total, dtype="f32"), scale)
        if adder is not None:
            adder.results[0].replace_all_uses_with(y)
        return y

    def _integer_bias(self, result: Value, scale: Value) -> tuple[Operation | None, Value | None]:
        """The one op that adds a bias to `result`, and the bias, where that is dequantised with `scale` from i32."""
        users = [use.owner.operation for use in result.uses]
        if len(users) != 1 or name_of(users[0]) != "add":
            return None, None
        other = next((v for v in users[0].operands if v != result), None)
        made = None if other is None else producer(through(other, "reshape", "broadcast"), "dequantize")
        if made is None or dims_of(users[0].results[0]) != dims_of(result):
            return None, None
        values, mine, zero = grouped_operands(made)
        have, want = (array_of(v, self.weights) for v in (mine, scale))
        known = dtype_of(values) == "i32" and number_of(zero, self.weights) == 0 and is_constant(values)
        if not known or have is None or want is None or have.size != 1 and want.size not in (1, have.size) \
                or not np.allclose(have.reshape(-1), want.reshape(-1), rtol=1e-5, atol=0):
            return None, None
        return users[0], values

    # results ---------------------------------------------------------------------------------------------------------
    def requantise(self, op: Operation) -> Value | None | NoMatch:
        """A quantize of integers times factors: one factor, rounded."""
        x, scale, zero = grouped_operands(op)
        a, point = attrs_of(op), number_of(zero, self.weights)
        if a.dtype not in ("i8", "ui8") or point is None or dims_of(scale) != () or dtype_of(x) != "f32":
            return None
        step = array_of(scale, self.weights)
        if step is None or not step > 0:
            return no_match(op, "the scale is no positive constant")
        parts = divided(x, scale if dtype_of(scale) == "f32" else xt.convert(scale, dtype="f32"))
        if parts is None:
            return no_match(op, "it quantises more than integers times factors")
        return xt.requantize(parts, zero_point=int(point), dtype=a.dtype)


def _whole_groups(operands: list[Value], contracts: Sequence[Sequence[int]]) -> list[Value]:
    """Operands of a product with zeros behind their sums' terms, which are whole groups then, where one knows them."""
    places = [contract[0] for contract in contracts]
    terms = next((n for v, d in zip(operands, places, strict=True) if isinstance(n := dims_of(v)[d], int)), 0)
    if not terms % GROUP:
        return operands
    ranks = [len(dims_of(v)) for v in operands]
    return [xt.pad(v, low=[0] * rank, high=[-terms % GROUP * (d == n) for n in range(rank)], value=0)
            for v, d, rank in zip(operands, places, ranks, strict=True)]


def _sum_type(x: Quantised) -> str:
    return "f32" if xt.is_float(dtype_of(x.values)) else "i32"
