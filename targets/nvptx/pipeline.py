"""The stages of an NVIDIA compilation, one pass a line."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.passes.base import parse_pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.upstream import Upstream
from xcc.targets.gpu_stages import gpu_pipeline, plan_stage, thread_math, thread_stage


def gpu_stages() -> tuple[Stage, ...]:
    """From tile programs to the NVVM dialect."""
    return (
        plan_stage(),
        thread_stage(),
        Stage("nvvm", (
            *thread_math(halves=False),
            parse_pass("warpgroup-matrix"),
            parse_pass("kernel-abi"),
            parse_pass("predicated-stores"),
            Upstream(pipeline="expand-strided-metadata"),
            Upstream(pipeline="lower-affine"),
            Upstream(pipeline="convert-nvgpu-to-nvvm"),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
            parse_pass("copy-pointers"),
            Upstream(pipeline="convert-scf-to-cf"),
            Upstream(pipeline="convert-math-to-llvm"),
            Upstream(pipeline="convert-vector-to-llvm"),
            Upstream(pipeline="gpu.module(convert-gpu-to-nvvm{index-bitwidth=64})"),
            Upstream(pipeline="reconcile-unrealized-casts"),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
            parse_pass("nvvm-kernel-functions"),
            parse_pass("streamed-lines"),
            parse_pass("early-launch"),
        )),
    )


def kernel_pipeline() -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline(gpu_stages())


def pipeline(options: CompileOptions) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return gpu_pipeline(gpu_stages())
