"""The built-in passes: a flat alphabetical table from a pass's name to the module that defines it."""

from __future__ import annotations

import importlib

BUILTIN: dict[str, str] = {
    "aligned-rows": "xcc.passes.xt.aligned_rows",
    "amd-kernel-functions": "xcc.passes.gpu.amd_kernel_functions",
    "amx-tiles": "xcc.passes.vector.amx_tiles",
    "assign-layouts": "xcc.passes.gpu.assign_layouts",
    "block-loops": "xcc.passes.vector.block_loops",
    "buffer-accesses": "xcc.passes.gpu.buffer_accesses",
    "bytes-along-k": "xcc.passes.xt.bytes_along_k",
    "channels-last": "xcc.passes.xt.channels_last",
    "configure": "xcc.passes.linalg.configure",
    "configure-tile": "xcc.passes.tile.configure_tile",
    "convert-precision": "xcc.passes.xt.convert_precision",
    "convert-layouts": "xcc.passes.gpu.convert_layouts",
    "copy-pointers": "xcc.passes.gpu.copy_pointers",
    "cut-reductions": "xcc.passes.xt.cut_reductions",
    "distribute": "xcc.passes.gpu.distribute",
    "early-launch": "xcc.passes.gpu.early_launch",
    "epilogue-pieces": "xcc.passes.gpu.epilogue_pieces",
    "expand-floats": "xcc.passes.vector.expand_floats",
    "expand-math": "xcc.passes.vector.expand_math",
    "explicit-padding": "xcc.passes.xt.explicit_padding",
    "fold-scales": "xcc.passes.xt.fold_scales",
    "form-kernels": "xcc.passes.xt.form_kernels",
    "group-tiles": "xcc.passes.gpu.group_tiles",
    "hardware-math": "xcc.passes.gpu.hardware_math",
    "integer-contractions": "xcc.passes.xt.integer_contractions",
    "join-grids": "xcc.passes.gpu.join_grids",
    "kernel-abi": "xcc.passes.vector.kernel_abi",
    "lower-forall": "xcc.passes.vector.lower_forall",
    "lower-tile": "xcc.passes.tile.lower_tile",
    "masked-bits": "xcc.passes.vector.masked_bits",
    "merge-products": "xcc.passes.xt.merge_products",
    "move-views": "xcc.passes.xt.move_views",
    "move-weights": "xcc.passes.xt.move_weights",
    "multiplied-types": "xcc.passes.xt.multiplied_types",
    "merge-sorts": "xcc.passes.xt.merge_sorts",
    "narrow-gathers": "xcc.passes.vector.narrow_gathers",
    "narrow-indices": "xcc.passes.gpu.narrow_indices",
    "narrow-math": "xcc.passes.gpu.narrow_math",
    "nvvm-kernel-functions": "xcc.passes.gpu.nvvm_kernel_functions",
    "overlap-products": "xcc.passes.gpu.overlap_products",
    "pack-bits": "xcc.passes.xt.pack_bits",
    "pack-weights": "xcc.passes.xt.pack_weights",
    "peel-steps": "xcc.passes.gpu.peel_steps",
    "persistent-grid": "xcc.passes.gpu.persistent_grid",
    "pipeline-loads": "xcc.passes.gpu.pipeline_loads",
    "plan-shared-memory": "xcc.passes.gpu.plan_shared_memory",
    "prefetch-epilogue": "xcc.passes.gpu.prefetch_epilogue",
    "prefetch-fragments": "xcc.passes.gpu.prefetch_fragments",
    "rank-sorts": "xcc.passes.xt.rank_sorts",
    "reads-first": "xcc.passes.gpu.reads_first",
    "requantised-floats": "xcc.passes.xt.requantised_floats",
    "retile": "xcc.passes.tile.retile",
    "row-division": "xcc.passes.vector.row_division",
    "scalar-indices": "xcc.passes.gpu.scalar_indices",
    "scatter-places": "xcc.passes.xt.scatter_places",
    "select-places": "xcc.passes.xt.select_places",
    "separate-windows": "xcc.passes.xt.separate_windows",
    "split-beside": "xcc.passes.xt.split_beside",
    "split-contractions": "xcc.passes.xt.split_contractions",
    "split-groups": "xcc.passes.xt.split_groups",
    "split-reductions": "xcc.passes.xt.split_reductions",
    "split-scans": "xcc.passes.xt.split_scans",
    "stage-operands": "xcc.passes.gpu.stage_operands",
    "streamed-lines": "xcc.passes.gpu.streamed_lines",
    "test-fail": "xcc.passes.testing",
    "tile": "xcc.passes.linalg.tile",
    "transposed-convolution": "xcc.passes.xt.transposed_convolution",
    "unique-runs": "xcc.passes.xt.unique_runs",
    "unroll-vectors": "xcc.passes.vector.unroll_vectors",
    "update-in-place": "xcc.passes.xt.update_in_place",
    "warpgroup-matrix": "xcc.passes.gpu.warpgroup_matrix",
    "wide-pixels": "xcc.passes.xt.wide_pixels",
    "winograd": "xcc.passes.xt.winograd",
    "widen-products": "xcc.passes.xt.widen_products",
    "xt-decompose": "xcc.passes.xt.xt_decompose",
    "xt-fold": "xcc.passes.xt.xt_fold",
    "xt-recognise": "xcc.passes.xt.xt_recognise",
    "xt-simplify": "xcc.passes.xt.xt_simplify",
    "xt-to-linalg": "xcc.passes.xt_to_linalg.xt_to_linalg",
}


def load(name: str) -> None:
    """Imports the module of the built-in pass `name`, if there is one."""
    if name in BUILTIN:
        importlib.import_module(BUILTIN[name])


def load_all() -> None:
    for module in dict.fromkeys(BUILTIN.values()):
        importlib.import_module(module)
