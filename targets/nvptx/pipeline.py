"""The stages of an NVIDIA compilation."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.passes.pipeline import Pipeline
from xcc.targets.gpu_stages import gpu_pipeline, plan_stage, thread_math, thread_stage

STAGES = f"""
{plan_stage()};
{thread_stage()};
nvvm: {thread_math(halves=False)}, warpgroup-matrix, kernel-abi, predicated-stores,
      mlir(expand-strided-metadata), mlir(lower-affine), mlir(convert-nvgpu-to-nvvm), mlir(canonicalize), mlir(cse),
      copy-pointers, mlir(convert-scf-to-cf), mlir(convert-math-to-llvm), mlir(convert-vector-to-llvm),
      mlir(gpu.module(convert-gpu-to-nvvm{{index-bitwidth=64}})), mlir(reconcile-unrealized-casts),
      mlir(canonicalize), mlir(cse), nvvm-kernel-functions, streamed-lines, early-launch
"""
"""From tile programs to the NVVM dialect."""


def kernel_pipeline() -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline.parse(STAGES)


def tile_stages(_: CompileOptions) -> Pipeline:
    """The stages of :func:`pipeline` that run on a kernel alone, behind ``vector``."""
    return kernel_pipeline()


def pipeline(options: CompileOptions) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return gpu_pipeline(STAGES)
