"""Runs a model compiled for AMD GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.hip_driver import HipDriver, on_gpu
from xcc.runtime.nccl import communicator_of
from xcc.runtime.program import Program
from xcc.runtime.ranks import Ranks
from xcc.runtime.versions import Version, versions_of

__all__ = ["make_executor", "version_for"]

SUFFIX = ".hsaco"


def make_executor(program: Program, members: Mapping[str, Any], weights: Any, manifest: Mapping[str, Any], *,
                  device: int = 0, ranks: Ranks | None = None) -> GpuExecutor:
    """The executor of an artifact's members on GPU `device`; UserError when none of its versions is for it. ranks: with
    the others."""
    with on_gpu(device):
        driver = HipDriver(device)
        version = version_for(versions_of(program, members, weights, manifest), driver.architecture)
        blobs, holders = modules_of(version.members, version.kernels, (SUFFIX,))
        return GpuExecutor(driver, version.program, blobs, weights, holders, communicator_of(ranks, driver))


def version_for(versions: Sequence[Version], architecture: str) -> Version:
    """The code version for this GPU; UserError where there is none."""
    for version in versions:
        if version.chip == architecture:
            return version
    raise UserError(f"the model is compiled for {', '.join(v.chip for v in versions)} and this GPU is "
                    f"{architecture or 'unknown'}; compile it again with --target=amdgcn on this machine, or add its "
                    "chip (--chip=A,B)")
