"""The stages that all targets share: from an imported model to tile programs, and @main's own."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.passes.base import Pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.targets.base import get_target

BESIDE = 4          # microseconds of memory traffic of kernels that share a launch, which alone costs a GPU about one
LAUNCH = 1 << 24    # operations in the microsecond in which a GPU starts a kernel, where 8 go with a byte of its memory
MAX_ROW = 1 << 24   # of a GPU's kernel with reductions: few long rows are reduced in parts, the L2 cache has them then
TILE_ROW = 256      # columns of a GPU's tile of a product: the longest row that is reduced in its kernel


def front_stages(*, xt: str = "", early: str = "", keep: str = "", kernels: str = "", schedule: str = "",
                 in_place: bool = False, beside: bool = False) -> tuple[Stage, ...]:
    """Stages ``xt`` to ``vector``; `xt` are passes of the target's own that end stage ``xt``, `early` those that need
    the model's ops before constants are folded, `schedule` those that decide what its `tile` obeys. `kernels` are
    form-kernels' options, where they are not the defaults.

    `keep` names the composites that are a kernel each, decomposed inside it. in_place: see move-views. beside: kernels
    may share a launch.
    """
    return Pipeline.parse(f"""
        xt: xt-simplify,
            shard,              # a rank's part of a weight goes through all else as a weight
            {early}, xt-fold, xt-recognise, fold-scales,
            xt-fold,            # filters times scales in f32, rounded once by what follows
            convert-precision, exchange-pairs, xt-decompose{{keep={",".join(filter(None, ("group_norm", keep)))}}},
            split-groups, channels-last,
            xt-decompose{{keep={keep}}},    # norms of groups, by where the channels lie
            move-views{{in-place={str(in_place).lower()}}}, move-weights,
            early-gathers, one-hot,
            update-in-place,    # what targets do to scatters leaves those alone
            {xt}, xt-simplify, xt-fold, pack-bits, mlir(canonicalize), mlir(cse);
        kernels: form-kernels{{{kernels}}}, push-results, place-parts, wide-elements;
        linalg: {"split-beside" if beside else ""}, {"xt-decompose{fused=true}" if keep else ""}, requantised-floats,
            xt-to-linalg, mlir(canonicalize), mlir(cse), join-columns;
        schedule: configure, {schedule};
        vector: tile, mlir(canonicalize), mlir(cse)""").stages


def tile_pipeline(options: CompileOptions) -> Pipeline:
    """What runs on a program of the tile dialect, of the target's pipeline: it joins behind stage ``vector``."""
    target = get_target(options.target)
    own = Pipeline.parse("tile: form-blocks, configure-tile, deepen-products, lower-tile, mlir(canonicalize), "
                         "mlir(cse)")
    behind = target.tile_stages(options) if target.tile_stages is not None else \
        target.pipeline(options).after("vector").kernel_part()
    return Pipeline((*own.stages, *behind.stages))


def gpu_model_passes() -> tuple[Pass, ...]:
    """What GPUs do to a whole model before kernels are formed, whoever made them."""
    names = ("transposed-convolution{weighed=true}", "join-groups", "multiplied-types", "filter-gradients",
             "wide-pixels", "split-concatenations", "merge-products", "aligned-rows", "split-contractions",
             "one-pass-moments", "cut-reductions", "split-reductions",
             "select-places", "unique-runs",
             "box-pairs", "scatter-places", "split-scans", "merge-sorts", "rank-sorts", "operands-along-k")
    return Pipeline.parse(f"xt: {', '.join(names)}").stages[0].passes


def whole_pipeline(back: str, front: tuple[Stage, ...] | None = None) -> Pipeline:
    """A target's pipeline: the shared stages, then its own, as text, then those of @main."""
    return Pipeline((*(front or front_stages()), *Pipeline.parse(back).stages, *main_stages()))


def main_stages() -> tuple[Stage, ...]:
    """Stages ``memory`` and ``host``: where the results of @main lie, then the host program."""
    return Pipeline.parse("memory: mark-load-time, place-results; host: lower-main").stages
