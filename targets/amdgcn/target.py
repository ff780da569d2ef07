"""The AMD target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc.passes.legal_ops import PLANNED, THREADS
from xcc.targets.amdgcn.chip import chips, default_chip
from xcc.targets.amdgcn.link import link
from xcc.targets.base import Chip, KernelBinary, Target

if TYPE_CHECKING:
    from xcc._mlir import Module
    from xcc.options import CompileOptions
    from xcc.passes.pipeline import Pipeline, Stage


def _pipeline(options: CompileOptions) -> Pipeline:
    from xcc.targets.amdgcn.pipeline import pipeline

    return pipeline(options)


def _tile_stages(options: CompileOptions) -> tuple[Stage, ...]:
    from xcc.targets.amdgcn.pipeline import kernel_stages

    return kernel_stages(options)


def _emit_kernel(module: Module, chip: Chip, options: CompileOptions) -> KernelBinary:
    from xcc.targets.amdgcn.emit import emit_kernel

    return emit_kernel(module, chip, options)


def _code_file(text: str, chip: Chip, kind: str) -> bytes:
    from xcc.targets.amdgcn.emit import code_file

    return code_file(text, chip, kind)


TARGET = Target(
    name="amdgcn", chips=chips, default_chip=default_chip, pipeline=_pipeline,
    tile_stages=_tile_stages, emit_kernel=_emit_kernel, link=link,
    formats=("asm", "hsaco"), code_file=_code_file, fewer_registers=(224, 192, 160, 112),
    kept_stage="gpu", shares_after="",      # pointers of kernels are llvm.noalias
    legal={"plan": PLANNED, "gpu": (*THREADS, "amdgpu.*", "rocdl.*"),
           "rocdl": ("builtin.module", "gpu.module", "llvm.*", "rocdl.*")},
    title="AMD GPUs", other_names="amd amdgpu device gcn gpu hip hsaco rocm",
    other_chips={"gfx90a": "mi210 mi250 mi250x", "gfx942": "mi300 mi300a mi300x mi325x", "gfx950": "mi350x mi355x",
                 "gfx1100": "rx7900xt rx7900xtx w7900", "gfx1201": "rx9070 rx9070xt r9700"})
