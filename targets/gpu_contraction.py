"""Tiles of a contraction on a GPU: (m, n, k, batch, operand type, chip) -> MatrixTile, a pure function.

The costs are the target's: `Chip.tiles` names its module.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from xcc.targets.base import Chip
from xcc.targets.gpu_operands import Loaded

STEP_SECONDS = 0.35e-6  # a step of the loop that nothing else covers: barrier, latency of shared memory
START_SECONDS = 1e-6    # of a workgroup: addresses, first loads


@dataclass(frozen=True)
class MatrixTile:
    """m, n, k: a workgroup's tile; `stages` of its operands are in shared memory; the rest as in Schedule."""

    m: int
    n: int
    k: int
    threads: int
    stages: int
    group: int = 8
    warpgroup: bool = False

    def shared_bytes(self, size: int) -> int:
        return self.stages * (self.m + self.n) * self.k * size


def with_room(tiles: list[MatrixTile], size: int, chip: Chip) -> list[MatrixTile]:
    """Those of `tiles` that the chip has shared memory for; the smallest where it has for none (it is then made
    smaller: passes/linalg/schedule/smaller.py)."""
    fitting = [t for t in tiles if t.shared_bytes(size) <= chip.shared_bytes]
    return fitting or [min(tiles, key=lambda t: t.shared_bytes(size))]


def matrix_tile(m: int, n: int, k: int, batch: int, size: int, simt: bool, chip: Chip,
                exchanged: int = 0, operands: tuple[Loaded, Loaded] | None = None, warpgroup: bool = True
                ) -> MatrixTile:
    """The tile with the least estimated time; sides of the problem below a tile's are padded to it.

    size, simt: bytes of an operand's element as it is multiplied, and by FMAs, without matrix instructions.
    exchanged: bytes of an element of the result's tile that may go through shared memory from one layout to another.
    operands: what is loaded for the left one and the right one; None: as they are multiplied, 16 bytes at a time.
    warpgroup: whether instructions of warpgroups take these operands.
    """
    found: MatrixTile = importlib.import_module(chip.tiles).matrix_tile(m, n, k, batch, size, simt, chip, exchanged,
                                                                        operands, warpgroup)
    return found
