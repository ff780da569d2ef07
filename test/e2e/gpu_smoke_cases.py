"""The sample tile programs of gpu_kernels/ with fresh inputs, numpy references in float64, and tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

try:
    import ml_dtypes
except ImportError:     # a machine that only runs kernels: without the bf16 case
    ml_dtypes = None

KERNELS = Path(__file__).with_name("gpu_kernels")
F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
BF16 = np.dtype(ml_dtypes.bfloat16) if ml_dtypes else None
TOLERANCE = {F16: 2e-3, F32: 1e-5, BF16: 1e-2}


@dataclass(frozen=True)
class Case:
    """One run of one kernel.

    make: random generator -> (inputs, expected output in float64, output dtype, symbols d0, d1, ...).
    """

    kernel: str
    make: Callable[[np.random.Generator], tuple[list[Any], Any, Any, dict[str, int]]]
    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.kernel}-{self.name}" if self.name else self.kernel

    def text(self) -> str:
        return (KERNELS / f"{self.kernel}.mlir").read_text()


def check(actual: Any, expected: Any, dtype: Any) -> None:
    """Relative to the largest value: f16 2e-3, bf16 1e-2, f32 1e-5. NaN never passes."""
    actual = np.asarray(actual).astype(np.float64)
    assert actual.shape == expected.shape
    error = np.abs(actual - expected).max() / max(1e-30, np.abs(expected).max())
    assert error < TOLERANCE[np.dtype(dtype)], f"relative error {error:.2e}"


def poisoned(shape: Any, dtype: Any) -> Any:
    return np.full(shape, np.nan, dtype)


def _normal(rng: Any, *shape: int, dtype: Any = F32) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def _pointwise(n: int) -> Any:
    def make(rng: Any) -> Any:
        x, y = _normal(rng, n), _normal(rng, n)
        return [x, y], np.maximum(x.astype(float) + y, 0), F32, {"d0": n}
    return make


def _pointwise_f16(rows: int) -> Any:
    def make(rng: Any) -> Any:
        x, b = _normal(rng, rows, 512, dtype=F16), _normal(rng, 512, dtype=F16)
        return [x, b], x.astype(float) * 2 + b, F16, {"d0": rows}
    return make


def _softmax(rows: int) -> Any:
    def make(rng: Any) -> Any:
        x = _normal(rng, rows, 1000)
        e = np.exp(x.astype(float) - x.max(1, keepdims=True))
        return [x], e / e.sum(1, keepdims=True), F32, {"d0": rows}
    return make


def _layer_norm(rows: int) -> Any:
    def make(rng: Any) -> Any:
        x, g, b = _normal(rng, rows, 1024), _normal(rng, 1024), _normal(rng, 1024)
        z = x.astype(float)
        z = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
        return [x, g, b], z * g + b, F32, {"d0": rows}
    return make


def _transpose(m: int, n: int) -> Any:
    def make(rng: Any) -> Any:
        x = _normal(rng, m, n)
        return [x], x.T.astype(float), F32, {"d0": m, "d1": n}
    return make


def _matmul(m: int, n: int, k: int, dtype: Any) -> Any:
    def make(rng: Any) -> Any:
        a, b, c = _normal(rng, m, k, dtype=dtype), _normal(rng, k, n, dtype=dtype), _normal(rng, n, dtype=dtype)
        wanted = np.maximum(a.astype(float) @ b.astype(float) + c.astype(float), 0)
        return [a, b, c], wanted, dtype, {"d0": m, "d1": n, "d2": k}
    return make


def _gather(n: int, count: int) -> Any:
    def make(rng: Any) -> Any:
        table, ids = _normal(rng, n, 64), rng.integers(0, n, count)
        return [table, ids], table[ids].astype(float), F32, {"d0": n, "d1": count}
    return make


def _cumsum(m: int, n: int) -> Any:
    def make(rng: Any) -> Any:
        x = _normal(rng, m, n)
        return [x], np.cumsum(x.astype(float), 1), F32, {"d0": m, "d1": n}
    return make


def _column_sum(rows: int) -> Any:
    def make(rng: Any) -> Any:
        x = _normal(rng, rows, 256)
        return [x], x.astype(float).sum(0), F32, {"d0": rows}
    return make


def _math(n: int) -> Any:
    def make(rng: Any) -> Any:
        x = _normal(rng, n) * 2
        z = x.astype(float)
        e = np.exp(z)
        erf = np.array([math.erf(v) for v in z])
        parts = (e, np.tanh(z), erf, np.sin(z), np.sqrt(e), z / 2, np.floor(z), abs(z), 1 / np.sqrt(e), np.fmod(z, e))
        return [x], sum(parts), F32, {"d0": n}
    return make


CASES = (
    Case("pointwise", _pointwise(4096), "even"), Case("pointwise", _pointwise(2501), "odd"),
    Case("pointwise_f16", _pointwise_f16(10)),
    Case("softmax", _softmax(9)),
    Case("layer_norm", _layer_norm(3)),
    Case("transpose", _transpose(64, 96), "even"), Case("transpose", _transpose(45, 70), "odd"),
    Case("matmul_f32", _matmul(64, 64, 64, F32), "even"), Case("matmul_f32", _matmul(70, 50, 37, F32), "odd"),
    Case("matmul_f16", _matmul(128, 64, 64, F16), "even"), Case("matmul_f16", _matmul(70, 90, 37, F16), "odd"),
    *([Case("matmul_bf16", _matmul(64, 128, 96, BF16))] if ml_dtypes else []),
    Case("gather", _gather(100, 37)),
    Case("cumsum", _cumsum(150, 40)),
    Case("column_sum", _column_sum(77)),
    Case("math", _math(700)),
)

LARGE = (
    Case("matmul_f16", _matmul(256, 256, 128, F16), "256"), Case("matmul_bf16", _matmul(256, 256, 128, BF16), "256"),
    Case("softmax", _softmax(64), "64"),
)
"""Too slow for every run; for the instruction-level emulation."""
