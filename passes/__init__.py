"""Passes and pipelines: ``from xcc.passes import Pipeline``. Importing this loads no pass."""

from __future__ import annotations

from typing import Any

__all__ = ["Pass", "Pipeline", "register_pass"]

_HOMES = {"Pass": "xcc.passes.base", "Pipeline": "xcc.passes.pipeline", "register_pass": "xcc.passes.base"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
