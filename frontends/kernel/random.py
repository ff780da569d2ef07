"""Random numbers of kernels: Philox 4x32-10 (Salmon et al., SC 2011) of a seed and of each element's own offset.

The numbers depend on nothing else: not on the blocks, the grid or the target. They are those of xcc's random ops.
"""

from __future__ import annotations

import math

from xcc.frontends.kernel.functions import cos, log, sqrt
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile, as_tile, convert
from xcc.frontends.kernel.types import DTYPES

__all__ = ["philox", "rand", "randint", "randn"]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = (1 << 32) - 1


def philox(seed: object, offset: object) -> tuple[Tile, Tile, Tile, Tile]:
    """Four words of 32 random bits (ui32) for each element of `offset`, an integer of 64 bits; `seed` is the key."""
    place, start = _u64(offset, "an offset"), _u64(seed, "a seed")
    c = [place & _WORD, place >> 32, place ^ place, place ^ place]
    key = [start & _WORD, start >> 32]
    for _ in range(_ROUNDS):
        first, second = c[0] * _MULTIPLIERS[0], c[2] * _MULTIPLIERS[1]
        c = [(second >> 32) ^ c[1] ^ key[0], second & _WORD, (first >> 32) ^ c[3] ^ key[1], first & _WORD]
        key = [(k + step) & _WORD for k, step in zip(key, _KEY_STEPS, strict=True)]
    a, b, d, e = (convert(w, DTYPES["ui32"]) for w in c)
    return a, b, d, e


def rand(seed: object, offset: object) -> Tile:
    """An f32 in [0, 1) for each element of `offset`: the upper 24 bits of the first word."""
    return _unit(randint(seed, offset))


def randn(seed: object, offset: object) -> Tile:
    """A normal f32 of mean 0 and deviation 1 for each element of `offset`: by Box and Muller, of two words."""
    first, second, _, _ = philox(seed, offset)
    return sqrt(-2.0 * log(_unit(first) + 2.0**-24)) * cos(2 * math.pi * _unit(second))


def randint(seed: object, offset: object) -> Tile:
    """32 random bits (ui32) for each element of `offset`."""
    return philox(seed, offset)[0]


def _unit(word: Tile) -> Tile:
    """The upper 24 bits as f32 in [0, 1)."""
    return convert(convert(word >> 8, DTYPES["i32"]), DTYPES["f32"]) * 2.0**-24


def _u64(value: object, what: str) -> Tile:
    x = as_tile(value)
    if not x.dtype.is_integer:
        raise error(f"{what} is an integer, not {x.type}")
    if x.constant is not None:
        return convert(as_tile(int(x.constant) & (1 << 64) - 1), DTYPES["ui64"])
    return convert(convert(x, DTYPES["i64"]), DTYPES["ui64"])
