"""What tests do in place of the compiler's own steps, for their time.

What ``xcc.compile`` gives to a child of another process compiles in that of the test: starting one takes as long as
compiling a small model. And of the GPU kernels that only the interpreter runs LLVM makes code of one in three, as
making it takes longer than all passes before it: their IR is what is tested (``XCC_EXAMPLES`` above 1: of all).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.options import CompileOptions

if TYPE_CHECKING:
    from xcc._mlir import Module
    from xcc.targets.base import Chip, KernelBinary

__all__ = ["stand_ins"]


def _compile(model: Any, options: CompileOptions, pipeline: Any, _plugins: Any, output: Path) -> tuple[Any, Any]:
    """As xcc.process.isolation.compile_apart does."""
    from xcc.driver.ranks import compile_ranks

    compiled = compile_ranks(model, replace(options, isolate=False), pipeline)
    assert compiled.artifact is not None
    compiled.artifact.save(output)
    return compiled.files, {"chip": compiled.artifact.manifest["chip"], "kernels": len(compiled.kernels)}


def _converted_ops(frontend: str) -> frozenset[str]:
    from xcc.process.forked import converters

    return frozenset(converters(frontend))


CODE_OF = 1 if float(os.environ.get("XCC_EXAMPLES", 1)) > 1 else 3
"""Of one in so many interpreted kernels code is made, chosen by what is in them."""


def _emit_some(target: str) -> Callable[..., KernelBinary]:
    """`emit_kernel` of a GPU target; of most kernels with their IR kept that nobody else will find in the cache, it
    says how they are launched and makes no code."""
    emit = import_module(f"xcc.targets.{target}.emit").emit_kernel

    def some(module: Module, chip: Chip, options: CompileOptions | None = None) -> KernelBinary:
        from xcc.targets.base import KernelBinary
        from xcc.targets.gpu_module import kernel_functions, kernel_launches, kernel_llvm_ir, scratch_bytes

        seen_by_all = options is None or options.cache or not options.keep_ir
        if seen_by_all or zlib.crc32(kernel_llvm_ir(module).encode()) % CODE_OF == 0:
            made: KernelBinary = emit(module, chip, options)
            return made
        launches = kernel_launches(module, dynamic_shared=target == "nvptx")
        return KernelBinary(name=launches[0].entry, format="none", blob=b"", launches=launches,
                            scratch=scratch_bytes(kernel_functions(module)[0]))

    return some


@cache
def stand_ins() -> dict[str, Callable[..., Any]]:
    """What to patch, and with what."""
    return {"xcc.facade.compile_apart": _compile, "xcc.process.isolation.converted_ops": _converted_ops,
            "xcc.process.isolation.expect": lambda _target, _frontend: None,
            **{f"xcc.targets.{target}.emit.emit_kernel": _emit_some(target) for target in ("nvptx", "amdgcn")}}
