"""CPU chips. Peak rates are of one core in f32 at its usual all-core clock.

An entry of the table is whole: code for it is the same wherever it is compiled. Cores are those of a small server, as
work is cut into pieces for them: a machine of fewer takes more pieces a core, at little cost.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from xcc.diagnostics import UserError
from xcc.passes.shared.dot_instructions import dot_products_of
from xcc.runtime.cores import physical_cores
from xcc.runtime.tile_registers import allow_tiles
from xcc.targets.base import Chip

_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"

_AVX512: dict[str, Any] = {"vector_bytes": 64, "vector_registers": 32}
_AVX2: dict[str, Any] = {"vector_bytes": 32, "vector_registers": 16}
_SERVER: dict[str, Any] = {"cores": 16, "l3_bytes": 32 << 20}
_NEON: dict[str, Any] = {"vector_bytes": 16, "vector_registers": 32}


class CpuChip(Chip):
    """What CPUs are like."""

    dot_products = ("xcc.targets.cpu.dot_products",)
    narrow_floats = False

    @property
    def scales_lanes(self) -> bool:
        return self.triple.startswith("x86_64") and self.vector_bytes == 64     # AVX-512

    @property
    def nan_extremes(self) -> bool:
        return not self.triple.startswith("x86_64")

    @property
    def tile_products(self) -> bool:
        return "amx" in self.matrix

    @property
    def rounds_to_bf16(self) -> bool:
        return any(d.element == "bf16" for d in dot_products_of(self))

    @property
    def byte_products(self) -> str:
        wanted = [d.types[0][0] for d in dot_products_of(self) if d.element == "i8" and len(d.types) == 1]
        return max(wanted, default="")      # "ui8" before "i8"


CHIPS: dict[str, Chip] = {c.name: c for c in (
    CpuChip("x86-64-v3", _X86, "x86-64-v3", **_SERVER, **_AVX2, l2_bytes=512 << 10, bandwidth=20e9,
            flops=(("f32", 96e9),), matrix=("madd",)),
    CpuChip("x86-64-v4", _X86, "x86-64-v4", "-prefer-256-bit", **_SERVER, **_AVX512, bandwidth=20e9,
            flops=(("f32", 150e9),), matrix=("madd",)),
    CpuChip("znver4", _X86, "znver4", "-prefer-256-bit", **_SERVER, **_AVX512, bandwidth=25e9, flops=(("f32", 113e9),),
            matrix=("vnni", "bf16")),
    CpuChip("znver5", _X86, "znver5", "-prefer-256-bit", **_SERVER, **_AVX512, shared_bytes=48 << 10, bandwidth=48e9,
            flops=(("f32", 230e9),), matrix=("vnni", "bf16")),
    CpuChip("sapphirerapids", _X86, "sapphirerapids", "-prefer-256-bit", **_AVX512, cores=16, shared_bytes=48 << 10,
            l2_bytes=2 << 20, l3_bytes=60 << 20, bandwidth=20e9, flops=(("f32", 180e9),),
            matrix=("vnni", "bf16", "amx")),
    CpuChip("neoverse-v1", _ARM, "neoverse-v1", **_SERVER, **_NEON, shared_bytes=64 << 10, bandwidth=25e9,
            flops=(("f32", 83e9),), matrix=("usdot", "bfdot")),
    CpuChip("apple-m1", "arm64-apple-macosx13.0", "apple-m1", **_NEON, cores=8, shared_bytes=128 << 10,
            l2_bytes=12 << 20, l3_bytes=8 << 20, bandwidth=60e9, flops=(("f32", 100e9),), matrix=("sdot",)),
)}


def chips() -> dict[str, Chip]:
    return dict(CHIPS)


MATRIX = {"avx512vnni": "vnni", "avxvnni": "vnni", "avx512bf16": "bf16", "amx-bf16": "amx", "i8mm": "usdot",
          "dotprod": "sdot", "bf16": "bfdot"}
"""LLVM's name of a CPU feature and ours of the instructions it brings."""


