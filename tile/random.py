"""Random numbers made of a seed and a position alone: functions of :mod:`xcc.tile`."""

from __future__ import annotations

from xcc.tile.functions import mulhi
from xcc.tile.values import Value, as_value, convert


def philox(seed: Value, c0: Value, c1: int = 0, c2: int = 0, c3: int = 0, rounds: int = 10
           ) -> tuple[Value, Value, Value, Value]:
    """Four ui32 words for each counter (c0, c1, c2, c3) under the 64 bits of `seed`: Philox 4x32 (Salmon et al., SC
    2011)."""
    wide = convert(as_value(seed, "ui64" if isinstance(seed, int) else ""), "ui64")
    key = [convert(wide, "ui32"), convert(wide >> 32, "ui32")]
    c = [convert(as_value(v, "ui32"), "ui32") for v in (c0, c1, c2, c3)]
    for n in range(rounds):
        if n:
            key = [k + step for k, step in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)]
        low = [c[0] * 0xD2511F53, c[2] * 0xCD9E8D57]
        high = [mulhi(c[0], 0xD2511F53), mulhi(c[2], 0xCD9E8D57)]
        c = [high[1] ^ c[1] ^ key[0], low[1], high[0] ^ c[3] ^ key[1], low[0]]
    return c[0], c[1], c[2], c[3]


def random(seed: Value, offsets: Value) -> Value:
    """f32 in [0, 1), one for each offset: the upper 24 bits of the first word of Philox."""
    word = philox(seed, offsets)[0]
    return convert(convert(word >> 8, "i32"), "f32") * 2.0**-24
