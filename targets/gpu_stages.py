"""What the pipelines of GPU targets share behind stage `vector`: one line a pass, the targets add their own."""

from __future__ import annotations

from xcc.passes.base import Pass, parse_pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.upstream import Upstream
from xcc.targets.front import BESIDE, LAUNCH, MAX_ROW, TILE_ROW, gpu_model_passes, whole_pipeline

__all__ = ["DECISIONS", "gpu_pipeline", "plan_stage", "thread_math", "thread_stage"]

DECISIONS = ("stage-operands", "pipeline-loads", "overlap-products", "plan-shared-memory", "peel-steps",
             "whole-steps", "persistent-grid", "group-tiles", "coarsen-grid", "epilogue-pieces", "prefetch-epilogue",
             "prefetch-fragments", "convert-layouts")
"""What is decided ahead of `distribute`, which emits what the attributes say."""


def plan_stage() -> Stage:
    """Stage ``plan``: tile programs with all that is decided about their threads' code, as attributes."""
    return Stage("plan", (
        parse_pass("private-updates"),
        parse_pass("row-division"),
        parse_pass("narrow-math"),
        parse_pass("rotate-loads"),
        parse_pass("assign-layouts"),
        parse_pass("reads-first"),
        *(parse_pass(name) for name in DECISIONS),
    ))


def thread_stage(*own: Pass) -> Stage:
    """Stage ``gpu``: tile programs become the code of one thread. `own` see it before its indices are narrowed."""
    return Stage("gpu", (
        parse_pass("distribute"),
        parse_pass("join-grids"),
        *own,
        Upstream(pipeline="canonicalize"),
        Upstream(pipeline="cse"),
        parse_pass("narrow-indices"),
        Upstream(pipeline="canonicalize"),
        Upstream(pipeline="loop-invariant-code-motion"),
        Upstream(pipeline="cse"),
    ))


def thread_math(*, halves: bool) -> tuple[Pass, ...]:
    """Floats and functions that a GPU has no instruction for, in those that it has. halves: see expand-floats."""
    return (
        parse_pass(f"expand-floats{{bf16=false halves={str(halves).lower()}}}"),
        parse_pass("hardware-math"),
        parse_pass("expand-math"),
        parse_pass("narrow-math"),
        parse_pass("hardware-math"),    # of what the expansions use
    )


def gpu_pipeline(back: tuple[Stage, ...]) -> Pipeline:
    """The stages of a GPU's compilation, `back` behind stage ``vector``."""
    return whole_pipeline(back, xt=gpu_model_passes(), keep=("attention",), in_place=True,
                          schedule=(parse_pass("stream-k"), parse_pass("split-rows")),
                          early=(parse_pass("integer-contractions"),),
                          kernels={"max_row": MAX_ROW, "tile_row": TILE_ROW, "beside": BESIDE,
                                   "prologue": ("broadcast", "widen"), "launch": LAUNCH})
