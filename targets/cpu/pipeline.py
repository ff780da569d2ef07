"""The stages of a CPU compilation, one pass a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc.passes.base import Pass, get_pass, parse_pass
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.upstream import Upstream
from xcc.targets.front import whole_pipeline

if TYPE_CHECKING:
    from xcc.options import CompileOptions

SINGLE = 48         # operations in the time of an element of a gather: vectors of two units for a cycle and a half
LAUNCH = 10000      # operations in the 0.1 us of a call of a kernel
PIECE = 32          # elements of a tile, as most are

DECISIONS = ("peel-tails", "block-depth", "deal-rows", "pack-rows", "pack-columns", "decode-panels", "keep-values",
             "park-values", "epilogue-strips", "prefetch-panels", "prefetch-inputs", "non-temporal-stores")
"""What is decided ahead of `tile`, which makes the loops that the attributes say."""


def vector_stages() -> tuple[Stage, ...]:
    """From tile programs to the LLVM dialect."""
    return (
        Stage("cpu", (
            _pass("amx-tiles"),
            _pass("row-division"),
            _pass("share-operands"),
            _pass("early-reductions"),
            _pass("stream-tiles"),
            _pass("prefetch-tiles"),
            _pass("peel-instances"),
            _pass("retile"),
            _pass("block-loops"),
            parse_pass("expand-math{libm=true}"),
            _pass("expand-floats"),
            _pass("narrow-gathers"),
            _pass("unroll-vectors"),
        )),
        Stage("llvm", (
            _pass("kernel-abi"),
            _pass("lower-forall"),
            Upstream(pipeline="lower-affine"),
            Upstream(pipeline="canonicalize"),
            Upstream(pipeline="cse"),
            Upstream(pipeline="expand-strided-metadata"),
            Upstream(pipeline="lower-affine"),
            Upstream(pipeline="convert-scf-to-cf"),
            Upstream(pipeline="convert-to-llvm"),
            Upstream(pipeline="reconcile-unrealized-casts"),
            _pass("masked-bits"),
        )),
    )


def _pass(name: str) -> Pass:
    return get_pass(name)()


def kernel_pipeline() -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline(vector_stages())


def pipeline(options: CompileOptions) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return whole_pipeline(
        vector_stages(),
        kernels={"prologue": ("broadcast", "widen", "once"), "single": SINGLE, "launch": LAUNCH, "piece": PIECE},
        early=(_pass("integer-contractions"),),
        schedule=tuple(map(_pass, DECISIONS)),
        xt=(_pass("transposed-convolution"), _pass("skip-taps"), _pass("winograd"), _pass("explicit-padding"),
            _pass("separate-windows"), _pass("xt-fold"),
            _pass("split-concatenations"), _pass("widen-products"), _pass("pack-weights")))
