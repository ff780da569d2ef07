"""The AMD target."""

from __future__ import annotations

from typing import Any

from xcc.targets.amdgcn.chip import chips, default_chip
from xcc.targets.amdgcn.link import link
from xcc.targets.base import Chip, KernelBinary, Target


def _pipeline(options: Any) -> Any:
    from xcc.targets.amdgcn.pipeline import pipeline

    return pipeline(options)


def _emit_kernel(module: Any, chip: Chip, options: Any) -> KernelBinary:
    from xcc.targets.amdgcn.emit import emit_kernel

    return emit_kernel(module, chip, options)


def _code_file(text: str, chip: Chip, kind: str) -> bytes:
    from xcc.targets.amdgcn.emit import code_file

    return code_file(text, chip, kind)


TARGET = Target(name="amdgcn", chips=chips, default_chip=default_chip, pipeline=_pipeline, emit_kernel=_emit_kernel,
                link=link, formats=("asm", "hsaco"), code_file=_code_file, fewer_registers=(224, 192, 160, 112),
                shares_memory=False)       # pointers of kernels are llvm.noalias
