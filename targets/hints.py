"""What was meant by a target or chip that there is not: the names that vendors and other tools use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["chip_hint", "target_hint"]

_TARGETS = {name: target for target, names in {
    "cpu": "arm aarch64 host llvm native x86 x86-64 x86_64",
    "nvptx": "cuda cubin nvidia nvptx64 ptx sm",
    "amdgcn": "amd amdgpu gcn hip hsaco rocm",
}.items() for name in names.split()}

_CHIPS = {name: chip for chip, names in {
    "sm_80": "a100 a30 ampere", "sm_86": "a10 a40 rtx3090 sm_87", "sm_89": "ada l4 l40 l40s rtx4090",
    "sm_90a": "gh200 h100 h200 h800 hopper sm_90", "sm_100a": "b100 b200 blackwell gb200 sm_100",
    "gfx90a": "mi210 mi250 mi250x", "gfx942": "mi300 mi300a mi300x mi325x", "gfx950": "mi350x mi355x",
    "gfx1100": "rx7900xt rx7900xtx w7900", "gfx1201": "rx9070 rx9070xt r9700",
    "znver4": "zen4 genoa", "znver5": "zen5 turin", "sapphirerapids": "spr xeon", "x86-64-v3": "avx2 haswell x86-64",
    "x86-64-v4": "avx512 skylake-avx512", "neoverse-v1": "graviton graviton3", "apple-m1": "m1",
}.items() for name in names.split()}


def target_hint(name: str) -> str:
    """How a message goes on that says that there is no target `name`."""
    if name.lower() in ("gpu", "device"):
        return "; did you mean nvptx (NVIDIA GPUs) or amdgcn (AMD GPUs)?"
    meant = _TARGETS.get(name.lower(), "")
    return f"; did you mean {meant}?" if meant else ""


def chip_hint(target: str, name: str, chips: Mapping[str, Iterable[str]]) -> str:
    """How a message goes on that says that `target` has no chip `name`; `chips` has the names of each target's."""
    plain = name.lower().replace(" ", "").replace("-", "") if name.lower() not in _CHIPS else name.lower()
    meant = _CHIPS.get(plain, name)
    for owner, names in chips.items():
        if meant in names and (owner, meant) != (target, name):
            return f"; did you mean {'' if owner == target else f'--target={owner} '}--chip={meant}?"
    return ""
