"""Tiles of a contraction on a GPU: (m, n, k, batch, operand type, chip) -> MatrixTile, a pure function.

The costs are the target's: `Chip.tiles` names its module.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from xcc.passes.linalg.kernel.kernel import Kernel, Op
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.passes.shared.dims import pow2_above
from xcc.targets.base import Chip
from xcc.targets.gpu_operands import Loaded, along

STEP_SECONDS = 0.35e-6  # a step of the loop that nothing else covers: barrier, latency of shared memory
START_SECONDS = 1e-6    # of a workgroup: addresses, first loads
LINE = 128      # bytes of a row of shared memory that columns fill which lie side by side
RUN = 32        # columns of a result whose order such an instruction may change
SHORT = 8       # operations behind a product that lanes which are off may compute, too


@dataclass(frozen=True)
class MatrixTile:
    """m, n, k: a workgroup's tile; `stages` of its operands are in shared memory; the rest as in Schedule.

    n may be no power of two where instructions of warpgroups compute so many columns: lanes of a vector are off.
    """

    m: int
    n: int
    k: int
    threads: int
    stages: int
    group: int = 8
    warpgroup: bool = False

    def shared_bytes(self, size: int) -> int:
        return self.stages * (self.m + pow2_above(self.n)) * self.k * size


def with_room(tiles: list[MatrixTile], size: int, chip: Chip) -> list[MatrixTile]:
    """Those of `tiles` that the chip has shared memory for; the smallest where it has for none (it is then made
    smaller: passes/linalg/schedule/smaller.py)."""
    fitting = [t for t in tiles if t.shared_bytes(size) <= chip.shared_bytes]
    return fitting or [min(tiles, key=lambda t: t.shared_bytes(size))]


def matrix_tile(m: int, n: int, k: int, batch: int, size: int, simt: bool, chip: Chip,
                exchanged: int = 0, operands: tuple[Loaded, Loaded] | None = None, warpgroup: bool = True,
                unit: int = 0) -> MatrixTile:
    """The tile with the least estimated time; sides of the problem below a tile's are padded to it.

    size, simt: bytes of an operand's element as it is multiplied, and by FMAs, without matrix instructions.
    exchanged: bytes of an element of the result's tile that may go through shared memory from one layout to another.
    operands: what is loaded for the left one and the right one; None: as they are multiplied, 16 bytes at a time.
    warpgroup: whether instructions of warpgroups take these operands.
    unit: what the columns of a tile are a multiple of where they may be no power of two; 0: where they may not.
    """
    found: MatrixTile = importlib.import_module(chip.tiles).matrix_tile(m, n, k, batch, size, simt, chip, exchanged,
                                                                        operands, warpgroup, unit)
    return found


def column_unit(kernel: Kernel, op: Op, shared: set[int], size: int) -> int:
    """What the columns of a tile of `op` are a multiple of where they are no power of two, as `matrix_tile` has it, for
    elements of `size` bytes; `shared`: loops of both factors."""
    behind = sum(len(list(o.block.operations)) - 1 for o in kernel.ops if o is not op and o.operation is not None)
    factors = product_operands(op)
    if factors is None or behind > SHORT:
        return 0
    return RUN if along(op, factors[1], shared) else LINE // size
