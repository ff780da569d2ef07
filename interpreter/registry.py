"""One handler an op: `@op("arith.addf")` over a function that reads the op once and returns what runs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc.passes.shared.registering import registering

if TYPE_CHECKING:
    from xcc.interpreter.machine import Machine

__all__ = ["HANDLERS", "handler_of", "op", "pure"]

# A runner takes the machine and the operands and gives the one result, or a tuple of results.
Runner = Callable[..., Any]
# A handler takes the op and the kernel compiler and gives a runner.
Handler = Callable[[Any, Any], Runner]

HANDLERS: dict[str, Handler] = {}
FAMILIES = ("affine", "arith", "control", "gpu", "math", "matrix", "memref", "nvidia", "statement", "vector",
            "vector_memory", "warpgroup")


def op(*names: str) -> Callable[[Handler], Handler]:
    """Registers a handler for the ops `names`; a name taken twice is an error."""
    return registering(HANDLERS, names, "handlers")


def pure(name: str, function: Callable[..., Any]) -> None:
    """Registers an op that is `function` of its operands and nothing else."""
    def run(_: Machine, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return function(*operands)
    op(name)(lambda *_: run)


@cache
def _load_families() -> None:
    for family in FAMILIES:
        importlib.import_module(f"xcc.interpreter.ops_{family}")


def handler_of(name: str) -> Handler | None:
    """The handler of the op `name`, family files loaded."""
    _load_families()
    return HANDLERS.get(name)
