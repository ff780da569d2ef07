"""The one place that imports the MLIR bindings, and names to annotate with (:mod:`xcc._mlir_types`).

Takes the module ``mlir`` when it has ``dialects.ext`` (Python-defined dialects), else ``torch_mlir``,
which ships all of upstream MLIR. Dialect aliases end in ``_d``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from xcc._mlir_types import (
    AffineExpr,
    AffineMap,
    Attribute,
    AttributeMap,
    Block,
    Context,
    InsertionPoint,
    Location,
    Module,
    Operation,
    OpOperand,
    Region,
    Type,
    Value,
    WalkResult,
)

__all__ = ["ROOT", "AffineExpr", "AffineMap", "Attribute", "AttributeMap", "Block", "Context", "InsertionPoint",
           "Location", "Module", "OpOperand", "Operation", "Region", "Type", "Value", "WalkResult", "ext", "ir",
           "maker", "owner_op", "parent_op", "passmanager", "rewrite", "upstream_context"]


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


if TYPE_CHECKING:
    _Block = Block

    class _Ir:
        """The bindings' module: a test for a block narrows, the rest is `Any`."""

        Block = _Block

        def __getattr__(self, name: str) -> Any: ...


ir: _Ir = _load("ir")


def maker(value: Value, *names: str) -> Operation | None:
    """The operation that gives `value`, where it is called one of `names` if there are any; None for other values."""
    owner = value.owner
    if isinstance(owner, ir.Block) or names and owner.operation.name not in names:
        return None
    return owner.operation


def owner_op(value: Value) -> Operation:
    """The operation that gives `value`, which is no argument of a block."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        raise TypeError("an argument of a block, where a result of an operation was expected")
    return owner.operation


def parent_op(argument: Value) -> Operation:
    """The operation in whose block `argument` is an argument."""
    owner = argument.owner
    if not isinstance(owner, ir.Block):
        raise TypeError(f"a result of {owner.name}, where an argument of a block was expected")
    return owner.owner.operation


def upstream_context() -> Context:
    """A new context that knows upstream's dialects, and lets ops be there that it does not know (``xtv``).

    Loaded are LOADED: upstream's other dialects take as long as these, and make each canonicalisation slower. A text or
    a pass that needs one of them loads it.
    """
    out = ir.Context(load_on_create_dialects=())
    for name in LOADED:
        out.get_dialect_descriptor(name)        # without its Python module, which takes longer
    out.allow_unregistered_dialects = True
    return out


passmanager: Any = _load("passmanager")
rewrite: Any = _load("rewrite")
ext: Any = _load("dialects.ext")

OWN_DIALECTS = ("host", "tile", "xt", "xtv")
"""Dialects without a module of the bindings. The bindings look for one at every op of a namespace that they do not
know, through the whole import machinery; an empty module ends the search."""

for _name in OWN_DIALECTS:
    sys.modules.setdefault(f"{ROOT}.dialects.{_name}", ModuleType(f"{ROOT}.dialects.{_name}"))

_DIALECTS = ("affine", "amdgpu", "arith", "bufferization", "cf", "func", "gpu", "irdl", "linalg", "llvm", "math",
             "memref", "nvgpu", "nvvm", "openmp", "rocdl", "scf", "tensor", "transform", "ub", "vector")

LOADED = ("affine", "amdgpu", "arith", "cf", "func", "gpu", "irdl", "linalg", "llvm", "math", "memref", "nvgpu", "nvvm",
          "rocdl", "scf", "tensor", "ub", "vector")
"""The dialects that xcc builds ops of."""

if TYPE_CHECKING:       # each by name, so that a name that there is not is an error
    _dialect: Any = None
    affine_d = amdgpu_d = arith_d = bufferization_d = cf_d = func_d = gpu_d = irdl_d = linalg_d = llvm_d = _dialect
    math_d = memref_d = nvgpu_d = nvvm_d = openmp_d = rocdl_d = scf_d = tensor_d = transform_d = ub_d = _dialect
    vector_d = _dialect
else:
    def __getattr__(name: str) -> object:
        """``arith_d``, ``linalg_d``, ...: loaded at first use, so that a tool pays for what it touches."""
        if name.endswith("_d") and name[:-2] in _DIALECTS:
            module = _load(f"dialects.{name[:-2]}")
            globals()[name] = module
            return module
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
