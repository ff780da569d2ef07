"""The one place that imports the MLIR bindings.

Takes the module ``mlir`` when it has ``dialects.ext`` (Python-defined dialects), else ``torch_mlir``,
which ships all of upstream MLIR. Dialect aliases end in ``_d``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def _find_root() -> str:
    for root in ("mlir", "torch_mlir"):
        try:
            importlib.import_module(f"{root}.dialects.ext")
        except ImportError:
            continue
        return root
    raise ImportError("xcc needs the MLIR Python bindings: pip install torch-mlir==20261001")


ROOT = _find_root()


def _load(name: str) -> Any:
    return importlib.import_module(f"{ROOT}.{name}")


ir: Any = _load("ir")
passmanager: Any = _load("passmanager")
rewrite: Any = _load("rewrite")
ext: Any = _load("dialects.ext")

OWN_DIALECTS = ("host", "tile", "xt", "xtv")
"""Dialects without a module of the bindings. The bindings look for one at every op of a namespace that they do not
know, through the whole import machinery; an empty module ends the search."""

for _name in OWN_DIALECTS:
    sys.modules.setdefault(f"{ROOT}.dialects.{_name}", ModuleType(f"{ROOT}.dialects.{_name}"))

_DIALECTS = ("affine", "amdgpu", "arith", "bufferization", "cf", "func", "gpu", "linalg", "llvm", "math", "memref",
             "nvgpu", "nvvm", "openmp", "rocdl", "scf", "tensor", "transform", "ub", "vector")


def __getattr__(name: str) -> Any:
    """``arith_d``, ``linalg_d``, ...: loaded at first use, so that a tool pays for what it touches."""
    if name.endswith("_d") and name[:-2] in _DIALECTS:
        module = _load(f"dialects.{name[:-2]}")
        globals()[name] = module
        return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
