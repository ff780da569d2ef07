"""The kernels that the kernel language is measured by, each with what it shall give in numpy."""

from __future__ import annotations

import math

import xcc


@xcc.kernel
def add(x, y, z, BLOCK: xcc.constexpr):
    """z = x + y"""
    at = xcc.program_id(0) * BLOCK
    z.store(at, x.tile(at, BLOCK, other=0) + y.tile(at, BLOCK, other=0))


@xcc.kernel
def softmax(x, y, BLOCK: xcc.constexpr):
    """A row an instance, whole in one tile."""
    row = xcc.program_id(0)
    t = x.tile((row, 0), (1, BLOCK), other=-math.inf).to(xcc.f32)
    e = xcc.exp(t - t.max(axis=1, keepdims=True))
    y.store((row, 0), e / e.sum(axis=1, keepdims=True))


@xcc.kernel
def product(a, b, c, slope, M: xcc.constexpr, N: xcc.constexpr, K: xcc.constexpr, GROUP: xcc.constexpr):
    """c = leaky_relu(a @ b); blocks of GROUP rows of blocks follow each other, which read the same columns of b."""
    row_blocks, column_blocks = xcc.cdiv(c.shape[0], M), xcc.cdiv(c.shape[1], N)
    place, group = xcc.program_id(0), GROUP * column_blocks
    first = place // group * GROUP
    height = xcc.minimum(row_blocks - first, GROUP)
    row = (first + place % group % height) * M
    column = place % group // height * N
    acc = xcc.zeros((M, N), xcc.f32)
    for k in range(0, a.shape[1], K):
        acc = xcc.dot(a.tile((row, k), (M, K), other=0), b.tile((k, column), (K, N), other=0), acc)
    c.store((row, column), xcc.where(acc > 0, acc, acc * slope))


@xcc.kernel
def layer_norm(x, w, b, y, eps, BLOCK: xcc.constexpr):
    """A row an instance, whole in one tile."""
    row, n = xcc.program_id(0), x.shape[1]
    t = x.tile((row, 0), (1, BLOCK), other=0).to(xcc.f32)
    away = xcc.where(xcc.arange(BLOCK) < n, t - t.sum() / n, 0.0)
    scaled = away * xcc.rsqrt((away * away).sum() / n + eps)
    y.store((row, 0), scaled * w.tile(0, BLOCK, other=0) + b.tile(0, BLOCK, other=0))


@xcc.kernel
def dropout(x, y, seed, p, BLOCK: xcc.constexpr):
    """Keeps an element with probability 1 - p; which ones, its index and the seed say."""
    at = xcc.program_id(0) * BLOCK
    keep = xcc.rand(seed, at + xcc.arange(BLOCK)) >= p
    y.store(at, xcc.where(keep, x.tile(at, BLOCK, other=0) / (1 - p), 0.0))


@xcc.kernel
def attention(q, k, v, out, scale, CAUSAL: xcc.constexpr, M: xcc.constexpr, N: xcc.constexpr, D: xcc.constexpr):
    """A block of queries of one head an instance, over blocks of keys: the sums are scaled when the maximum grows. The
    scale is above 0; powers are of 2."""
    scale *= math.log2(math.e)
    row, head, keys = xcc.program_id(0) * M, xcc.program_id(1), k.shape[1]
    block = q.tile((head, row, 0), (1, M, D), other=0).reshape(M, D)
    highest = xcc.full((M, 1), -math.inf)
    total = xcc.zeros((M, 1))
    acc = xcc.zeros((M, D))
    for at in range(0, xcc.minimum(keys, row + M) if CAUSAL else keys, N):
        column = at + xcc.arange(N)[None, :]
        valid = column < keys
        if CAUSAL:
            valid = valid & (column <= row + xcc.arange(M)[:, None])
        s = xcc.dot(block, k.tile((head, at, 0), (1, N, D), other=0).reshape(N, D).T)
        s = xcc.where(valid, s, -math.inf)
        top = xcc.maximum(highest, s.max(axis=1, keepdims=True) * scale)
        e = xcc.exp2(s * scale - top)
        shrink = xcc.exp2(highest - top)
        total = total * shrink + e.sum(axis=1, keepdims=True)
        value = v.tile((head, at, 0), (1, N, D), other=0).reshape(N, D)
        acc = xcc.dot(e.to(v.dtype), value, acc * shrink)
        highest = top
    out.store((head, row, 0), (acc / total).reshape(1, M, D))


@xcc.kernel
def histogram(x, counts, low, high, BLOCK: xcc.constexpr):
    """How many elements are in each of the bins between low and high; what is outside counts nowhere."""
    at = xcc.program_id(0) * BLOCK
    t = x.tile(at, BLOCK, other=0).to(xcc.f32)
    bins = counts.shape[0]
    place = xcc.floor((t - low) * (bins / (high - low))).to(xcc.i64)
    counts.atomic_add(place, 1, mask=at + xcc.arange(BLOCK) < x.shape[0])


@xcc.kernel
def prefix_sum(x, y, BLOCK: xcc.constexpr):
    """The running sums of a row an instance, block after block."""
    row = xcc.program_id(0)
    before = xcc.zeros((1, 1), xcc.f32)
    for at in range(0, x.shape[1], BLOCK):
        t = x.tile((row, at), (1, BLOCK), other=0).to(xcc.f32)
        y.store((row, at), xcc.cumsum(t, axis=1) + before)
        before += t.sum(axis=1, keepdims=True)
