"""What a target is: a chip table, an ordered pipeline of named stages, and a way to emit and run kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Chip", "Target", "get_target", "target_names"]


@dataclass(frozen=True)
class Chip:
    """One processor model. Sizes in bytes, rates in units a second; all passes take widths from here.

    Attributes:
        name: "x86-64-v4", "sm_90a", "gfx942", ...
        triple, cpu, features: what LLVM is asked for.
        cores: CPU cores, SMs or CUs; 0 means ask the machine.
        vector_bytes: CPU vector register width; on a GPU the widest access of one thread.
        vector_registers: CPU architectural vector registers; on a GPU registers a thread.
        warp: threads that run in lockstep (32 or 64; 1 on a CPU).
        max_threads: threads a workgroup.
        shared_bytes: shared memory (LDS) a workgroup may use; CPU: L1 data cache.
        l2_bytes, l3_bytes: caches.
        bandwidth: memory, bytes/s.
        flops: peak by type, e.g. {"f32": 67e12, "f16": 989e12}; CPU: a core's.
        matrix: matrix instructions available: "mma", "wgmma", "mfma", "wmma", "amx", "vnni", ...
    """

    name: str
    triple: str
    cpu: str
    features: str = ""
    cores: int = 0
    vector_bytes: int = 16
    vector_registers: int = 16
    warp: int = 1
    max_threads: int = 1
    shared_bytes: int = 32768
    l2_bytes: int = 1 << 20
    l3_bytes: int = 0
    bandwidth: float = 0.0
    flops: tuple[tuple[str, float], ...] = ()
    matrix: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A target by name; heavy modules are imported by the functions, not with this table."""

    name: str
    chips: Callable[[], dict[str, Chip]]
    default_chip: Callable[[], Chip]
    pipeline: Callable[[Any], Any]       # CompileOptions -> passes.pipeline.Pipeline
    emit: Callable[..., Any]             # see targets/<t>/emit.py


_TARGETS: dict[str, str] = {
    "amdgcn": "xcc.targets.amdgcn.target",
    "cpu": "xcc.targets.cpu.target",
    "nvptx": "xcc.targets.nvptx.target",
}


def target_names() -> tuple[str, ...]:
    return tuple(_TARGETS)


def get_target(name: str) -> Target:
    """The target called `name`; UserError when there is none."""
    import importlib

    from xcc.diagnostics import UserError

    if name not in _TARGETS:
        raise UserError(f"there is no target '{name}'; targets are {', '.join(_TARGETS)}")
    target: Target = importlib.import_module(_TARGETS[name]).TARGET
    return target
