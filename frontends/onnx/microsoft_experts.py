"""Mixtures of experts of com.microsoft.

Each token goes to k experts. Its rows are sorted into blocks of one expert each, filled up with other rows, so that a
product reads a matrix once for a block: a product of a batch whose matrices are picked by index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dim_functions import dim_min
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.microsoft import MS
from xcc.frontends.onnx.quant import unpacked
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, rank_of, relu, scalar, unsqueeze
from xcc.symbolic import Dim

ROWS = 4        # of a block: as many as multiply a matrix while it is read
ACTIVATIONS: dict[str, Callable[[Value], Value]] = {
    "relu": relu, "silu": lambda x: xt.mul(x, xt.sigmoid(x)), "gelu": lambda x: xt.gelu(x, approximate="tanh"),
    "relu2": lambda x: xt.mul(relu(x), relu(x)), "identity": lambda x: x}

Matrices = Callable[[int, Value], Value]
"""Those of operand i for the experts of some blocks: [blocks, k, n]."""


@onnx_op("MoE", domain=MS)
def mixture_of_experts(cx: Context) -> Value:
    """output = sum over a token's k experts of weight * (fc2 * activation(fc1 * input))."""
    return _Mixture(cx, cx[1], lambda i, expert: _picked(cx[i], expert), (2, 4, 6), 1).output()


@onnx_op("QMoE", domain=MS)
def quantised_mixture_of_experts(cx: Context) -> Value:
    """As MoE, with quantised matrices, whose scales are by row or by block of one."""
    if cx.attr("quant_type", "int") != "int":
        cx.fail(f"quant_type '{cx.attr('quant_type')}' is not supported; 'int' is")
    if cx.attr("weights_prepacked", 0) > 0:
        cx.fail("weights in the order of a device (weights_prepacked) are not supported")
    router = cx[14] if cx.has(14) else None
    return _Mixture(cx, cx[1], lambda i, expert: _dequantised(cx, i, expert), (2, 5, 8), 2, router).output()


def _dequantised(cx: Context, i: int, expert: Value) -> Value:
    """The matrices in operand i, with scales in i + 1, of the experts of some blocks."""
    number = (2, 5, 8).index(i)
    bits = int(cx.attr(f"fc{number + 1}_expert_weight_bits", 0) or cx.attr("expert_weight_bits", 4))
    if bits not in (2, 4, 8):
        cx.fail(f"{bits} bits are not supported; 2, 4 and 8 are")
    kind, depth = f"ui{bits}", cx.shape(i)[2] * (8 // bits)
    scale = cx[i + 1] if cx.rank(i + 1) == 3 else unsqueeze(cx[i + 1], [2])
    _, rows, blocks = xt.shape_of(scale)
    if not cx.has(11 + number):
        zero = xt.constant(np.full(cx.shape(i + 1)[:2] + (blocks,), 1 << (bits - 1)), kind)
    else:
        zero = cx[11 + number]
        zero = unpacked(zero, blocks, kind) if rank_of(zero) == 3 else unsqueeze(unpacked(zero, rows, kind), [2])
    size = cx.attr("block_size", 0) if cx.rank(i + 1) == 3 else depth
    whole = xt.dequantize(unpacked(cx[i], depth, kind), scale, zero, axis=2, block=size)
    return _picked(convert(whole, element(cx[0])), expert)


def _picked(x: Value, expert: Value) -> Value:
    """The matrices [n, k] of some experts as [k, n]: what does not change is turned once."""
    return xt.gather(xt.transpose(x, perm=(0, 2, 1)), expert, axis=0)


@dataclass
class _Mixture:
    """matrices: of the operands `fc`, whose biases are `bias` operands behind. router: what mixes the results where it
    is not what chooses the experts."""

    cx: Context
    scores: Value
    matrices: Matrices
    fc: tuple[int, int, int]
    bias: int
    router: Value | None = None

    def output(self) -> Value:
        cx, x = self.cx, self.cx[0]
        if cx.attr("use_sparse_mixer", 0) or cx.attr("swiglu_limit_after_activation", 0):
            cx.fail("use_sparse_mixer and swiglu_limit_after_activation are not supported")
        width, experts = cx.shape(0)[-1], cx.shape(1)[-1]
        tokens, k = symbolic.product(cx.shape(0)[:-1]), int(cx.attr("k", 1))
        weights, chosen = self._routed(k)
        blocks = _Blocks.of(xt.reshape(chosen, shape=(tokens * k,)), k, tokens, experts)
        rows = xt.gather(xt.reshape(x, shape=(tokens, width)), blocks.token, axis=0)
        out = self._expert(xt.reshape(rows, shape=(blocks.count, blocks.rows, width)), blocks.expert)
        width = xt.shape_of(out)[-1]
        own = xt.gather(xt.reshape(out, shape=(blocks.count * blocks.rows, width)), blocks.place, axis=0)
        mixed = xt.mul(xt.reshape(own, shape=(tokens, k, width)), unsqueeze(convert(weights, element(own)), [2]))
        return xt.reshape(xt.reduce(mixed, kind="sum", axes=(1,)), shape=(*cx.shape(0)[:-1], width))

    def _routed(self, k: int) -> tuple[Value, Value]:
        """The weights of each token's k experts, and these: f32 and i64 [tokens, k]."""
        scores = convert(self.scores, "f32")
        weights, chosen = xt.top_k(xt.softmax(scores, axis=1), k=k, axis=1)
        if self.router is not None:
            weights = xt.gather_elements(convert(self.router, "f32"), chosen, axis=1)
        if self.cx.attr("normalize_routing_weights", 0):
            weights = xt.div(weights, xt.reduce(weights, kind="sum", axes=(1,), keepdims=True))
        return weights, chosen

    def _expert(self, x: Value, expert: Value) -> Value:
        """What the blocks' experts make of rows [blocks, rows, width]."""
        gate = self._linear(0, x, expert)
        kind = self.cx.attr("activation_type", "relu")
        up = self._linear(2, x, expert) if self.cx.has(self.fc[2]) else None
        if kind == "swiglu":
            inner = self._swiglu(gate, up)
        elif kind in ACTIVATIONS:
            inner = ACTIVATIONS[kind](gate)
            inner = inner if up is None else xt.mul(inner, up)
        else:
            self.cx.fail(f"activation '{kind}' is not supported")
        return self._linear(1, inner, expert)

    def _linear(self, number: int, x: Value, expert: Value) -> Value:
        at = self.fc[number]
        out = xt.dot_general(x, self.matrices(at, expert), lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,),
                             rhs_contract=(1,))
        return xt.add(out, unsqueeze(xt.gather(self.cx[at + self.bias], expert, axis=0), [1])) \
            if self.cx.has(at + self.bias) else out

    def _swiglu(self, gate: Value, up: Value | None) -> Value:
        """gate * sigmoid(alpha * gate) * (up + beta), both limited; they come together where there is no `up`."""
        cx, shape = self.cx, xt.shape_of(gate)
        if up is None:
            half = symbolic.floordiv(shape[2], 2)
            apart, place = ((half, 2), 3) if cx.attr("swiglu_fusion", 0) == 1 else ((2, half), 2)
            both = xt.reshape(gate, shape=(*shape[:2], *apart))
            gate, up = (xt.reshape(_part(both, place, n), shape=(*shape[:2], half)) for n in (0, 1))
        limit = cx.attr("swiglu_limit")
        if limit is not None and np.isfinite(limit):
            gate = xt.minimum(gate, scalar(limit, gate))
            up = xt.minimum(xt.maximum(up, scalar(-limit, up)), scalar(limit, up))
        alpha, beta = cx.attr("activation_alpha", 1.0), cx.attr("activation_beta", 0.0)
        return xt.mul(xt.mul(gate, xt.sigmoid(xt.mul(gate, scalar(alpha, gate)))), xt.add(up, scalar(beta, up)))


