"""Which ops may be left when a stage ends: data, checked after each stage (passes/legality.py)."""

from __future__ import annotations

_BUILTIN = ("builtin.module", "func.func", "func.return")
_SCALAR = ("arith.*", "math.*", "scf.*", "cf.assert")

_MAIN = ("func.func", "func.return", "xtv.dispatch", "xt.reshape", "xt.bitcast", "xtv.if", "xtv.while", "xtv.scan",
         "xtv.yield", "xtv.require", "xtv.fail", "xt.dim", "xt.constant", "xt.weight", "xt.all_gather", "xt.all_reduce",
         "xt.all_to_all", "xt.collective_broadcast", "xt.permute", "xt.reduce_scatter")

TILES = (*_BUILTIN, *_SCALAR, "memref.*", "vector.*", "affine.apply", "affine.min", "affine.max", "ub.poison")
"""What tile programs are made of, and what a target's own stages may leave of them."""
BLOCKS = ("tile.accumulate", "tile.atomic", "tile.compare_swap", "tile.sort", "gpu.barrier")
"""What tile programs hold besides, for targets that have a rule for it."""
PLANNED = (*TILES, *BLOCKS, "builtin.unrealized_conversion_cast")
"""Likewise behind stage `plan` of a GPU, where conversions between layouts are casts."""
THREADS = (*TILES, "builtin.unrealized_conversion_cast", "gpu.*", "llvm.*", "cf.*", "xtg.*")
"""Likewise of the code of one thread of a GPU."""

_STRUCTURED = (*_BUILTIN, *_SCALAR, "linalg.generic", "linalg.fill", "linalg.yield", "linalg.index", "tensor.empty",
               "tensor.extract", "tensor.dim", "tensor.insert_slice", "tensor.pad", "tensor.yield", "memref.*",
               "affine.apply", "ub.poison", "vector.*", *BLOCKS)

LEGAL: dict[str, tuple[str, ...]] = {
    "xt": ("builtin.module", "func.func", "func.return", "xt.*", "xtv.*"),
    "kernels": ("builtin.module", "func.func", "func.return", "xt.*", "xtv.*"),
    "linalg": _STRUCTURED,
    "schedule": _STRUCTURED,
    "vector": (*TILES, *BLOCKS),
    "tile": (*TILES, *BLOCKS),
    "memory": ("builtin.module", "func.func", "func.return", "xt.*", "xtv.*"),
    "host": (*_BUILTIN, "host.*"),
}
"""Stage -> patterns of op names (``*`` at the end matches the rest), of the stages that all targets share: those of its
own are in `Target.legal`. A stage that is in neither is not checked."""

LEGAL_IN_MAIN: dict[str, tuple[str, ...]] = {"kernels": _MAIN, "memory": _MAIN}
"""The stricter list for functions that are no kernel (those without the attribute ``xt.kernel``)."""
