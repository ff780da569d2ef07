"""Runs a model compiled for AMD GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.hip_driver import HipDriver
from xcc.runtime.program import Program

__all__ = ["make_executor"]

SUFFIX = ".hsaco"


def make_executor(program: Program, members: Mapping[str, Any], weights: Any, manifest: Mapping[str, Any]
                  ) -> GpuExecutor:
    """The executor of an artifact's members on the first GPU; UserError when that is another chip."""
    driver = HipDriver()
    chip, found = str(manifest["chip"]), driver.architecture
    if chip != found:
        raise UserError(f"the model is compiled for {chip} and this GPU is {found or 'unknown'}; "
                        "compile it again with --target=amdgcn on this machine")
    blobs, holders = modules_of(members, manifest, (SUFFIX,))
    return GpuExecutor(driver, program, blobs, weights, holders)
