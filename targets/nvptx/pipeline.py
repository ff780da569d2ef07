"""The stages of an NVIDIA compilation, one pass a line."""

from __future__ import annotations

from typing import Any

from xcc.passes.base import Pass, get_pass, parse_pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.upstream import Upstream
from xcc.targets.front import BESIDE, MAX_ROW, TILE_ROW, gpu_model_passes, whole_pipeline


def gpu_stages() -> tuple[Stage, ...]:
    """From tile programs to the NVVM dialect."""
    return (
        Stage("gpu", (
            _pass("row-division"),
            _pass("assign-layouts"),
            _pass("distribute"),
            _pass("join-grids"),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
            _pass("narrow-indices"),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="loop-invariant-code-motion"),
            Upstream(pipeline="cse"),
        )),
        Stage("nvvm", (
            parse_pass("expand-floats{bf16=false}"),
            _pass("hardware-math"),
            _pass("expand-math"),
            _pass("hardware-math"),     # of what the expansions use
            _pass("warpgroup-matrix"),
            _pass("kernel-abi"),
            Upstream(pipeline="expand-strided-metadata"),
            Upstream(pipeline="lower-affine"),
            Upstream(pipeline="convert-nvgpu-to-nvvm"),
            Upstream(pipeline="convert-scf-to-cf"),
            Upstream(pipeline="convert-math-to-llvm"),
            Upstream(pipeline="convert-vector-to-llvm"),
            Upstream(pipeline="gpu.module(convert-gpu-to-nvvm{index-bitwidth=64})"),
            Upstream(pipeline="reconcile-unrealized-casts"),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
            _pass("nvvm-kernel-functions"),
            _pass("early-launch"),
        )),
    )


def _pass(name: str) -> Pass:
    return get_pass(name)()


def kernel_pipeline() -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline(gpu_stages())


def pipeline(options: Any) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return whole_pipeline(gpu_stages(), xt=gpu_model_passes(), keep=("attention",),
                          kernels={"max_row": MAX_ROW, "tile_row": TILE_ROW, "beside": BESIDE})
