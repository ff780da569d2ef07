"""The code of an artifact for a GPU: its modules, and which of them holds which kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.arena import walk
from xcc.runtime.program import Launch, Program

__all__ = ["functions_of", "modules_of", "shared_bytes"]


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


def functions_of(driver: Any, modules: Sequence[Any], holders: Mapping[str, int], shared: Mapping[str, int]
                 ) -> dict[str, Any]:
    """The loaded kernels that `shared` names, each with the bytes of shared memory that it needs."""
    found = {}
    for name, size in shared.items():
        try:
            found[name] = driver.function(modules[holders.get(name, 0)], name, size)
        except (IndexError, RuntimeError) as e:
            raise RuntimeError(f"no module of the model has the kernel '{name}'") from e
    return found


def shared_bytes(program: Program) -> dict[str, int]:
    """The kernels that `program` launches, and the most shared memory that a launch of each takes."""
    shared: dict[str, int] = {}
    for s in walk((*program.setup, *program.body)):
        if isinstance(s, Launch):
            shared[s.kernel] = max(shared.get(s.kernel, 0), s.shared_bytes)
    return shared
