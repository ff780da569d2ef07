"""What stands behind ``xcc.compile``: the cache of artifacts, then a compilation in a process of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.cache import model_cache
from xcc.diagnostics import UserError
from xcc.options import CompileOptions
from xcc.process.isolation import can_isolate, compile_apart
from xcc.runtime.artifact import Artifact

if TYPE_CHECKING:
    from xcc.passes.pipeline import Pipeline

__all__ = ["compile_to_artifact"]


def compile_to_artifact(model: Any, options: CompileOptions, pipeline: Pipeline | None = None) -> Artifact:
    """The artifact of `model`, in memory or mapped from a file in the cache (or from one that has no name any more)."""
    from xcc.driver.plugins import loaded_plugins
    from xcc.frontends.torch.program import captured, is_program

    if pipeline is not None and not hasattr(pipeline, "stage_names"):
        raise UserError(f"pipeline is a {type(pipeline).__name__}; give a Pipeline (Pipeline.parse makes one of text)")
    if is_program(model) and not isinstance(model, (str, Path)):
        model = captured(model)
    entry = model_cache.ticket(model, options, loaded_plugins()) if pipeline is None else None
    found = _found(entry)
    if found is not None:
        return found
    if is_program(model):
        model = captured(model)
    plugins = can_isolate(model, pipeline) if options.isolate else None
    if plugins is None:
        return _compile_here(model, options, pipeline)
    if entry is None:
        return _compile_apart(model, options, pipeline, plugins, entry)
    with entry.claimed():
        return _found(entry) or _compile_apart(model, options, pipeline, plugins, entry)


def _found(entry: model_cache.Ticket | None) -> Artifact | None:
    """The artifact of an equal compilation before."""
    found = entry.find() if entry is not None else None
    if found is None:
        return None
    try:
        return Artifact.read(found.path)
    except UserError:
        found.remove()          # damaged
        return None


def _compile_apart(model: object, options: CompileOptions, pipeline: Pipeline | None, plugins: tuple[str, ...],
                   entry: model_cache.Ticket | None) -> Artifact:
    output = _output()
    try:
        files, facts = compile_apart(model, options, pipeline, plugins, output)
        stored = entry.store(output, files, facts, move=True) if entry is not None else None
        return Artifact.read(stored.path if stored is not None else output)
    finally:
        output.unlink(missing_ok=True)


def _compile_here(model: Any, options: CompileOptions, pipeline: Pipeline | None) -> Artifact:
    from xcc.driver.ranks import compile_ranks

    artifact = compile_ranks(model, options, pipeline).artifact
    assert artifact is not None
    return artifact


def _output() -> Path:
    """A new file's path in the cache's folder, elsewhere when that cannot be written."""
    try:
        path = model_cache.temporary()
        path.touch(exist_ok=False)
        return path
    except OSError:
        handle, name = tempfile.mkstemp(prefix="xcc-", suffix=".xcm")
        os.close(handle)
        return Path(name)
