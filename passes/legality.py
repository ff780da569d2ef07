"""Checks, when a stage ends, that only the ops are left that may be (passes/legal_ops.py, and the target's own)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import CompilerBug
from xcc.passes.legal_ops import LEGAL, LEGAL_IN_MAIN
from xcc.passes.walk import ops_where

if TYPE_CHECKING:
    from xcc._mlir import Module, Operation


@cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a name fits one of `patterns`; there are few names, and many ops."""
    pattern = re.compile("|".join(re.escape(p).replace(r"\*", ".*") for p in patterns))
    return cache(lambda name: pattern.fullmatch(name) is not None)


def illegal_ops(module: Module, stage: str, own: Mapping[str, tuple[str, ...]]) -> list[Any]:
    """The ops of `module` that must not be left after `stage`; `own`: what is legal in the target's own stages."""
    legal = LEGAL.get(stage) or own.get(stage)
    if legal is None:
        return []
    found = _not_matching(module.operation, legal)
    if stage in LEGAL_IN_MAIN:
        for op in module.body:
            if "xt.kernel" not in op.attributes:
                found += _not_matching(op.operation, LEGAL_IN_MAIN[stage])
    return found


def _not_matching(root: Operation, patterns: tuple[str, ...]) -> list[Any]:
    legal = _matcher(patterns)
    return ops_where(root, lambda op: not legal(op.name))


def check_legal(module: Module, stage: str, own: Mapping[str, tuple[str, ...]]) -> None:
    """CompilerBug that lists the ops (name, times, first location) that `stage` should have removed."""
    seen: dict[str, list[Any]] = {}
    for op in illegal_ops(module, stage, own):
        seen.setdefault(op.name, []).append(op)
    if seen:
        what = ", ".join(f"{name} ({len(ops)}x, first at {ops[0].location})" for name, ops in sorted(seen.items()))
        raise CompilerBug(f"after stage '{stage}' there should be no {what}")
