"""The stages of a CPU compilation."""

from __future__ import annotations

from xcc.options import CompileOptions
from xcc.passes.pipeline import Pipeline
from xcc.targets.front import front_stages, whole_pipeline

SINGLE = 48         # operations in the time of an element of a gather: vectors of two units for a cycle and a half
LAUNCH = 10000      # operations in the 0.1 us of a call of a kernel
PIECE = 32          # elements of a tile, as most are

DECISIONS = ("peel-tails", "block-depth", "blocked-sums", "deal-rows", "pack-rows", "pack-columns", "decode-panels",
             "keep-values", "park-values", "epilogue-strips", "unroll-steps", "prefetch-panels",
             "prefetch-inputs", "non-temporal-stores")
"""What is decided ahead of `tile`, which makes the loops that the attributes say."""

STAGES = """
cpu:  row-division, share-operands, early-reductions, join-stores, stream-tiles, prefetch-tiles, peel-instances, retile,
      amx-tiles, prefetch-stores, block-loops, expand-math, expand-floats, narrow-gathers, unroll-vectors;
llvm: join-sizes, kernel-abi, lower-forall, mlir(lower-affine), mlir(canonicalize), mlir(cse),
      mlir(expand-strided-metadata), mlir(lower-affine), mlir(convert-scf-to-cf), mlir(convert-to-llvm),
      mlir(reconcile-unrealized-casts), masked-bits
"""
"""From tile programs to the LLVM dialect."""


def kernel_pipeline() -> Pipeline:
    """What runs on a tile program alone."""
    return Pipeline.parse(STAGES)


def tile_stages(_: CompileOptions) -> Pipeline:
    """The stages of :func:`pipeline` that run on a kernel alone, behind ``vector``."""
    return kernel_pipeline()


def pipeline(options: CompileOptions) -> Pipeline:
    """The stages of a compilation with `options` (a CompileOptions)."""
    return whole_pipeline(STAGES, front_stages(
        kernels=f"prologue=broadcast,slice,widen,once single={SINGLE} launch={LAUNCH} piece={PIECE}",
        early="integer-contractions, block-products, fourier-rows", schedule=", ".join(DECISIONS),
        xt="transposed-convolution, skip-taps, winograd, explicit-padding, separate-windows, xt-fold, "
           "split-concatenations, widen-products, add-columns, unique-runs, halved-ranks, last-dim-sorts, "
           "cut-reductions{where-it-lies=true}, pack-weights"))
