"""Reads what the user wants compiled into a module of some stage and its weights."""

from __future__ import annotations

import importlib
import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.context import parse_module, shared_context
from xcc.diagnostics import CompilerBug, UserError, XccError, one_line
from xcc.driver.reproducer import import_command
from xcc.frontends.torch.program import is_program
from xcc.options import CompileOptions
from xcc.weights import WeightStore

if TYPE_CHECKING:
    from xcc._mlir import Module

__all__ = ["STAGE_ATTRIBUTE", "Source", "is_reference", "load_source"]

STAGE_ATTRIBUTE = "xcc.stage"
"""Module attribute of a dumped stage: which stage it is the result of."""

FRONTENDS: dict[str, str] = {
    ".onnx": "xcc.frontends.onnx.importer",
    ".pt2": "xcc.frontends.torch.importer",
}
"""File suffix -> module with ``load(model, dims, fix) -> (ir.Module, WeightStore)``, as in :func:`xcc.compile`."""


@dataclass
class Source:
    """A module, its weights, and the stage that it is the result of ("" for a fresh import)."""

    module: Module
    weights: WeightStore
    stage: str
    name: str


def is_reference(model: Any) -> bool:
    """Whether `model` is a kernel in a file, ``kernels.py::softmax``, or an .mlir file with a tile program."""
    if not isinstance(model, (str, Path)):
        return False
    path = Path(model)
    if path.suffix != ".mlir" or not path.is_file():
        return ".py::" in str(model)
    return b"tile.grid" in path.read_bytes()


def load_source(model: Any, options: CompileOptions) -> Source:
    """From a path (.onnx, .pt2, .mlir), an ``onnx.ModelProto``, or a PyTorch program, exported or captured."""
    if isinstance(model, (str, Path)):
        path = Path(model)
        if not path.is_file():
            raise UserError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
        if path.suffix == ".mlir":
            if options.fix:
                raise UserError(f"{path}: inputs are fixed when a model is imported, not in an .mlir file")
            return _load_mlir(path)
        if path.suffix not in FRONTENDS:
            raise UserError(f"{path}: xcc compiles .onnx, .pt2 and .mlir files")
        return _import(FRONTENDS[path.suffix], path, options, path.stem)
    kind = f"{type(model).__module__}.{type(model).__name__}"
    if hasattr(model, "SerializeToString") and hasattr(model, "opset_import"):
        return _import(FRONTENDS[".onnx"], model, options, model.graph.name or "model")
    if is_program(model):
        return _import(FRONTENDS[".pt2"], model, options, "model")
    raise UserError(f"cannot compile a {kind}; give a path, an onnx.ModelProto or a torch.export.ExportedProgram"
                    + ("; torch.compile(f, backend='xcc') compiles functions" if callable(model) else ""))


def _import(frontend: str, model: Any, options: CompileOptions, name: str) -> Source:
    try:
        loader = importlib.import_module(frontend)
    except ModuleNotFoundError as e:
        raise UserError(f"reading this model needs the package '{e.name}'") from None
    dims = {name: low if low == high else (low, high) for name, low, high in options.dims}
    try:
        module, weights = loader.load(model, dims, options.fixed)
    except UserError as e:
        e.message = one_line(e.message)
        raise
    except XccError:
        raise
    except Exception as e:
        raise _import_failed(model, options, e) from e
    module.context.enable_multithreading(False)     # kernels have processes of their own, and the CLI forks
    return Source(module, weights, "", name)


def _import_failed(model: Any, options: CompileOptions, error: Exception) -> XccError:
    """A UserError when onnx itself finds the model malformed, else our bug."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    if not is_program(model):
        import onnx

        try:
            onnx.checker.check_model(str(model) if isinstance(model, Path) else model)
        except Exception as e:
            return UserError(f"{model if isinstance(model, Path) else 'model'}: malformed: {str(e).splitlines()[0]}")
    details = "".join(traceback.format_exception(error))
    if not isinstance(model, Path):
        return CompilerBug(f"importing failed: {what}", details=details)
    return CompilerBug(f"importing failed: {what}", str(model), import_command(model, options), details)


def _load_mlir(path: Path) -> Source:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: cannot be read: {e}") from None
    module = parse_module(text, shared_context(), str(path))
    attributes = module.operation.attributes
    stage = attributes[STAGE_ATTRIBUTE].value if STAGE_ATTRIBUTE in attributes else ""
    return Source(module, _weights_beside(path, module), stage, path.stem)


def _weights_beside(path: Path, module: Module) -> WeightStore:
    """``D/02-linalg.mlir`` reads ``D/02-linalg.safetensors``; no file means no weights. Structure can be looked at
    without their values, which are asked for where they are used."""
    from xcc.passes.walk import ops_where
    from xcc.weight_files import read_weights

    beside = path.with_suffix(".safetensors")
    store = read_weights(beside) if beside.is_file() else WeightStore()
    for op in ops_where(module, lambda op: op.name == "xt.weight"):
        name = op.attributes["name"].value
        if name not in store:
            where = re.match(r'loc\(".*":(\d+:\d+)\)', str(op.location))
            store.missing[name] = (f"{path}{f':{where[1]}' if where else ''}: the weight '{name}' has no value: "
                                   f"{beside} {'lacks it' if beside.is_file() else 'is not there'}")
    return store
