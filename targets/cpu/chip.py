"""CPU chips. Peak rates are of one core in f32 at its usual all-core clock."""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from xcc.runtime.cores import physical_cores
from xcc.runtime.tile_registers import allow_tiles
from xcc.targets.base import Chip

_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"

_AVX512: dict[str, Any] = {"vector_bytes": 64, "vector_registers": 32}
_AVX2: dict[str, Any] = {"vector_bytes": 32, "vector_registers": 16}
_NEON: dict[str, Any] = {"vector_bytes": 16, "vector_registers": 32}

CHIPS: dict[str, Chip] = {c.name: c for c in (
    Chip("x86-64-v3", _X86, "x86-64-v3", **_AVX2, l2_bytes=512 << 10, bandwidth=20e9, flops=(("f32", 96e9),),
         matrix=("madd",)),
    Chip("x86-64-v4", _X86, "x86-64-v4", "-prefer-256-bit", **_AVX512, bandwidth=20e9, flops=(("f32", 150e9),),
         matrix=("madd",)),
    Chip("znver4", _X86, "znver4", "-prefer-256-bit", **_AVX512, l3_bytes=32 << 20, bandwidth=25e9,
         flops=(("f32", 113e9),), matrix=("vnni", "bf16")),
    Chip("znver5", _X86, "znver5", "-prefer-256-bit", **_AVX512, shared_bytes=48 << 10, l3_bytes=32 << 20,
         bandwidth=48e9, flops=(("f32", 230e9),), matrix=("vnni", "bf16")),
    Chip("sapphirerapids", _X86, "sapphirerapids", "-prefer-256-bit", **_AVX512, shared_bytes=48 << 10,
         l2_bytes=2 << 20, l3_bytes=60 << 20, bandwidth=20e9, flops=(("f32", 180e9),), matrix=("vnni", "bf16", "amx")),
    Chip("neoverse-v1", _ARM, "neoverse-v1", **_NEON, shared_bytes=64 << 10, bandwidth=25e9, flops=(("f32", 83e9),),
         matrix=("usdot", "bfdot")),
    Chip("apple-m1", "arm64-apple-macosx13.0", "apple-m1", **_NEON, shared_bytes=128 << 10, l2_bytes=12 << 20,
         bandwidth=60e9, flops=(("f32", 100e9),), matrix=("sdot",)),
)}


def chips() -> dict[str, Chip]:
    return dict(CHIPS)


MATRIX = {"avx512vnni": "vnni", "avxvnni": "vnni", "avx512bf16": "bf16", "amx-bf16": "amx", "i8mm": "usdot",
          "dotprod": "sdot", "bf16": "bfdot"}
"""LLVM's name of a CPU feature and ours of the instructions it brings."""


@lru_cache(maxsize=1)
def host() -> Chip:
    """This machine: the host's CPU name and features as LLVM sees them, the rest from the nearest table entry."""
    import llvmlite.binding as llvm

    features, name = llvm.get_host_cpu_features(), llvm.get_host_cpu_name()
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        wide = features.get("avx512vl") and features.get("avx512dq")
        base = CHIPS.get(name if wide else "", CHIPS["x86-64-v4" if wide else "x86-64-v3"])
    else:
        base = CHIPS["apple-m1" if platform.system() == "Darwin" else "neoverse-v1"]
    features["prefer-256-bit"] = False
    if features.get("amx-tile") and not allow_tiles():
        features.update({f: False for f in features if f.startswith("amx")})
    matrix = tuple(dict.fromkeys(m for f, m in MATRIX.items() if features.get(f)))
    if "vnni" not in matrix and machine in ("x86_64", "amd64"):
        matrix = (*matrix, "madd")
    return replace(base, name=name, triple=llvm.get_default_triple(), cpu=name, features=features.flatten(),
                   cores=physical_cores(), matrix=matrix, **_caches())


def _caches() -> dict[str, Any]:
    """What Linux says of this machine's L2 and L3 caches, in bytes."""
    found: dict[str, Any] = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, size = (folder / "level").read_text().strip(), (folder / "size").read_text().strip()
        except OSError:
            continue
        if level in ("2", "3") and size.endswith("K") and size[:-1].isdecimal():
            found[f"l{level}_bytes"] = int(size[:-1]) << 10
    return found
