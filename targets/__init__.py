"""Targets by name: ``xcc.targets.get("nvptx").pipeline()``."""

from __future__ import annotations

from typing import Any

from xcc.targets.base import get_target, target_names

__all__ = ["get", "names"]

names = target_names


class _View:
    """A target as a user sees it."""

    def __init__(self, name: str) -> None:
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
