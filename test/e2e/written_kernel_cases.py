"""Inputs of the acceptance kernels, odd sizes and strided views among them, and what they give in numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import written_kernels as kernels

import xcc
from xcc.dialects.xt.random import philox, unit
from xcc.runtime.dtypes import numpy_dtype

TYPES = ("f32", "f16", "bf16")
TOLERANCE = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2}


@dataclass
class Case:
    """A launch: `outputs` are the arguments that it writes, by name; `expected` has their numbers."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    expected: dict[str, Any]
    outputs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outputs = list(self.expected)

    def check(self, tolerance: float) -> None:
        """AssertionError where an output is wrong, in proportion to its largest element."""
        for name, expected in self.expected.items():
            got = np.asarray(self.arguments[name], np.float64)
            wrong = np.abs(got - expected).max() / max(1e-30, np.abs(expected).max())
            assert np.isfinite(got).all() and wrong <= tolerance, f"{name} is wrong by {wrong:.2g}"


def array(shape: tuple[int, ...], dtype: str, strided: bool, seed: int = 0, low: float = -1.0) -> Any:
    """Random numbers; `strided`: every other column of every other row."""
    wide = np.random.default_rng(seed + sum(shape)).uniform(low, 1.0, [2 * n for n in shape])
    every = wide.astype(numpy_dtype(dtype))[tuple(slice(None, None, 2) for _ in shape)]
    return every if strided else np.ascontiguousarray(every)


def empty(like: Any, strided: bool = False) -> Any:
    """Memory for an output, not a number each."""
    wide = np.full((*like.shape[:-1], 2 * like.shape[-1]), np.nan, like.dtype)
    return wide[..., ::2] if strided else np.ascontiguousarray(wide[..., ::2])


def f64(x: Any) -> Any:
    return x.astype(np.float64)


def add(dtype: str, strided: bool) -> Case:
    x, y = (array((1000,), dtype, strided, seed) for seed in (1, 2))
    return Case(kernels.add, (4,), {"x": x, "y": y, "z": empty(x, strided), "BLOCK": 256}, {"z": f64(x) + f64(y)})


def softmax(dtype: str, strided: bool, columns: int = 77) -> Case:
    x = array((37, columns), dtype, strided)
    e = np.exp(f64(x) - f64(x).max(1, keepdims=True))
    return Case(kernels.softmax, (37,), {"x": x, "y": empty(x, strided), "BLOCK": 128},
                {"y": e / e.sum(1, keepdims=True)})


def product(dtype: str, strided: bool, depth: int = 45, columns: int = 83, tile: tuple[int, int, int] = (32, 32, 16)) \
        -> Case:
    a, b = array((70, depth), dtype, strided), array((depth, columns), dtype, strided)
    c = f64(a) @ f64(b)
    m, n, k = tile
    return Case(kernels.product, (xcc.cdiv(70, m) * xcc.cdiv(columns, n),),
                {"a": a, "b": b, "c": empty(c.astype(a.dtype), strided), "slope": 0.01, "M": m, "N": n, "K": k,
                 "GROUP": 2},
                {"c": np.where(c > 0, c, 0.01 * c)})


def layer_norm(dtype: str, strided: bool) -> Case:
    x, w, b = array((9, 333), dtype, strided), array((333,), dtype, strided, 1), array((333,), dtype, strided, 2)
    y = (f64(x) - f64(x).mean(1, keepdims=True)) / np.sqrt(f64(x).var(1, keepdims=True) + 1e-5)
    return Case(kernels.layer_norm, (9,), {"x": x, "w": w, "b": b, "y": empty(x, strided), "eps": 1e-5, "BLOCK": 512},
                {"y": y * f64(w) + f64(b)})


def dropout(dtype: str, strided: bool) -> Case:
    x = array((1500,), dtype, strided)
    keep = unit(philox(1500, 1234)[0]) >= np.float32(0.25)
    return Case(kernels.dropout, (3,), {"x": x, "y": empty(x, strided), "seed": 1234, "p": 0.25, "BLOCK": 512},
                {"y": np.where(keep, f64(x) / 0.75, 0)})


def attention(dtype: str, strided: bool, keys: int = 50, width: int = 16, block: int = 16) -> Case:
    q, k, v = (array((2, keys, width), dtype, strided, seed) for seed in (1, 2, 3))
    s = f64(q) @ f64(k).transpose(0, 2, 1) * 0.25
    s = np.where(np.tri(keys, dtype=bool), s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return Case(kernels.attention, (xcc.cdiv(keys, block), 2),
                {"q": q, "k": k, "v": v, "out": empty(q, strided), "scale": 0.25, "CAUSAL": True, "M": block,
                 "N": block, "D": width},
                {"out": e / e.sum(-1, keepdims=True) @ f64(v)})


def histogram(dtype: str, strided: bool) -> Case:
    x = array((3000,), dtype, strided)
    place = np.floor((x.astype(np.float32) + np.float32(0.5)) * np.float32(10)).astype(int)
    counts = np.bincount(place[(place >= 0) & (place < 10)], minlength=10)
    return Case(kernels.histogram, (3,),
                {"x": x, "counts": np.zeros(10, np.int32), "low": -0.5, "high": 0.5, "BLOCK": 1024}, {"counts": counts})


def prefix_sum(dtype: str, strided: bool) -> Case:
    x = array((7, 150), dtype, strided, low=0.0)
    return Case(kernels.prefix_sum, (7,), {"x": x, "y": empty(x, strided), "BLOCK": 64}, {"y": f64(x).cumsum(1)})


def wide_softmax(dtype: str, strided: bool) -> Case:
    return softmax(dtype, strided, 88)


def wide_product(dtype: str, strided: bool) -> Case:
    """In f16 and bf16 by warpgroups, where the chip has them."""
    return product(dtype, strided, 72, 88, (64, 64, 64))


def wide_attention(dtype: str, strided: bool) -> Case:
    """Both products by warpgroups, likewise: the weights are in registers."""
    return attention(dtype, strided, 147, 64, 64)


CASES: tuple[Callable[[str, bool], Case], ...] = (add, softmax, product, layer_norm, dropout, attention, histogram,
                                                  prefix_sum)
WIDE: tuple[Callable[[str, bool], Case], ...] = (add, wide_softmax, wide_product, wide_attention)
"""Rows of multiples of 16 bytes, the last tile of a row not full."""
