"""The stages that all targets share: from an imported model to tile programs, and @main's own, one pass a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcc.passes.base import Pass, get_pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.upstream import Upstream
from xcc.targets.base import get_target

if TYPE_CHECKING:
    from xcc.options import CompileOptions

__all__ = ["BESIDE", "LAUNCH", "MAX_ROW", "TILE_ROW", "front_stages", "gpu_model_passes", "main_stages",
           "tile_pipeline", "whole_pipeline"]

BESIDE = 4          # microseconds of memory traffic of kernels that share a launch, which alone costs a GPU about one
LAUNCH = 1 << 24    # operations in the microsecond in which a GPU starts a kernel, where 8 go with a byte of its memory
MAX_ROW = 1 << 24   # of a GPU's kernel with reductions: few long rows are reduced in parts, the L2 cache has them then
TILE_ROW = 256      # columns of a GPU's tile of a product: the longest row that is reduced in its kernel


def front_stages(*, xt: tuple[Pass, ...] = (), early: tuple[Pass, ...] = (),
                 keep: tuple[str, ...] = (), kernels: dict[str, Any] | None = None,
                 schedule: tuple[Pass, ...] = (), in_place: bool = False) -> tuple[Stage, ...]:
    """Stages ``xt`` to ``vector``; `xt` are passes of the target's own that end stage ``xt``, `early` those that need
    the model's ops before constants are folded, `schedule` those that decide what its `tile` obeys. `kernels` are
    form-kernels' options, where they are not the defaults.

    `keep` names the composites that are a kernel each, decomposed inside it. in_place: see move-views.
    """
    return (
        _model_stage(xt, early, keep, in_place),
        Stage("kernels", (
            get_pass("form-kernels")(**(kernels or {})),
            get_pass("push-results")(),
        )),
        Stage("linalg", (
            *((get_pass("split-beside")(),) if kernels and kernels.get("beside") else ()),
            *((_pass("xt-decompose", fused=True),) if keep else ()),
            get_pass("requantised-floats")(),
            get_pass("xt-to-linalg")(),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
        )),
        Stage("schedule", (
            get_pass("configure")(),
            *schedule,
        )),
        Stage("vector", (
            get_pass("tile")(),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
        )),
    )


def _model_stage(xt: tuple[Pass, ...], early: tuple[Pass, ...], keep: tuple[str, ...], in_place: bool) -> Stage:
    """Stage ``xt``."""
    return Stage("xt", (
        get_pass("xt-simplify")(),
        get_pass("shard")(),                # a rank's part of a weight goes through all else as a weight
        *early,
        get_pass("xt-fold")(),
        get_pass("xt-recognise")(),
        get_pass("fold-scales")(),
        get_pass("xt-fold")(),              # filters times scales in f32, rounded once by what follows
        get_pass("convert-precision")(),
        get_pass("exchange-pairs")(),
        _pass("xt-decompose", keep=keep),
        get_pass("split-groups")(),
        get_pass("channels-last")(),
        _pass("move-views", in_place=in_place),
        get_pass("move-weights")(),
        get_pass("update-in-place")(),      # what targets do to scatters leaves those alone
        *xt,
        get_pass("xt-simplify")(),
        get_pass("xt-fold")(),
        get_pass("pack-bits")(),
        Upstream(pipeline="canonicalize"),
        Upstream(pipeline="cse"),
    ))


def tile_pipeline(options: CompileOptions) -> Pipeline:
    """What runs on a program of the tile dialect, of the target's pipeline: it joins behind stage ``vector``."""
    target = get_target(options.target)
    behind = target.tile_stages(options) if target.tile_stages is not None else \
        target.pipeline(options).after("vector").kernel_part().stages
    return Pipeline((
        Stage("tile", (
            get_pass("configure-tile")(),
            get_pass("deepen-products")(),
            get_pass("lower-tile")(),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
        )),
        *behind,
    ))


def gpu_model_passes() -> tuple[Pass, ...]:
    """What GPUs do to a whole model before kernels are formed, whoever made them."""
    names = ("multiplied-types", "wide-pixels", "merge-products", "aligned-rows", "split-contractions",
             "cut-reductions", "split-reductions", "select-places", "unique-runs", "scatter-places", "split-scans",
             "merge-sorts", "rank-sorts", "bytes-along-k")
    return tuple(get_pass(name)() for name in names)


def _pass(name: str, **options: bool | tuple[str, ...]) -> Pass:
    return get_pass(name)(**options)


def whole_pipeline(back: tuple[Stage, ...], *, xt: tuple[Pass, ...] = (), early: tuple[Pass, ...] = (),
                   keep: tuple[str, ...] = (), kernels: dict[str, Any] | None = None,
                   schedule: tuple[Pass, ...] = (), in_place: bool = False) -> Pipeline:
    """A target's pipeline: the shared stages, then its own, then those of @main."""
    return Pipeline((*front_stages(xt=xt, early=early, keep=keep, kernels=kernels, schedule=schedule,
                                   in_place=in_place), *back, *main_stages()))


def main_stages() -> tuple[Stage, ...]:
    """Stages ``memory`` and ``host``: where the results of @main lie, then the host program."""
    return (
        Stage("memory", (
            get_pass("mark-load-time")(),
            get_pass("place-results")(),
        )),
        Stage("host", (
            get_pass("lower-main")(),
        )),
    )
