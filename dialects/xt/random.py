"""Random numbers made of a seed, an offset and the element's position alone: Philox 4x32-10 (Salmon et al., SC 2011).

The seed is an attribute, or an operand, as is the offset (else 0): integers that a run is given, of one element.
"""


import numpy as np

from xcc.dialects.xt import angles, elementary
from xcc.dialects.xt.fields import dims, dtype, integer, number, optional
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.symbolic import product

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF


def philox(count: int, seed: int, offset: int = 0) -> tuple[Array, Array]:
    """Two 32-bit words (as u64 arrays) for each position below `count`: the first two of Philox(position, offset) with
    `seed` as its key."""
    position = np.arange(count, dtype=np.uint64)
    c = [position & np.uint64(MASK), position >> np.uint64(32),
         *(np.full_like(position, (offset >> shift) & MASK) for shift in (0, 32))]
    key = [seed & MASK, (seed >> 32) & MASK]
    for _ in range(ROUNDS):
        first, second = (c[i] * np.uint64(m) for i, m in zip((0, 2), MULTIPLIERS, strict=True))
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), second & np.uint64(MASK),
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), first & np.uint64(MASK)]
        key = [(k + step) & MASK for k, step in zip(key, KEY_STEPS, strict=True)]
    return c[0], c[1]


def _words(a: Attrs, seed: Array, offset: Array) -> tuple[Array, Array]:
    """`philox` for the shape and the seed of `a`, or of the operands."""
    number, start = (default if v is None else int(np.asarray(v).item())
                     for v, default in ((seed, a.seed), (offset, 0)))
    return philox(int(np.prod(static_dims(a.shape, "shape"), dtype=np.int64)), number, start)


def unit(word: Array) -> Array:
    """The upper 24 bits as f32 in [0, 1)."""
    return (word >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


class _Drawn(Attrs):
    """What is drawn: by the run's own seed where there is none."""

    seed_of_run = optional()
    offset = optional()
    shape = dims()
    seed = integer(0)
    dtype = dtype("f32")
    access = "pointwise"

    def infer(a: Attrs, seed: TensorType | None, offset: TensorType | None) -> TensorType:
        """The result's type; InferError where a seed or an offset is no single i64."""
        for t in (seed, offset):
            if t is not None and (t.dtype != "i64" or product(t.shape) != 1):
                raise InferError(f"a seed or an offset is {t}, not an i64 of one element")
        return check_float(TensorType(a.shape, a.dtype))


class RandomUniform(_Drawn, XtOp, name="random_uniform"):
    """Uniform in [low, high): low + (high - low) * unit(word 0 of Philox(position, offset) with the key seed)."""

    low = number(0.0)
    high = number(1.0)

    def evaluate(a: Attrs, seed: Array, offset: Array) -> Array:
        shape = static_dims(a.shape, "shape")
        u = unit(_words(a, seed, offset)[0])
        y = np.float32(a.low) + np.float32(a.high - a.low) * u
        return y.reshape(shape).astype(numpy_dtype(a.dtype))


class RandomNormal(_Drawn, XtOp, name="random_normal"):
    """Normal by Box and Muller: mean + scale * sqrt(-2 log(u0 + 2^-24)) * cos(2 pi u1) of two Philox words."""

    mean = number(0.0)
    scale = number(1.0)

    def evaluate(a: Attrs, seed: Array, offset: Array) -> Array:
        shape = static_dims(a.shape, "shape")
        first, second = _words(a, seed, offset)
        radius = np.sqrt(np.float32(-2) * elementary.log(unit(first) + np.float32(2.0**-24)))
        y = np.float32(a.mean) + np.float32(a.scale) * radius * angles.cos(np.float32(2 * np.pi) * unit(second))
        return y.reshape(shape).astype(numpy_dtype(a.dtype))
