"""The code of an artifact for a GPU: its modules, and which of them holds which kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc.diagnostics import UserError

__all__ = ["modules_of"]


def modules_of(members: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], suffixes: Sequence[str]
               ) -> tuple[list[bytes], dict[str, int]]:
    """The modules to load, of the first of `suffixes` that there is, and for each entry the number of its module.
    `kernels` are those of the manifest.

    To ask a module for a kernel that it does not have is an error of the driver, which tools that watch it report.
    """
    blobs: list[bytes] = []
    holders: dict[str, int] = {}
    for kernel in kernels:
        path = next((p for p in (f"kernels/{kernel['name']}{s}" for s in suffixes) if p in members), None)
        if path is None:
            raise UserError(f"the artifact has no code of the kernel '{kernel['name']}'")
        holders |= dict.fromkeys(kernel["entries"], len(blobs))
        blobs.append(bytes(members[path]))
    return blobs, holders
