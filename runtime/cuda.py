"""Runs a model compiled for NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.gpu_code import modules_of
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.program import Program

__all__ = ["make_executor"]

SUFFIXES = (".cubin", ".ptx")


def make_executor(program: Program, members: Mapping[str, Any], weights: Any, manifest: Mapping[str, Any]
                  ) -> GpuExecutor:
    """The executor of an artifact's members on the first GPU; UserError when that cannot run the model's chip."""
    driver = CudaDriver()
    check_chip(str(manifest["chip"]), driver.capability)
    blobs, holders = modules_of(members, manifest, SUFFIXES)
    return GpuExecutor(driver, program, blobs, weights, holders)


def check_chip(chip: str, capability: tuple[int, int]) -> None:
    """UserError unless code for `chip` runs on a GPU of this compute capability."""
    digits = chip.removeprefix("sm_")
    exact = digits.endswith("a")
    number = int(digits.rstrip("a"))
    wanted = (number // 10, number % 10)
    fits = capability == wanted if exact else capability[0] == wanted[0] and capability >= wanted
    if not fits:
        raise UserError(f"the model is compiled for {chip} and this GPU is sm_{capability[0]}{capability[1]}; "
                        "compile it again with --target=nvptx on this machine")
