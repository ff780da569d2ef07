"""Targets by name: ``xcc.targets.get("nvptx").pipeline()``. Each is a folder, here or in one that XCC_TARGETS names."""

from __future__ import annotations

import os
from typing import Any

from xcc.targets.folders import target_names

__all__ = ["get", "names"]

__path__ += [folder for folder in os.environ.get("XCC_TARGETS", "").split(os.pathsep) if folder]

names = target_names


class _View:
    """A target as a user sees it."""

    def __init__(self, name: str) -> None:
        from xcc.targets.base import get_target

        self.target = get_target(name)

    def pipeline(self, **options: Any) -> Any:
        """The target's pipeline for these options (see :class:`xcc.options.CompileOptions`)."""
        from xcc.options import CompileOptions

        return self.target.pipeline(CompileOptions.make(self.target.name, **options))

    def chips(self) -> tuple[str, ...]:
        """The names of the target's chip table."""
        return tuple(sorted(self.target.chips()))


def get(name: str) -> _View:
    """The target called `name`; UserError when there is none."""
    return _View(name)
