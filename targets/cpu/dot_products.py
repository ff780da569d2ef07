"""Dot product instructions of CPUs."""

from __future__ import annotations

from xcc.passes.shared.dot_instructions import DotProduct

_BYTES, _BF16 = ("ui8", "i8"), ("bf16", "bf16")
_FIRST = frozenset({0})

INSTRUCTIONS = (
    DotProduct("vnni", 4, (_BYTES,), {16: "llvm.x86.avx512.vpdpbusd.512", 8: "llvm.x86.avx512.vpdpbusd.256",
                                      4: "llvm.x86.avx512.vpdpbusd.128"}, _FIRST),
    DotProduct("usdot", 4, (_BYTES,), {4: "llvm.aarch64.neon.usdot.v4i32.v16i8"}, _FIRST),
    DotProduct("sdot", 4, (("i8", "i8"),), {4: "llvm.aarch64.neon.sdot.v4i32.v16i8"}),
    DotProduct("bf16", 2, (_BF16,), {16: "llvm.x86.avx512bf16.dpbf16ps.512", 8: "llvm.x86.avx512bf16.dpbf16ps.256",
                                     4: "llvm.x86.avx512bf16.dpbf16ps.128"}),
    DotProduct("bfdot", 2, (_BF16,), {4: "llvm.aarch64.neon.bfdot.v4f32.v8bf16"}),
    DotProduct("madd", 4, (_BYTES, ("i8", "i8")), {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd",
                                                   4: "llvm.x86.sse2.pmadd.wd"}, pairs=True),
)
