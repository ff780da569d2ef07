"""Upstream MLIR passes as passes of ours, so that one pipeline names both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xcc._mlir import passmanager
from xcc.passes.base import Pass, PassContext


@dataclass(frozen=True)
class Upstream(Pass):
    """Runs an upstream pipeline given in its own text form, e.g. ``canonicalize`` or ``func.func(cse)``.

    In a pipeline's text it prints as ``mlir(<pipeline>)``.
    """

    name: ClassVar[str] = "mlir"
    pipeline: str = ""

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context:
            passmanager.PassManager.parse(f"builtin.module({self.pipeline})").run(module.operation)

    def __str__(self) -> str:
        return f"mlir({self.pipeline})"
