"""The folders of targets, and the files in them that others find by name (:class:`xcc.targets.base.Target`).

The runtime looks for executors here: nothing else is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any


@lru_cache(maxsize=1)
def target_names() -> tuple[str, ...]:
    """Every folder with a ``target.py`` under :mod:`xcc.targets`, sorted."""
    import xcc.targets

    return tuple(sorted({file.parent.name for root in xcc.targets.__path__ for file in Path(root).glob("*/target.py")}))


def file(target: str, name: str) -> Path | None:
    """The file `name` of a target's folder; None where there is no such target or file."""
    import xcc.targets

    paths = (Path(root, target, name) for root in xcc.targets.__path__)
    return next((path for path in paths if path.is_file()), None)


def part(target: str, name: str) -> Any:
    """The module `name` of a target's folder; None where there is no such target or file."""
    module = f"xcc.targets.{target}.{name}"
    there = target in target_names() and importlib.util.find_spec(module) is not None
    return importlib.import_module(module) if there else None


def deferred(target: str, module: str, name: str) -> Callable[..., Any]:
    """The function `name` of a file of a target's folder, which is imported when it is called: it needs MLIR."""
    def call(*arguments: object) -> Any:
        return getattr(part(target, module), name)(*arguments)

    return call
