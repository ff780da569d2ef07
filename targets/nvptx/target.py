"""The NVIDIA target."""

from __future__ import annotations

from typing import Any

from xcc.targets.base import Chip, KernelBinary, Target
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.driver import default_chip
from xcc.targets.nvptx.link import link


def _pipeline(options: Any) -> Any:
    from xcc.targets.nvptx.pipeline import pipeline

    return pipeline(options)


def _emit_kernel(module: Any, chip: Chip, options: Any) -> KernelBinary:
    from xcc.targets.nvptx.emit import emit_kernel

    return emit_kernel(module, chip, options)


def _code_file(text: str, chip: Chip, kind: str) -> bytes:
    from xcc.targets.nvptx.emit import code_file

    return code_file(text, chip, kind)


TARGET = Target(name="nvptx", chips=chips, default_chip=default_chip, pipeline=_pipeline, emit_kernel=_emit_kernel,
                link=link, formats=("ptx", "asm", "cubin"), code_file=_code_file)
