"""Loads Python files in which users register their own passes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from xcc.diagnostics import UserError

if TYPE_CHECKING:
    from xcc.passes.pipeline import Pipeline

_LOADED: dict[str, str] = {}


def load_plugin(path: str) -> None:
    """Runs the file `path` once as a module of its own; its ``@register_pass`` classes are known afterwards.

    ``module:package.name`` imports that module instead.
    """
    if path.startswith("module:"):
        importlib.import_module(path.removeprefix("module:"))
        return
    file = Path(path).resolve()
    if str(file) in _LOADED:
        return
    name = f"xcc_plugin_{len(_LOADED)}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UserError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _LOADED[str(file)] = name
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise UserError(f"{path}: {type(e).__name__}: {e}") from e


def loaded_plugins() -> tuple[str, ...]:
    """The files loaded so far: kernel compiler processes load the same."""
    return tuple(_LOADED)


def plugins_of(pipeline: Pipeline) -> tuple[str, ...]:
    """Where the passes in `pipeline` that are not xcc's own come from; UserError for a class typed at a prompt."""
    found = []
    for stage in pipeline:
        for p in stage.passes:
            name = type(p).__module__
            if name.startswith(("xcc.", "xcc_plugin_")):
                continue
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if not file:
                raise UserError(f"pass '{p.name}' runs in compiler processes, so its class must be in a file")
            found.append(str(Path(file).resolve()) if name == "__main__" else f"module:{name}")
    return tuple(dict.fromkeys(found))
