"""Which ops may be left when a stage ends: data, checked after each stage."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from xcc.diagnostics import CompilerBug
from xcc.passes.walk import ops_where

__all__ = ["LEGAL", "check_legal", "illegal_ops"]

_BUILTIN = ("builtin.module", "func.func", "func.return")
_SCALAR = ("arith.*", "math.*", "scf.*", "cf.assert")
_TILES = ("memref.*", "vector.*", "affine.apply", "affine.min", "affine.max", "ub.poison")

LEGAL: dict[str, tuple[str, ...]] = {
    "xt": ("builtin.module", "func.func", "func.return", "xt.*", "xtv.*"),
    "kernels": ("builtin.module", "func.func", "func.return", "xt.*", "xtv.*"),
    "linalg": (*_BUILTIN, *_SCALAR, "linalg.generic", "linalg.fill", "linalg.yield", "linalg.index", "tensor.empty",
               "tensor.extract", "tensor.dim", "tensor.pad", "tensor.yield", "memref.*", "affine.apply", "ub.poison",
               "vector.*", "xtg.sort", "xtg.accumulate", "gpu.barrier"),
    "vector": (*_BUILTIN, *_SCALAR, *_TILES, "xtg.sort", "xtg.accumulate", "gpu.barrier"),
    "cpu": (*_BUILTIN, "func.call", *_SCALAR, *_TILES, "builtin.unrealized_conversion_cast", "llvm.*"),
    "gpu": (*_BUILTIN, *_SCALAR, *_TILES, "builtin.unrealized_conversion_cast",
            "gpu.*", "nvgpu.*", "nvvm.*", "amdgpu.*", "rocdl.*", "llvm.*", "cf.*", "xtg.*"),
    "llvm": ("builtin.module", "llvm.*"),
    "nvvm": ("builtin.module", "gpu.module", "llvm.*", "nvvm.*"),
    "rocdl": ("builtin.module", "gpu.module", "llvm.*", "rocdl.*"),
}
"""Stage -> patterns of op names (``*`` at the end matches the rest). A stage that is not here is not checked."""

LEGAL_IN_MAIN: dict[str, tuple[str, ...]] = {
    "kernels": ("func.func", "func.return", "xtv.dispatch", "xt.reshape", "xt.bitcast", "xtv.if", "xtv.while",
                "xtv.scan", "xtv.yield", "xtv.require", "xtv.fail", "xt.dim", "xt.constant", "xt.weight"),
}
"""The stricter list for functions that are no kernel (those without the attribute ``xt.kernel``)."""


@cache
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(p).replace(r"\*", ".*") for p in patterns))


def illegal_ops(module: Any, stage: str) -> list[Any]:
    """The ops of `module` that must not be left after `stage`."""
    if stage not in LEGAL:
        return []
    found = _not_matching(module.operation, LEGAL[stage])
    if stage in LEGAL_IN_MAIN:
        for op in module.body:
            if "xt.kernel" not in op.attributes:
                found += _not_matching(op.operation, LEGAL_IN_MAIN[stage])
    return found


def _not_matching(root: Any, patterns: tuple[str, ...]) -> list[Any]:
    legal = _matcher(patterns)
    return ops_where(root, lambda op: legal.fullmatch(op.name) is None)


def check_legal(module: Any, stage: str) -> None:
    """CompilerBug that lists the ops (name, times, first location) that `stage` should have removed."""
    seen: dict[str, list[Any]] = {}
    for op in illegal_ops(module, stage):
        seen.setdefault(op.name, []).append(op)
    if seen:
        what = ", ".join(f"{name} ({len(ops)}x, first at {ops[0].location})" for name, ops in sorted(seen.items()))
        raise CompilerBug(f"after stage '{stage}' there should be no {what}")
