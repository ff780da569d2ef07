"""The stages of an AMD compilation."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.passes.pipeline import Pipeline
from xcc.targets.base import Chip, chip_of
from xcc.targets.gpu_stages import gpu_pipeline, plan_stage, thread_math, thread_stage


def rocdl_stage(chip: Chip) -> str:
    """From per-thread code to the ROCDL and LLVM dialects."""
    return f"""rocdl: buffer-accesses, {thread_math(halves=True)}, kernel-abi,
        mlir(gpu.module(expand-strided-metadata)), mlir(lower-affine), mlir(canonicalize), mlir(cse),
        mlir(gpu.module(convert-scf-to-cf)), mlir(gpu.module(convert-amdgpu-to-rocdl{{chipset={chip.name}}})),
        mlir(gpu.module(convert-math-to-llvm)),
        mlir(gpu.module(convert-gpu-to-rocdl{{chipset={chip.name} index-bitwidth=64}})),
        mlir(gpu.module(convert-ub-to-llvm)), mlir(reconcile-unrealized-casts), mlir(canonicalize), mlir(cse),
        {"scalar-bits, " if chip.warp == 64 else ""}amd-kernel-functions"""


def thread_stages(chip: Chip) -> str:
    """From tile programs to the ROCDL dialect."""
    return f"{plan_stage()}; {thread_stage('scalar-indices')}; {rocdl_stage(chip)}"


def kernel_pipeline(chip: Chip) -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline.parse(thread_stages(chip))


def _chip(options: CompileOptions) -> Chip:
    from xcc.targets.amdgcn.target import TARGET

    return chip_of(TARGET, options.chip)


def tile_stages(options: CompileOptions) -> Pipeline:
    """The stages of :func:`pipeline` that run on a kernel alone, behind ``vector``."""
    return kernel_pipeline(_chip(options))


def pipeline(options: CompileOptions) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return gpu_pipeline(thread_stages(_chip(options)))
