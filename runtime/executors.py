"""Which module runs the models of a target: ``executor.py`` of the target's folder says it, without the compiler.

``EXECUTOR`` names a module with ``make_executor(program, members, weights, manifest)``. An executor has ``run(inputs,
symbols, out) -> list``: inputs in the program's order, checked and contiguous, as numpy arrays (or as DlTensor on the
executor's own device when it has ``device``, a DLPack device type), the value of each symbol, and what outputs are to
be written to (:func:`given_outputs`; may be left out). It returns the outputs in the program's order, those that update
an input as what came for that. What the program holds it has as ``state``, a HostState or DeviceState.

``ON_HOST = True``: the code runs in this process. ``make_executor`` then takes ``threads=``, the number that was asked
for, and the executor has ``make_ready(symbols, spare=)`` for what is done when a model is loaded.
"""

from __future__ import annotations

import importlib
from typing import Any

from xcc.diagnostics import UserError

__all__ = ["executor_module", "on_host"]


def executor_module(target: str) -> Any:
    """The module with ``make_executor`` for models of `target`; UserError where there is none."""
    from xcc.targets.folders import part

    found = part(target, "executor")
    if found is None:
        raise UserError(f"the model is for target '{target}', which this xcc cannot run")
    return importlib.import_module(found.EXECUTOR)


def on_host(target: str) -> bool:
    """Whether code for `target` runs on this machine's processor, in the process that calls it."""
    from xcc.targets.folders import part

    return bool(getattr(part(target, "executor"), "ON_HOST", False))