def _part(x: Value, axis: int, n: int) -> Value:
    shape = xt.shape_of(x)
    starts = tuple(n if d == axis else 0 for d in range(len(shape)))
    return xt.slice(x, starts=starts, limits=tuple(n + 1 if d == axis else size for d, size in enumerate(shape)))


@dataclass(frozen=True)
class _Blocks:
    """`count` blocks of `rows` rows: the expert of each block, the token of each row, and where each pair of a token
    and one of its experts is (all i64)."""

    count: Dim
    rows: int
    expert: Value
    token: Value
    place: Value

    @staticmethod
    def of(chosen: Value, k: int, tokens: Dim, experts: Dim) -> _Blocks:
        """Of the experts `chosen` for all pairs, k for each token."""
        pairs, rows = tokens * k, 1 if tokens == 1 else ROWS
        count = dim_min(pairs, symbolic.ceildiv(pairs, rows) + experts)
        own = convert(xt.compare(unsqueeze(chosen, [1]), xt.iota(shape=(1, experts), axis=1, dtype="i64"),
                                 direction="eq"), "i64")
        before = xt.cumulative(own, kind="sum", axis=0, exclusive=True)
        size = xt.scalar(rows, "i64")
        total = xt.reduce(own, kind="sum", axes=(0,))
        blocks = xt.div(xt.add(total, xt.scalar(rows - 1, "i64")), size)
        ends = xt.cumulative(blocks, kind="sum", axis=0)
        first = xt.mul(xt.sub(ends, blocks), size)
        place = xt.reduce(xt.mul(own, xt.add(before, unsqueeze(first, [0]))), kind="sum", axes=(1,))
        token = xt.div(xt.iota(shape=(pairs,), axis=0, dtype="i64"), xt.scalar(k, "i64"))
        token = xt.scatter_elements(full((count * rows,), 0, "i64"), place, token, axis=0)
        behind = xt.compare(unsqueeze(ends, [0]), xt.iota(shape=(count, 1), axis=0, dtype="i64"), direction="le")
        expert = xt.reduce(convert(behind, "i64"), kind="sum", axes=(1,))
        last = xt.sub(dim_scalar(experts, "i64"), xt.scalar(1, "i64"))
        return _Blocks(count, rows, xt.minimum(expert, last), token, place)
