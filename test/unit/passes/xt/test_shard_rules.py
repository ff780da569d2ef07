"""Each way in which a rule says that an op can be divided gives the numbers of one rank, for every op family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sharded import check_strategy, strategies

from xcc.dialects import xt

RNG = np.random.default_rng(5)


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def i(*shape: int, high: int = 5) -> Any:
    return RNG.integers(0, high, shape)


def b(*shape: int) -> Any:
    return RNG.integers(0, 2, shape).astype(np.bool_)


N = 24      # divides among 2, 3 and 4 ranks, also in 2 segments
Case = tuple[Callable[..., Any], list[Any], int]
"""How an op is built of arguments, these, and the least number of ways to divide it among 2."""


def attention(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v, *mask: xt.attention(q, k, v, *mask, **options)


CASES: dict[str, Case] = {
    "add": (xt.add, [f(N, 4), f(N, 4)], 3),
    "add, stretched": (xt.add, [f(2, N, 4), f(N, 1)], 4),
    "select": (xt.select, [b(N, 1), f(N, 4), f(4)], 3),
    "compare": (lambda x, y: xt.compare(x, y, direction="lt"), [f(N), f(N)], 2),
    "convert": (lambda x: xt.convert(x, dtype="f64"), [f(N)], 2),
    "mul": (xt.mul, [f(N), f(1)], 2),
    "gelu": (xt.gelu, [f(4, N)], 3),
    "broadcast": (lambda x: xt.broadcast(x, shape=(N, 4, N)), [f(4, 1)], 2),
    "transpose": (lambda x: xt.transpose(x, perm=(2, 0, 1)), [f(N, 4, 6)], 4),
    "reverse": (lambda x: xt.reverse(x, axes=(1,)), [f(N, 4)], 2),
    "reshape, merged": (lambda x: xt.reshape(x, shape=(2, N * 4, 3)), [f(2, N, 4, 3)], 3),
    "reshape, cut": (lambda x: xt.reshape(x, shape=(5, 3, N, 8)), [f(5, 3 * N * 8)], 3),
    "reshape, both": (lambda x: xt.reshape(x, shape=(4 * 6, 8)), [f(4, 6 * 8)], 4),
    "reshape, neither": (lambda x: xt.reshape(x, shape=(9, 8, 4)), [f(12, 6, 4)], 2),
    "slice, whole dims": (lambda x: xt.slice_(x, starts=(0, 1), limits=(N, 3)), [f(N, 4)], 2),
    "slice, segments": (lambda x: xt.slice_(x, starts=(N, 0), limits=(2 * N, 4)), [f(3 * N, 4)], 3),
    "slice, strided": (lambda x: xt.slice_(x, starts=(0, 0), limits=(N, 4), strides=(2, 1)), [f(N, 4)], 2),
    "concatenate": (lambda x, y: xt.concatenate(x, y, axis=0), [f(N, 4), f(2 * N, 4)], 3),
    "pad": (lambda x: xt.pad(x, low=(0, 1), high=(0, 0)), [f(N, 4)], 2),
    "stretch": (lambda x: xt.stretch(x, axis=1, times=3, size=(3 * N,)), [f(4, N)], 3),
    "gather": (lambda x, n: xt.gather(x, n, axis=1), [f(4, 5, N), i(N, 2)], 4),
    "gather, batched": (lambda x, n: xt.gather(x, n, axis=2, batch_dims=1), [f(N, 4, 5), i(N, 6)], 4),
    "gather_nd": (lambda x, n: xt.gather_nd(x, n, batch_dims=1), [f(N, 5, 4), i(N, 8, 1)], 4),
    "gather_elements": (lambda x, n: xt.gather_elements(x, n, axis=1), [f(N, 5), i(N, 4)], 3),
    "scatter_elements": (lambda x, n, u: xt.scatter_elements(x, n, u, axis=0, reduction="add"),
                         [f(5, N), i(4, 1), f(4, N)], 2),
    "scatter_nd": (xt.scatter_nd, [f(5, N), i(3, 1), f(3, N)], 2),
    "dynamic_slice": (lambda x, n, m: xt.dynamic_slice(x, n, m, sizes=(2, N)), [f(5, N), i(), i()], 2),
    "dynamic_update_slice": (xt.dynamic_update_slice, [f(5, N), f(2, N), i(), i()], 2),
    "reduce, sum": (lambda x: xt.reduce(x, kind="sum", axes=(1,)), [f(4, N, 6)], 4),
    "reduce, max": (lambda x: xt.reduce(x, kind="max", axes=(0, 2), keepdims=True), [f(4, N, 6)], 4),
    "reduce, and": (lambda x: xt.reduce(x, kind="and", axes=(1,)), [b(4, N)], 2),
    "arg_reduce": (lambda x: xt.arg_reduce(x, kind="argmax", axis=1), [f(N, 4)], 2),
    "cumulative": (lambda x: xt.cumulative(x, kind="sum", axis=1), [f(N, 4)], 2),
    "softmax": (lambda x: xt.softmax(x, axis=0), [f(4, N)], 2),
    "sort": (lambda x: xt.sort(x, axis=0), [f(4, N)], 2),
    "top_k": (lambda x: xt.top_k(x, k=2, axis=1), [f(N, 4)], 2),
    "layer_norm": (lambda x, s, t: xt.layer_norm(x, s, t, axes=(2,)), [f(4, N, 6), f(6), f(6)], 3),
    "rms_norm": (lambda x, s: xt.rms_norm(x, s, axes=(1,)), [f(N, 6), f(6)], 2),
    "group_norm": (lambda x, s, t: xt.group_norm(x, s, t, groups=12), [f(4, N, 3), f(N), f(N)], 3),
    "group_norm, one group": (lambda x, s, t: xt.group_norm(x, s, t, groups=1), [f(4, N, 3), f(N), f(N)], 2),
    "lrn": (lambda x: xt.lrn(x, size=3), [f(4, 3, N)], 3),
    "reduce_window": (lambda x: xt.reduce_window(x, kind="max", window=(1, 1, 3), strides=(1, 1, 2)), [f(4, N, 9)], 3),
    "resize": (lambda x: xt.resize(x, shape=(4, N, 10), mode="linear"), [f(4, N, 5)], 3),
    "dot_general": (lambda x, y: xt.dot_general(x, y, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,),
                                                rhs_contract=(1,)), [f(4, N, 6), f(4, 6, 8)], 5),
    "convolution": (lambda x, w: xt.convolution(x, w, low=(1,), high=(1,)), [f(4, 6, 5), f(N, 6, 3)], 4),
    "convolution, groups": (lambda x, w: xt.convolution(x, w, groups=12), [f(4, N, 5), f(2 * N, 2, 3)], 3),
    "convolution, NHWC": (lambda x, w: xt.convolution(x, w, layout="NHWC", filter="HWIO"), [f(4, 5, 6), f(3, 6, N)], 4),
    "attention": (attention(), [f(2, 12, 4, 3), f(2, 12, 5, 3), f(2, 12, 5, 4)], 5),
    "attention, grouped": (attention(causal=True), [f(2, 24, 4, 3), f(2, 12, 5, 3), f(2, 12, 5, 4)], 4),
    "attention, masked": (attention(), [f(2, 12, 4, 3), f(2, 4, 5, 3), f(2, 4, 5, 4), f(2, 12, 1, 5)], 5),
    "attention, gradients": (xt.attention_query_gradient, [f(2, 12, 4, 3)] * 4 + [f(2, 12, 4), f(2, 12, 4)], 3),
    "attention, gradients of keys": (xt.attention_key_gradients, [
        f(2, 12, 4, 3), f(2, 12, 4, 3), f(2, 6, 5, 3), f(2, 6, 5, 3), f(2, 12, 4), f(2, 12, 4), b(2, 1, 1, 5)], 2),
    "rotary": (xt.rotary, [f(2, 12, 4, 6), f(4, 3), f(4, 3)], 4),
    "lstm": (lambda x, w, r: xt.lstm(x, w, r)[0], [f(3, N, 4), f(1, 20, 4), f(1, 20, 5)], 2),
    "gru": (lambda x, w, r, h: xt.gru(x, w, r, None, None, h), [f(3, N, 4), f(1, 15, 4), f(1, 15, 5), f(1, N, 5)], 2),
    "quantize": (lambda x, s: xt.quantize(x, s, axis=1, dtype="i8"), [f(4, N), np.abs(f(N))], 3),
    "dequantize": (lambda x, s: xt.dequantize(x, s, axis=0, block=2), [i(N, 4).astype(np.int8), f(N // 2, 4)], 3),
    "grid_sample": (xt.grid_sample, [f(4, N, 5, 5), f(4, 6, 8, 2)], 5),
    "dft": (lambda x: xt.dft(x, axis=1), [f(N, 4, 2)], 2),
}


@pytest.mark.parametrize("ranks", (2, 3, 4))
@pytest.mark.parametrize("name", CASES)
def test_each_way(name: str, ranks: int) -> None:
    build, arrays, least = CASES[name]
    ways = strategies(build, arrays, ranks)
    assert ranks != 2 or sum(s.is_whole or s.factor is not None for s in ways) >= least, ways
    for s in ways:
        check_strategy(build, arrays, ranks, s)
