"""What the pipelines of GPU targets share behind stage `vector`; the targets add their own."""

from __future__ import annotations

from xcc.passes.pipeline import Pipeline
from xcc.targets.front import BESIDE, LAUNCH, MAX_ROW, TILE_ROW, front_stages, gpu_model_passes, whole_pipeline

KEPT = "attention,attention_with_sums,attention_query_gradient,attention_key_gradients"
"""Composites that are a kernel each."""

DECISIONS = ("stage-operands", "pipeline-loads", "overlap-products", "plan-shared-memory", "peel-steps",
             "whole-steps", "persistent-grid", "group-tiles", "coarsen-grid", "epilogue-pieces", "prefetch-epilogue",
             "prefetch-fragments", "convert-layouts")
"""What is decided ahead of `distribute`, which emits what the attributes say."""


def plan_stage() -> str:
    """Stage ``plan``: tile programs with all that is decided about their threads' code, as attributes."""
    return f"""plan: masked-gathers, private-updates, common-bounds, row-division, narrow-math, align-walks,
        rotate-loads, assign-layouts, reads-first, {', '.join(DECISIONS)}"""


def thread_stage(own: str = "") -> str:
    """Stage ``gpu``: tile programs become the code of one thread. `own` see it before its indices are narrowed."""
    return f"""gpu: distribute, join-grids, {own}, mlir(canonicalize), mlir(cse), narrow-indices,
        mlir(canonicalize), mlir(loop-invariant-code-motion), mlir(cse)"""


def thread_math(*, halves: bool) -> str:
    """Floats and functions that a GPU has no instruction for, in those that it has. halves: see expand-floats."""
    return f"""expand-floats{{bf16=false halves={str(halves).lower()}}}, hardware-math, expand-math, narrow-math,
        hardware-math    # of what the expansions use
        """


def gpu_pipeline(back: str) -> Pipeline:
    """The stages of a GPU's compilation, `back` behind stage ``vector``."""
    return whole_pipeline(back, front_stages(
        xt=", ".join(map(str, gpu_model_passes())), keep=KEPT, in_place=True,
        schedule="stream-k, split-rows", early="integer-contractions", beside=True,
        kernels=f"max-row={MAX_ROW} tile-row={TILE_ROW} beside={BESIDE} prologue=broadcast,widen launch={LAUNCH}"))