PRETENDED = "XCC_PRETENDED_HOST"
"""The environment variable that names a file (JSON of :class:`Seen`) with the machine that is ``native``: for tests,
which run under several (``test/hosts``). What is run and measured here takes this machine, whatever is pretended."""


@dataclass(frozen=True)
class Seen:
    """What can be seen of a machine.

    Attributes:
        architecture, system: as ``platform`` has them.
        triple, cpu, features: LLVM's names; of the features ``+name`` and ``-name``.
        cores: physical ones.
        l1_bytes, l2_bytes, l3_bytes: caches, the first of data; 0 where the system does not say.
    """

    architecture: str
    system: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    cores: int
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0


def host() -> Chip:
    """The chip ``native``: this machine's, or that of the pretended one."""
    text = pretended()
    return _chip(_seen_in(text)) if text else real_host()


def real_host() -> Chip:
    """This machine's chip: for code that is run at once."""
    return _chip(_seen())


def native_key() -> str:
    """What decides :func:`host`, without LLVM, which takes as long to load as all of a look-up in the cache."""
    if text := pretended():
        return text
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = [platform.machine(), platform.processor(), platform.version()]
    kept = [line for line in lines if not line.startswith(("cpu MHz", "bogomips", "apicid", "BogoMIPS"))]
    return repr((kept, physical_cores(), platform.machine()))


def pretended() -> str:
    """The text of the file that PRETENDED names; "" where nothing is pretended."""
    path = os.environ.get(PRETENDED, "")
    try:
        return Path(path).read_text() if path else ""
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{PRETENDED}: {path}: cannot be read: {e}") from None


def _seen_in(text: str) -> Seen:
    try:
        facts = json.loads(text)
        return Seen(**facts | {"features": tuple(facts["features"])})
    except (ValueError, TypeError, KeyError) as e:
        raise UserError(f"{PRETENDED}: {os.environ.get(PRETENDED)}: does not describe a machine: {e}") from None


@lru_cache(maxsize=1)
def _seen() -> Seen:
    """This machine: the CPU's name and features as LLVM sees them, cores and caches as the system says."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("amx-tile") and not allow_tiles():
        features.update({f: False for f in features if f.startswith("amx")})
    return Seen(platform.machine().lower(), platform.system(), llvm.get_default_triple(), llvm.get_host_cpu_name(),
                tuple(features.flatten().split(",")), physical_cores(), **_caches())


@lru_cache(maxsize=8)
def _chip(seen: Seen) -> Chip:
    """The chip of a machine: what is not seen is from the nearest entry of the table."""
    has = {f[1:] for f in seen.features if f[:1] == "+"}
    x86 = seen.architecture in ("x86_64", "amd64")
    features = [f for f in seen.features if f[1:] != "prefer-256-bit"]
    matrix = tuple(dict.fromkeys(m for f, m in MATRIX.items() if f in has))
    if x86 and "vnni" not in matrix:
        matrix = (*matrix, "madd")
    if x86:
        vector_bytes = 64 if {"avx512vl", "avx512dq"} <= has else 32
        base = max((c for c in CHIPS.values() if c.triple == _X86 and c.vector_bytes == vector_bytes),
                   key=lambda c: (c.name == seen.cpu, -len({*matrix} ^ {*c.matrix})))
    else:
        base = CHIPS["apple-m1" if seen.system == "Darwin" else "neoverse-v1"]
    return replace(base, name=seen.cpu, triple=seen.triple, cpu=seen.cpu, matrix=matrix, cores=seen.cores,
                   features=",".join([*features, "-prefer-256-bit"]) if x86 else ",".join(features),
                   shared_bytes=seen.l1_bytes or base.shared_bytes, l2_bytes=seen.l2_bytes or base.l2_bytes,
                   l3_bytes=seen.l3_bytes or base.l3_bytes)


def _caches() -> dict[str, int]:
    """What Linux says of this machine's caches, those of instructions aside, in bytes."""
    found: dict[str, int] = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if level in ("1", "2", "3") and kind != "Instruction" and size.endswith("K") and size[:-1].isdecimal():
            found[f"l{level}_bytes"] = int(size[:-1]) << 10
    return found
