"""Runs a model compiled for NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.cuda_api import on_gpu
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.nccl import communicator_of
from xcc.runtime.program import Program
from xcc.runtime.ranks import Ranks
from xcc.runtime.versions import Version, versions_of

__all__ = ["best_version", "make_executor"]

CUBIN, PTX = ".cubin", ".ptx"


def make_executor(program: Program, members: Mapping[str, Any], weights: Any, manifest: Mapping[str, Any], *,
                  device: int = 0, ranks: Ranks | None = None) -> GpuExecutor:
    """The executor of an artifact's members on GPU `device`; UserError when that can run none of its code versions.
    ranks: with the others."""
    with on_gpu(device):
        driver = CudaDriver(device)
        version, suffixes = best_version(versions_of(program, members, weights, manifest), driver.capability)
        blobs, holders = modules_of(version.members, version.kernels, suffixes)
        return GpuExecutor(driver, version.program, blobs, weights, holders, communicator_of(ranks, driver))


def best_version(versions: Sequence[Version], capability: tuple[int, int]) -> tuple[Version, tuple[str, ...]]:
    """The version for the newest chip whose cubins, or else whose PTX, run on a GPU of this compute capability, and the
    suffixes of its code, best first; UserError where there is none."""
    fitting = [(suffixes[0] == CUBIN, _number(v.chip), -n, v, suffixes) for n, v in enumerate(versions)
               if (suffixes := _runs(v, capability))]
    if not fitting:
        chips = ", ".join(v.chip for v in versions)
        raise UserError(f"the model is compiled for {chips} and this GPU is sm_{capability[0]}{capability[1]}; compile "
                        "it again with --target=nvptx on this machine, or add its chip (--chip=A,B)")
    *_, version, suffixes = max(fitting, key=lambda f: f[:3])
    return version, suffixes


def _runs(version: Version, capability: tuple[int, int]) -> tuple[str, ...]:
    """The suffixes of the version's code that runs on a GPU of this compute capability, best first; () for none.

    A cubin runs on its major revision from its minor one on, PTX on all that came later, and both on the very chip
    only where its name ends in "a" (CUDA programming guide, "Binary Compatibility", "PTX Compatibility").
    """
    wanted = divmod(_number(version.chip), 10)
    newer = capability == wanted if version.chip.endswith("a") else capability >= wanted
    if not newer:
        return ()
    there = {path[path.rfind("."):] for path in version.members if path.startswith("kernels/")}
    if not there or capability[0] == wanted[0] and CUBIN in there:
        return CUBIN, PTX
    return (PTX,) if PTX in there else ()


def _number(chip: str) -> int:
    """90 of sm_90a."""
    return int(chip.removeprefix("sm_").rstrip("a"))
