"""The stages behind `vector` of an AMD compilation, one pass a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc.passes.base import parse_pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.upstream import Upstream
from xcc.targets.base import Chip, chip_of
from xcc.targets.gpu_stages import gpu_pipeline, plan_stage, thread_math, thread_stage

if TYPE_CHECKING:
    from xcc.options import CompileOptions

__all__ = ["kernel_pipeline", "kernel_stages", "pipeline", "rocdl_stage", "thread_stages"]


def rocdl_stage(chip: Chip) -> Stage:
    """From per-thread code to the ROCDL and LLVM dialects."""
    to_rocdl = f"convert-gpu-to-rocdl{{chipset={chip.name} index-bitwidth=64}}"
    return Stage("rocdl", (
        parse_pass("buffer-accesses"),
        *thread_math(halves=True),
        parse_pass("kernel-abi"),
        Upstream(pipeline="gpu.module(expand-strided-metadata)"),
        Upstream(pipeline="lower-affine"),
        Upstream(pipeline="canonicalize"),
        Upstream(pipeline="cse"),
        Upstream(pipeline="gpu.module(convert-scf-to-cf)"),
        Upstream(pipeline=f"gpu.module(convert-amdgpu-to-rocdl{{chipset={chip.name}}})"),
        Upstream(pipeline="gpu.module(convert-math-to-llvm)"),
        Upstream(pipeline=f"gpu.module({to_rocdl})"),
        Upstream(pipeline="gpu.module(convert-ub-to-llvm)"),
        Upstream(pipeline="reconcile-unrealized-casts"),
        Upstream(pipeline="canonicalize"),
        Upstream(pipeline="cse"),
        parse_pass("amd-kernel-functions"),
    ))


def thread_stages(chip: Chip) -> tuple[Stage, ...]:
    """From tile programs to the ROCDL dialect."""
    return (
        plan_stage(),
        thread_stage(parse_pass("scalar-indices")),
        rocdl_stage(chip),
    )


def kernel_pipeline(chip: Chip) -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline(thread_stages(chip))


def kernel_stages(options: CompileOptions) -> tuple[Stage, ...]:
    """Those of :func:`thread_stages` for the chip that `options` name."""
    from xcc.targets.amdgcn.target import TARGET

    return thread_stages(chip_of(TARGET, options.chip))


def pipeline(options: CompileOptions) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return gpu_pipeline(kernel_stages(options))
