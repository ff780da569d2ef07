"""LLVM IR to object code through llvmlite."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from xcc.diagnostics import UserError
from xcc.targets import llvm_text
from xcc.targets.base import Chip

_RELAX = {"x86": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
          "arm": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)")}


@lru_cache(maxsize=1)
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@lru_cache(maxsize=8)
def target_machine(chip: Chip) -> Any:
    _initialize()
    try:
        target = llvm.Target.from_triple(chip.triple)
    except RuntimeError as e:
        raise UserError(f"chip {chip.name}: triple={chip.triple}: {e}") from None
    return target.create_target_machine(cpu=chip.cpu, features=chip.features, opt=2, reloc="pic", codemodel="small")


def optimized(ir_text: str, chip: Chip, *, vectorize: bool = False, level: int = 2) -> llvm.ModuleRef:
    """The optimized llvmlite module. `vectorize` runs LLVM's own vectorizers: for loop kernels, not tile programs."""
    return llvm_text.optimized(ir_text, chip, target_machine(chip), level, loop_vectorization=vectorize,
                               slp_vectorization=False, loop_unrolling=vectorize, loop_interleaving=vectorize)


def emit_object(ir_text: str, chip: Chip, *, vectorize: bool = False) -> bytes:
    """An ELF (or Mach-O) object."""
    blob: bytes = target_machine(chip).emit_object(optimized(ir_text, chip, vectorize=vectorize))
    return blob


@lru_cache(maxsize=8)
def thread_pool(chip: Chip) -> bytes:
    """The object with xcc_parallel, xcc_set_threads, xcc_make_stack, xcc_stop and xcc_after_fork."""
    declaration, call = _RELAX["x86" if chip.triple.startswith("x86_64") else "arm"]
    source = Path(__file__).with_name("threads.ll").read_text()
    relax = f"\n{declaration}\ndefine internal void @relax() alwaysinline {{\n  {call}\n  ret void\n}}\n"
    return emit_object(source + relax, chip)
