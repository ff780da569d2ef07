"""The NVIDIA target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc.passes.legal_ops import PLANNED, THREADS
from xcc.targets.base import Chip, KernelBinary, Target
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.driver import default_chip
from xcc.targets.nvptx.link import link

if TYPE_CHECKING:
    from xcc._mlir import Module
    from xcc.options import CompileOptions
    from xcc.passes.pipeline import Pipeline, Stage
    from xcc.runtime.program import Program


def _pipeline(options: CompileOptions) -> Pipeline:
    from xcc.targets.nvptx.pipeline import pipeline

    return pipeline(options)


def _tile_stages(options: CompileOptions) -> tuple[Stage, ...]:
    from xcc.targets.nvptx.pipeline import gpu_stages

    return gpu_stages()


def _emit_kernel(module: Module, chip: Chip, options: CompileOptions) -> KernelBinary:
    from xcc.targets.nvptx.emit import emit_kernel

    return emit_kernel(module, chip, options)


def _code_file(text: str, chip: Chip, kind: str) -> bytes:
    from xcc.targets.nvptx.emit import code_file

    return code_file(text, chip, kind)


def _collective_kernels(program: Program, chip: Chip, options: CompileOptions) -> tuple[KernelBinary, ...]:
    from xcc.targets.nvptx.peer_collectives import collective_kernels

    return collective_kernels(program, chip, options)


def _tools() -> str:
    """ptxas, where it is installed, makes the cubins."""
    from xcc.targets.nvptx.ptxas import find_ptxas

    return find_ptxas() or ""


TARGET = Target(
    name="nvptx", chips=chips, default_chip=default_chip, pipeline=_pipeline,
    tile_stages=_tile_stages, emit_kernel=_emit_kernel, link=link,
    collective_kernels=_collective_kernels,
    formats=("ptx", "asm", "cubin"), text_formats=("ptx", "asm"), portable="ptx", code_file=_code_file,
    kept_stage="gpu", shares_after="gpu",
    legal={"plan": PLANNED, "gpu": (*THREADS, "nvgpu.*", "nvvm.*"),
           "nvvm": ("builtin.module", "gpu.module", "llvm.*", "nvvm.*")},
    options={"code": ("cubin", "ptx")},     # what alone the artifact holds; both where ptxas is found, else PTX
    title="NVIDIA GPUs", other_names="cuda cubin device gpu nvidia nvptx64 ptx sm", tools=_tools,
    other_chips={"sm_80": "a100 a30 ampere", "sm_86": "a10 a40 rtx3090 sm_87", "sm_89": "ada l4 l40 l40s rtx4090",
                 "sm_90a": "gh200 h100 h200 h800 hopper sm_90", "sm_100a": "b100 b200 blackwell gb200 sm_100"})
