"""The bit formats of floats with fewer bits than any machine computes with: to f32 and back, on every lane.

    code = sign | exponent | mantissa        magnitude = (code << (23 - mantissa)).bits() * 2**(127 - bias)

which holds for subnormals too. f8E8M0FNU is an exponent alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc._mlir import ir
from xcc.passes.shared.lanes import Lanes
from xcc.passes.shared.values import op


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
    if name == "f8E4M3FN":
        return _decode_signed(code)
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


def _decode_signed(code: Lanes) -> Lanes:
    """f8E4M3FN: `code` in the place of an f16 is value / 2**8, as in `decode_half`, and exact in f32.

    The way is by f16 as CPUs convert its subnormals, and not those of f32, at full speed. The NaN would be 480, the
    only size that becomes infinite with a factor of 2**119 * 1.125: then 480 + infinity * 0 is a NaN.
    """
    half = (code.cast("extsi", ir.IntegerType.get_signless(16)) << 7 & ~0x407F).bits()
    raw = half.cast("extf", ir.F32Type.get())
    return raw * 2.0 ** 8 + raw * (2.0 ** 127 * 1.125) * 0.0


def decode_half(code: Lanes, name: str) -> Lanes:
    """The f16 value of the i8 `code` of f8E5M2 or f8E4M3FN, exact, in arithmetic of 16 bits.

    f8E4M3FN: code, its exponent moved to that of f16, is value / 2**8, also of subnormals. Its NaN would be 480, the
    only size that becomes infinite with a factor of 145: then 480 + infinity * 0 is a NaN.
    """
    high = _upper_bytes(code)
    if name == "f8E5M2":
        return high.bits()
    raw = (high.sar(1) & ~0x407F).bits()
    return raw * 2.0 ** 8 + raw * (2.0 ** 8 * 145) * 0.0


def _upper_bytes(code: Lanes) -> Lanes:
    """The i16 whose upper bytes are `code` and whose lower bytes are 0: of vectors by four bytes at a time."""
    i16, i32 = (ir.IntegerType.get_signless(n) for n in (16, 32))
    n = ir.VectorType(code.type).shape[-1] if isinstance(code.type, ir.VectorType) else 1
    if n % 4 or ir.VectorType(code.type).rank != 1:
        return code.cast("extui", i16) << 8
    words = Lanes(op("vector.bitcast", [ir.VectorType.get([n // 4], i32)], [code.v]))
    upper = -1 << 24
    first = (words << 8 & 0xFF00) | (words << 16 & upper)
    second = (words.shr(8) & 0xFF00) | (words & upper)
    order = ir.DenseI64ArrayAttr.get([i for at in range(n // 4) for i in (at, n // 4 + at)])
    pairs = op("vector.shuffle", [ir.VectorType.get([n // 2], i32)], [first.v, second.v], mask=order)
    return Lanes(op("vector.bitcast", [ir.VectorType.get([n], i16)], [pairs]))


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
    """Half way between two powers goes up, but 2**-127, a subnormal, is a power. Not above zero there is only NaN."""
    bits = x.bits()
    normal = (bits + bits.compare("slt", 1 << 23).select(bits.const((1 << 22) - 1), 1 << 22)).shr(23)
    return x.compare("ogt", 0.0).select(normal, 0xFF)
