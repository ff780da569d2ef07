"""Upstream MLIR passes as passes of ours, so that one pipeline names both."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from xcc._mlir import Module, passmanager
from xcc.passes.base import Pass, PassContext


@dataclass(frozen=True)
class Upstream(Pass):
    """Runs an upstream pipeline given in its own text form, e.g. ``canonicalize`` or ``func.func(cse)``.

    In a pipeline's text it prints as ``mlir(<pipeline>)``.
    """

    name: ClassVar[str] = "mlir"
    pipeline: str = ""

    def run(self, module: Module, ctx: PassContext) -> None:
        with module.context as context:
            known = _MANAGERS.known.setdefault(context, {})
            if self.pipeline not in known:
                manager = passmanager.PassManager.parse(f"builtin.module({self.pipeline})")
                manager.enable_verifier(False)      # a stage is verified when it ends
                known[self.pipeline] = manager
            known[self.pipeline].run(module.operation)

    def __str__(self) -> str:
        return f"mlir({self.pipeline})"


class _Managers(threading.local):
    """The pass managers of this thread by context and pipeline: one collects the patterns of its passes, which takes
    longer than a small kernel, once."""

    def __init__(self) -> None:
        self.known: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


_MANAGERS = _Managers()
