"""What a kernel's assembly says about its speed: the innermost loop and its share of matrix instructions."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from xcc.targets.base import Chip

_LABEL = re.compile(r"^(\.LBB\d+_\d+):")
_BRANCH = re.compile(r"^s_c?branch\w*\s+(\.LBB\d+_\d+)")
_MATRIX = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")


@dataclass(frozen=True)
class LoopShare:
    """The hottest code: how many instructions, how many are matrix instructions, and all of them by name."""

    instructions: int = 0
    matrix: int = 0
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def share(self) -> float:
        return self.matrix / self.instructions if self.instructions else 0.0


def instructions_of(assembly: str, kernel: str) -> list[str]:
    """Labels (ending in ':') and instructions of one kernel, in order."""
    out: list[str] = []
    inside = False
    for raw in assembly.split("\n"):
        line = raw.split(";", 1)[0].strip()
        if line == f"{kernel}:":
            inside = True
        elif inside and line.startswith((".section", ".Lfunc_end", ".size")):
            break
        elif inside and line and (not line.startswith(".") or _LABEL.match(line)):
            out.append(line)
    return out


def inner_loop(assembly: str, kernel: str) -> LoopShare:
    """The loop without a loop inside it that has the most matrix instructions, else the most instructions.

    Where the loop over K was unrolled whole, so that matrix instructions stand outside loops only: the whole kernel.
    """
    lines = instructions_of(assembly, kernel)
    labels = {line[:-1]: i for i, line in enumerate(lines) if _LABEL.match(line)}
    loops = []
    for i, line in enumerate(lines):
        branch = _BRANCH.match(line)
        if branch and labels.get(branch[1], i) < i:
            loops.append((labels[branch[1]], i))
    innermost = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    best = LoopShare()
    for start, end in innermost:
        found = _share(lines[start:end + 1])
        if (found.matrix, found.instructions) > (best.matrix, best.instructions):
            best = found
    whole = _share(lines)
    return whole if whole.matrix and not best.matrix else best


def _share(lines: list[str]) -> LoopShare:
    body = [line.split()[0] for line in lines if not _LABEL.match(line)]
    return LoopShare(len(body), sum(name.startswith(_MATRIX) for name in body), tuple(sorted(Counter(body).items())))


def occupancy(chip: Chip, registers: int, shared_bytes: int, threads: int) -> int:
    """Waves that one SIMD holds at once: limited by registers (VGPRs and AGPRs together), LDS and the chip's own limit.

    A CDNA compute unit has 4 SIMDs of 512 registers a lane, given out in eights; an RDNA workgroup processor, with
    128 KiB of LDS, has 4 of 1536 (at waves of 32), given out in 24s ("RDNA3 ISA", "MI300 ISA", register allocation).
    """
    wide = chip.warp == 64
    lanes, step, most = (512, 8, 8) if wide else (1536, 24, 16)
    by_registers = lanes // (max(step, -(-registers // step) * step))
    waves = -(-threads // chip.warp)
    memory = chip.shared_bytes if wide else 128 << 10
    by_memory = -(-(memory // shared_bytes * waves) // 4) if shared_bytes else most
    return min(most, by_registers, max(by_memory, 0))
