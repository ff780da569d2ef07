"""The bit formats of floats with fewer bits than any machine computes with: to f32 and back, on every lane.

    code = sign | exponent | mantissa        magnitude = (code << (23 - mantissa)).bits() * 2**(127 - bias)

which holds for subnormals too. f8E8M0FNU is an exponent alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc._mlir import ir
from xcc.passes.vector.lanes import Lanes

__all__ = ["FORMATS", "Format", "decode", "encode"]


@dataclass(frozen=True)
class Format:
    """`bits` with the sign; `largest` is the code of the largest number, `over` what comes above it, `nan` a NaN.

    `negative_zero` is False where the code of -0 is the only NaN. Where there is neither NaN nor infinity `over` is
    `largest` and `nan` is 0.
    """

    bits: int
    mantissa: int
    bias: int
    largest: int
    over: int
    nan: int
    negative_zero: bool = True

    @property
    def size_mask(self) -> int:
        return (1 << (self.bits - 1)) - 1


FORMATS = {
    "f8E4M3FN": Format(8, 3, 7, largest=0x7E, over=0x7F, nan=0x7F),
    "f8E5M2": Format(8, 2, 15, largest=0x7B, over=0x7C, nan=0x7E),
    "f8E4M3FNUZ": Format(8, 3, 8, largest=0x7F, over=0x80, nan=0x80, negative_zero=False),
    "f8E5M2FNUZ": Format(8, 2, 16, largest=0x7F, over=0x80, nan=0x80, negative_zero=False),
    "f4E2M1FN": Format(4, 1, 1, largest=0x7, over=0x7, nan=0),
}
POWER_OF_TWO = "f8E8M0FNU"


def decode(code: Lanes, name: str) -> Lanes:
    """The f32 value of the i8 `code` of the format `name`; exact."""
    if name == "f8E5M2":        # the upper half of an f16
        half = (code.cast("extui", ir.IntegerType.get_signless(16)) << 8).bits()
        return half.cast("extf", ir.F32Type.get())
    wide = code.cast("extui", ir.IntegerType.get_signless(32))
    if name == POWER_OF_TWO:
        size = wide.compare("eq", 0).select(1 << 22, wide << 23)     # 2**-127 is a subnormal of f32
        return wide.compare("eq", 0xFF).select(float("nan"), size.bits())
    f = FORMATS[name]
    size = wide & f.size_mask
    magnitude = (size << (23 - f.mantissa)).bits() * 2.0 ** (127 - f.bias)
    if f.negative_zero and f.nan:
        magnitude = size.compare("sgt", f.largest).select(float("nan"), magnitude)
    value = (magnitude.bits() | ((wide & (1 << (f.bits - 1))) << (32 - f.bits))).bits()
    return value if f.negative_zero else wide.compare("eq", f.nan).select(float("nan"), value)


def encode(x: Lanes, name: str) -> Lanes:
    """The i8 code of the f32 `x` rounded to nearest even in the format `name`."""
    i8 = ir.IntegerType.get_signless(8)
    if name == POWER_OF_TWO:
        return _encode_exponent(x).cast("trunci", i8)
    f = FORMATS[name]
    drop = 23 - f.mantissa
    a = x.abs()
    bits = a.bits()
    normal = (bits + ((1 << (drop - 1)) - 1) + (bits.shr(drop) & 1)).shr(drop) - ((127 - f.bias) << f.mantissa)
    step = 2.0 ** (23 + 1 - f.bias - f.mantissa)     # adding it leaves one unit of a subnormal in the last place
    small = (a + step).bits() - (a.const(step)).bits()
    size = a.compare("olt", 2.0 ** (1 - f.bias)).select(small, normal)
    high = size.compare("sgt", f.largest)
    out = high.select(f.over, size)
    out = x.compare("uno", x).select(f.nan, out)
    sign = x.bits().shr(32 - f.bits) & (1 << (f.bits - 1))
    if not f.negative_zero:
        sign = out.compare("eq", 0).select(0, sign)
    return (out | sign).cast("trunci", i8)


def _encode_exponent(x: Lanes) -> Lanes:
    """Half way between two powers goes up; what is not above zero has no code but NaN."""
    bits = x.bits()
    normal = (bits + (1 << 22)).shr(23)
    return x.compare("ogt", 0.0).select(normal, 0xFF)
