"""Triton's side of benchmarks/kernels.py: the same computations, each with Triton's own tuning. Needs a GPU."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

WARPS = [triton.Config({}, num_warps=n) for n in (1, 2, 4, 8, 16)]


@triton.autotune([triton.Config({"BLOCK": n}, num_warps=w) for n in (512, 1024, 2048, 4096) for w in (4, 8)], key=["n"])
@triton.jit
def _add(x, y, z, n, BLOCK: tl.constexpr):      # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.autotune(WARPS, key=["n"])
@triton.jit
def _softmax(x, y, n, BLOCK: tl.constexpr):     # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    inside = at < n
    row = tl.program_id(0).to(tl.int64) * n
    t = tl.load(x + row + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(t - tl.max(t, 0))
    tl.store(y + row + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=inside)


@triton.autotune(WARPS, key=["n"])
@triton.jit
def _layer_norm(x, w, b, y, n, eps, BLOCK: tl.constexpr):       # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    inside = at < n
    row = tl.program_id(0).to(tl.int64) * n
    t = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    away = tl.where(inside, t - tl.sum(t, 0) / n, 0.0)
    scaled = away * tl.rsqrt(tl.sum(away * away, 0) / n + eps)
    weight, bias = tl.load(w + at, mask=inside).to(tl.float32), tl.load(b + at, mask=inside).to(tl.float32)
    tl.store(y + row + at, (scaled * weight + bias).to(y.dtype.element_ty), mask=inside)


def add(x: Any, y: Any, z: Any) -> None:
    _add[lambda chosen: (triton.cdiv(x.numel(), chosen["BLOCK"]),)](x, y, z, x.numel())


def softmax(x: Any, y: Any) -> None:
    _softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))


def layer_norm(x: Any, w: Any, b: Any, y: Any) -> None:
    _layer_norm[(x.shape[0],)](x, w, b, y, x.shape[1], 1e-5, BLOCK=triton.next_power_of_2(x.shape[1]))
