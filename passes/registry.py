"""The built-in passes: names by the room that they lie in, each in a file of its name, imported when asked for."""

from __future__ import annotations

import importlib

ROOMS: dict[str, str] = {
    "gpu": "align-walks amd-kernel-functions assign-layouts buffer-accesses coarsen-grid convert-layouts copy-pointers "
           "distribute early-launch epilogue-pieces group-tiles hardware-math join-grids masked-gathers narrow-indices "
           "narrow-math nvvm-kernel-functions overlap-products peel-steps persistent-grid pipeline-loads "
           "plan-shared-memory predicated-stores prefetch-epilogue prefetch-fragments private-updates "
           "reads-first rotate-loads scalar-bits scalar-indices stage-operands streamed-lines warpgroup-matrix "
           "whole-steps",
    "host": "lower-main mark-load-time place-results",
    "linalg": "block-depth blocked-sums configure deal-rows decode-panels epilogue-strips join-columns keep-values "
              "non-temporal-stores pack-columns pack-rows park-values peel-tails prefetch-inputs prefetch-panels "
              "split-rows stream-k tile unroll-steps",
    "tile": "configure-tile deepen-products early-reductions form-blocks join-stores lower-tile peel-instances "
            "prefetch-tiles retile share-operands stream-tiles",
    "vector": "amx-tiles block-loops common-bounds expand-floats expand-math join-sizes kernel-abi lower-forall "
              "masked-bits narrow-gathers prefetch-stores row-division unroll-vectors",
    "xt": "add-columns aligned-rows block-products box-pairs channels-last convert-precision cut-reductions "
          "early-gathers exchange-pairs explicit-padding filter-gradients fold-scales form-kernels fourier-rows "
          "halved-ranks integer-contractions join-groups last-dim-sorts merge-products merge-sorts move-views "
          "move-weights multiplied-types one-hot one-pass-moments operands-along-k pack-bits pack-weights place-parts "
          "push-results rank-sorts requantised-floats scatter-places select-places separate-windows shard skip-taps "
          "split-beside split-concatenations split-contractions split-groups split-reductions split-scans "
          "transposed-convolution unique-runs update-in-place wide-elements wide-pixels widen-products winograd "
          "xt-decompose xt-fold xt-recognise xt-simplify",
    "xt_to_linalg": "xt-to-linalg",
}

BUILTIN = {name: f"xcc.passes.{room}.{name.replace('-', '_')}"
           for room, names in ROOMS.items() for name in names.split()}
BUILTIN["test-fail"] = "xcc.passes.testing"


def load(name: str) -> None:
    """Imports the module of the built-in pass `name`, if there is one."""
    if name in BUILTIN:
        importlib.import_module(BUILTIN[name])


def load_all() -> None:
    for module in dict.fromkeys(BUILTIN.values()):
        importlib.import_module(module)
