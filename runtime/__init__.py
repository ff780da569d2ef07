"""Loads and runs compiled models. Needs numpy and the device's driver; imports nothing of the compiler."""

from __future__ import annotations

from typing import Any

__all__ = ["Artifact", "Model", "load"]

_HOMES = {"Artifact": "xcc.runtime.artifact", "Model": "xcc.runtime.model", "load": "xcc.runtime.model"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
