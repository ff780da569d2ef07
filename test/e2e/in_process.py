"""Compiles in the process of a test what ``xcc.compile`` gives to a child of another: starting one takes as long as
compiling a small model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from xcc.options import CompileOptions

__all__ = ["STAND_INS"]


def _compile(model: Any, options: CompileOptions, pipeline: Any, _plugins: Any, output: Path) -> tuple[Any, Any]:
    """As xcc.process.isolation.compile_apart does."""
    from xcc.driver.ranks import compile_ranks

    compiled = compile_ranks(model, replace(options, isolate=False), pipeline)
    assert compiled.artifact is not None
    compiled.artifact.save(output)
    return compiled.files, {"chip": compiled.artifact.manifest["chip"], "kernels": len(compiled.kernels)}


def _converted_ops(frontend: str) -> frozenset[str]:
    from xcc.process.forked import converters

    return frozenset(converters(frontend))


STAND_INS = {"xcc.facade.compile_apart": _compile, "xcc.process.isolation.converted_ops": _converted_ops,
             "xcc.process.isolation.expect": lambda _target, _frontend: None}
"""What to patch, and with what."""
