"""LLD, which links what is compiled here: of the package ziglang, or the system's."""

from __future__ import annotations

import importlib.util
import shutil


def lld() -> list[str]:
    """How the command line of LLD for ELF begins; nothing where there is none."""
    spec = importlib.util.find_spec("ziglang")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        zig = shutil.which("zig", path=folder)      # python -m ziglang would start Python only to start this
        if zig:
            return [zig, "ld.lld"]
    path = shutil.which("ld.lld")
    return [path] if path else []
