"""Single instructions that an emulator of AMD GPUs was seen to get wrong, each with its result by AMD's ISA documents.

``amd_emulation.py`` runs them first: a wrong number of a kernel in such an emulator says nothing about the kernel.
llvmlite has no assembler of AMD code: the clang of the package ziglang assembles these.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xcc.targets.amdgcn.emit import assembly, link_code_object
from xcc.targets.base import Chip

__all__ = ["INSTRUCTIONS", "Instruction", "instruction_code", "wrong_instructions"]

_KERNEL = """
@lds = internal addrspace(3) global [64 x i32] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) "amdgpu-flat-work-group-size"="WAVE,WAVE" {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %at = zext i32 %lane to i64
  %from = getelementptr i32, ptr addrspace(1) %in, i64 %at
  %x = load i32, ptr addrspace(1) %from
  %slot = getelementptr [64 x i32], ptr addrspace(3) @lds, i32 0, i32 %lane
  %y = call i32 asm sideeffect "CODE", "=&v,v,v,CLOBBERS"(i32 %x, ptr addrspace(3) %slot)
  %to = getelementptr i32, ptr addrspace(1) %out, i64 %at
  store i32 %y, ptr addrspace(1) %to
  ret void
}
"""
_WORDS = np.array([0x3C004500, 0xC2F64248, 0x40490FDB, 0xBE99999A], np.uint32)      # as f32, and each half as f16


@dataclass(frozen=True)
class Instruction:
    """`code` makes $0 of the 32 bits in $1, $2 being four bytes of LDS; `result` says which of the bits in `mask`."""

    text: str
    families: tuple[str, ...]
    code: tuple[str, ...]
    result: Callable[[np.ndarray], np.ndarray]
    mask: int = 0xFFFFFFFF
    clobbers: tuple[str, ...] = ()

    def runs_on(self, chip: Chip) -> bool:
        return chip.name.startswith(self.families)


def _upper_half(words: np.ndarray) -> np.ndarray:
    return words.view(np.float16)[1::2]


def _lower_half(words: np.ndarray) -> np.ndarray:
    return words.view(np.float16)[::2]


def _as_f16(words: np.ndarray) -> np.ndarray:
    return words.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)


def _bits(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).view(np.uint32)


INSTRUCTIONS = (
    Instruction("v_cvt_f16_f32_e32 v131, v1", ("gfx9",),
                ("v_cvt_f16_f32_e32 v131, $1", "v_mov_b32 $0, v131"), _as_f16, 0xFFFF, ("v131",)),
    Instruction("v_cvt_f32_f16_e32 v1, v131", ("gfx9",),
                ("v_mov_b32 v131, $1", "v_cvt_f32_f16_e32 $0, v131"), lambda x: _bits(_lower_half(x)),
                clobbers=("v131",)),
    Instruction("v_add_f16_e32 v1, 1.0, v131", ("gfx9",),
                ("v_mov_b32 v131, $1", "v_add_f16_e32 $0, 1.0, v131"),
                lambda x: (_lower_half(x) + np.float16(1)).view(np.uint16).astype(np.uint32), 0xFFFF, ("v131",)),
    Instruction("v_cmp_gt_f16_e32 vcc, 0, v131", ("gfx9",),
                ("v_lshrrev_b32 v131, 16, $1", "v_cmp_gt_f16_e32 vcc, 0, v131", "s_nop 1",
                 "v_cndmask_b32_e64 $0, 0, 1, vcc"), lambda x: (_upper_half(x) < 0).astype(np.uint32),
                clobbers=("v131", "vcc")),
    Instruction("v_cvt_f32_f16_sdwa v1, -v2 src0_sel:WORD_1", ("gfx9",),
                ("v_cvt_f32_f16_sdwa $0, -$1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",),
                lambda x: _bits(-_upper_half(x))),
    Instruction("ds_read_u16_d16_hi v1, v2", ("gfx9",),
                ("ds_write_b32 $2, $1", "v_mov_b32 $0, 0x1234", "s_waitcnt lgkmcnt(0)", "ds_read_u16_d16_hi $0, $2",
                 "s_waitcnt lgkmcnt(0)"), lambda x: x << np.uint32(16) | np.uint32(0x1234)),
    Instruction("ds_write_b32 v2, a8", ("gfx9",),
                ("v_accvgpr_write_b32 a8, $1", "ds_write_b32 $2, a8", "s_waitcnt lgkmcnt(0)", "ds_read_b32 $0, $2",
                 "s_waitcnt lgkmcnt(0)"), lambda x: x, clobbers=("a8",)),
    Instruction("ds_load_u16_d16_hi v1, v2", ("gfx11",),
                ("ds_store_b32 $2, $1", "v_mov_b32 $0, 0x1234", "s_waitcnt lgkmcnt(0)", "ds_load_u16_d16_hi $0, $2",
                 "s_waitcnt lgkmcnt(0)"), lambda x: x << np.uint32(16) | np.uint32(0x1234)),
)


def instruction_code(instruction: Instruction, chip: Chip) -> bytes:
    """The code object of a kernel ``k(in, out)`` of one wave."""
    clobbers = ",".join(f"~{{{name}}}" for name in (*instruction.clobbers, "memory"))
    text = _KERNEL.replace("WAVE", str(chip.warp)).replace("CODE", r"\0A".join(instruction.code))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "k.s"), Path(folder, "k.o")
        source.write_text(assembly(text.replace("CLOBBERS", clobbers), chip))
        subprocess.run([sys.executable, "-m", "ziglang", "clang", f"--target={chip.triple}", f"-mcpu={chip.cpu}", "-c",
                        str(source), "-o", str(out)], check=True)
        return link_code_object(out.read_bytes())


def wrong_instructions(emulator: Any, chip: Chip) -> list[str]:
    """A line for each instruction whose result in `emulator` is not that of the ISA document."""
    words = np.resize(_WORDS, chip.warp)
    lines = []
    for instruction in (i for i in INSTRUCTIONS if i.runs_on(chip)):
        got = np.zeros(chip.warp, np.uint32)
        emulator.run_kernel(instruction_code(instruction, chip), "k", chip.name, (1, 1, 1), (chip.warp, 1, 1),
                            [words, got])
        mask = np.uint32(instruction.mask)
        wrong = np.flatnonzero((got ^ instruction.result(words)) & mask)
        if len(wrong):
            lane = wrong[0]
            lines.append(f"{chip.name}: {instruction.text}: of {words[lane]:#010x} came {got[lane] & mask:#x}, "
                         f"not {instruction.result(words)[lane] & mask:#x}")
    return lines
