"""Composites as primitive ops: one pattern a composite, in the file of its family."""

import importlib
from collections.abc import Callable
from typing import Any

from xcc.passes.shared.registering import registering

FAMILIES = ("arg_reduce", "attention", "attention_gradient", "collective", "norm", "quant", "random", "recurrent",
            "resize", "sampling", "signal")
PATTERNS: dict[str, Callable[..., Any]] = {}


def decomposes(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function (attrs, *operands) -> replacement value(s), or None when it leaves the op alone."""
    return registering(PATTERNS, [name], "decompositions")


def load() -> dict[str, Callable[..., Any]]:
    """All patterns by op name."""
    for family in FAMILIES:
        importlib.import_module(f"xcc.passes.xt.decompose.{family}")
    return PATTERNS
