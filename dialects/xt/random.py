"""Random numbers that depend only on a seed and the element's position: Philox 4x32-10 (Salmon et al., SC 2011)."""

from typing import Any

import numpy as np

from xcc.dialects.xt.fields import dims, dtype, integer, number
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.op import Attrs, XtOp
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType, numpy_dtype

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF


def philox(count: int, seed: int) -> tuple[Any, Any]:
    """Two 32-bit words (as u64 arrays) for each position below `count`: the first two of Philox(position, seed)."""
    position = np.arange(count, dtype=np.uint64)
    c = [position & np.uint64(MASK), position >> np.uint64(32), np.zeros_like(position), np.zeros_like(position)]
    key = [seed & MASK, (seed >> 32) & MASK]
    for _ in range(ROUNDS):
        first, second = (c[i] * np.uint64(m) for i, m in zip((0, 2), MULTIPLIERS, strict=True))
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), second & np.uint64(MASK),
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), first & np.uint64(MASK)]
        key = [(k + step) & MASK for k, step in zip(key, KEY_STEPS, strict=True)]
    return c[0], c[1]


def unit(word: Any) -> Any:
    """The upper 24 bits as f32 in [0, 1)."""
    return (word >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


class RandomUniform(XtOp, name="random_uniform"):
    """Uniform in [low, high): low + (high - low) * unit(word 0 of Philox(position, seed))."""

    shape = dims()
    low = number(0.0)
    high = number(1.0)
    seed = integer(0)
    dtype = dtype("f32")
    access = "pointwise"

    @staticmethod
    def infer(a: Attrs) -> TensorType:
        return check_float(TensorType(a.shape, a.dtype))

    @staticmethod
    def evaluate(a: Attrs) -> Any:
        shape = static_dims(a.shape, "shape")
        u = unit(philox(int(np.prod(shape, dtype=np.int64)), a.seed)[0])
        y = np.float32(a.low) + np.float32(a.high - a.low) * u
        return y.reshape(shape).astype(numpy_dtype(a.dtype))


class RandomNormal(XtOp, name="random_normal"):
    """Normal by Box and Muller: mean + scale * sqrt(-2 log(u0 + 2^-24)) * cos(2 pi u1) of two Philox words."""

    shape = dims()
    mean = number(0.0)
    scale = number(1.0)
    seed = integer(0)
    dtype = dtype("f32")
    access = "pointwise"

    @staticmethod
    def infer(a: Attrs) -> TensorType:
        return check_float(TensorType(a.shape, a.dtype))

    @staticmethod
    def evaluate(a: Attrs) -> Any:
        shape = static_dims(a.shape, "shape")
        first, second = philox(int(np.prod(shape, dtype=np.int64)), a.seed)
        radius = np.sqrt(np.float32(-2) * np.log(unit(first) + np.float32(2.0**-24)))
        y = np.float32(a.mean) + np.float32(a.scale) * radius * np.cos(np.float32(2 * np.pi) * unit(second))
        return y.reshape(shape).astype(numpy_dtype(a.dtype))
