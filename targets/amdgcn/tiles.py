"""Tiles of contractions on AMD chips: the registers that they need, and their time.

A tile's operands wait in registers while a step computes, and have two slots in LDS. The registers of a tile are
estimated before it is a candidate, and compared with assembled code in test/unit/targets/amdgcn. Its time is that of
its arithmetic, of its reads and writes of LDS, or of what it reads through the L2 cache, whichever is longest.
"""

from __future__ import annotations

import math
from dataclasses import replace

from xcc.targets.base import Chip
from xcc.targets.gpu_contraction import START_SECONDS, STEP_SECONDS, MatrixTile, shares, with_room
from xcc.targets.gpu_operands import Loaded

REGISTERS = 256     # that an instruction can name: past them CDNA moves accumulators to its other 256 and back
LDS_RATE = 128 * 2.1e9      # bytes a second of a compute unit
UNCOVERED = 0.2     # of what is not the longest of a step's times: not hidden behind it
RATE = 0.8          # of the peak, that a loop of matrix instructions may reach
OTHERS = 32         # registers of a thread for addresses, masks, and what the code generator keeps
ADDRESSES = 16      # of those: further accesses of a step have an offset each
PIECES = 64         # of an epilogue: four values of passes/gpu/thread/pieces.PIECE registers each
AHEAD = 128         # of fragments that are read ahead
CONVERSION = 4      # instructions to turn an element that lies in memory into one that is multiplied
K_BYTES = 32        # along k that one instruction, or all parts of it, takes at least
SLOTS = 2
MATRIX = ((256, 256, 8), (256, 128, 4), (128, 256, 4), (128, 128, 4), (128, 128, 2), (128, 64, 4), (64, 128, 4),
          (64, 64, 4), (256, 32, 4), (32, 256, 4), (128, 32, 4), (32, 128, 4), (64, 32, 2), (32, 64, 2), (256, 16, 4),
          (128, 16, 4), (16, 128, 4), (64, 16, 4), (16, 64, 4), (32, 32, 1), (16, 32, 2), (32, 16, 2))
"""Sides and waves of 64 lanes (twice as many of 32), for matrix instructions."""
SIMT = ((128, 128, 16, 256), (64, 128, 16, 256), (128, 64, 16, 256), (64, 64, 16, 128), (32, 64, 16, 128),
        (256, 16, 16, 256), (128, 16, 16, 128), (16, 128, 16, 128), (16, 64, 16, 64), (64, 16, 16, 64),
        (32, 32, 16, 64))
"""Sides, depth and threads, for FMAs: a step's operands may all be in registers at once."""


def candidates(size: int, simt: bool, chip: Chip, operands: tuple[Loaded, Loaded] | None = None) -> list[MatrixTile]:
    """Every tile worth trying for operands of `size` bytes; simt: by FMAs, without matrix instructions.

    The tile of the fewest registers where all need more than the chip has.
    """
    if simt:
        tiles = [MatrixTile(m, n, k, threads, SLOTS) for m, n, k, threads in SIMT]
    else:
        depths = (256, 128, 64) if chip.warp > 32 else (128, 64)
        tiles = [MatrixTile(m, n, k // size, 64 * waves, SLOTS) for m, n, waves in MATRIX for k in depths]
    tiles = with_room(tiles, size, chip)
    needed = {t: needed_registers(t, size, simt, chip, operands) for t in tiles}
    fitting = [t for t in tiles if needed[t] <= min(REGISTERS, chip.vector_registers)]
    return fitting or [min(tiles, key=needed.__getitem__)]


def matrix_tile(m: int, n: int, k: int, batch: int, size: int, simt: bool, chip: Chip, exchanged: int,
                operands: tuple[Loaded, Loaded] | None = None, _warpgroup: bool = False,
                _unit: int = 0, workers: int = 0) -> MatrixTile:
    """The tile with the least estimated time; see gpu_contraction.matrix_tile."""
    left, right = operands or (Loaded.of(size),) * 2
    rates = dict(chip.flops)
    copies = 1 if simt else chip.fragment_copies
    lanes = rates["f32"] / 2 / chip.cores       # instructions of a lane a second
    rate = RATE * rates.get("f32" if simt or size > 2 else "f16" if size == 2 else "i8", 1e12) / chip.cores

    def seconds(t: MatrixTile) -> float:
        tiles, steps = shares(t, m, n, k, batch, workers)
        waves = -(-tiles // chip.cores)
        resident = max(1, min(waves, 4, chip.shared_bytes // t.shared_bytes(size)))
        rows, columns = wave_tile(t, 4 if simt else 16, chip)
        through = (rows + columns) * (t.threads // chip.warp) * copies + t.m + t.n       # elements of LDS a k
        turned = sum(CONVERSION * side for side, o in ((t.m, left), (t.n, right)) if o.memory != size) * t.k
        math = 2.0 * t.m * t.n * t.k / rate + turned / lanes
        shared = through * t.k * size / LDS_RATE
        # a core's share of the L2 cache's bandwidth, taken as twice the memory's
        moved = (t.m * left.memory + t.n * right.memory) * t.k / (2 * chip.bandwidth / min(chip.cores, tiles))
        longest = max(math, shared, moved)
        step = longest + UNCOVERED * (math + shared + moved - longest)
        wait = STEP_SECONDS / resident
        return waves * (steps * (max(step, wait) + UNCOVERED * min(step, wait)) + START_SECONDS / resident)

    found = candidates(size, simt, chip, operands)
    fitting = [t for t in found if t.m * t.n * exchanged <= chip.shared_bytes]
    best = min(fitting or found[-1:], key=seconds)
    return replace(best, seconds=seconds(best))


def wave_tile(t: MatrixTile, side: int, chip: Chip) -> tuple[int, int]:
    """Rows and columns of a wave: the larger side is halved first, down to `side`, as the layouts do."""
    m, n = t.m, t.n
    waves = t.threads // chip.warp
    while waves > 1 and max(m, n) > side:
        if n > m or m <= side:
            n //= 2
        else:
            m //= 2
        waves //= 2
    return m, n


def needed_registers(t: MatrixTile, size: int, simt: bool, chip: Chip,
                     operands: tuple[Loaded, Loaded] | None = None) -> int:
    """Vector registers that a thread cannot do without: the result's tile, and the loop's needs or the epilogue's.

    On CDNA the fragments of the next instruction are read while one runs.
    """
    steps = min(2, _instructions(t, size)) if chip.warp > 32 else 1
    return _registers(t, size, simt, chip, steps, PIECES, operands or (Loaded.of(size),) * 2)


def predicted_registers(t: MatrixTile, size: int, simt: bool, chip: Chip) -> int:
    """Vector registers of a thread in assembled code: on RDNA too, where there is room, fragments are read ahead."""
    return min(REGISTERS, _registers(t, size, simt, chip, min(2, _instructions(t, size)), 0, (Loaded.of(size),) * 2))


def _instructions(t: MatrixTile, size: int) -> int:
    """How many instructions lie along k of a step."""
    return max(1, t.k * size // K_BYTES)


def _registers(t: MatrixTile, size: int, simt: bool, chip: Chip, steps: int, epilogue: int,
               operands: tuple[Loaded, Loaded]) -> int:
    """The result, what is loaded ahead and the operands of `steps` instructions along k, or what an epilogue holds."""
    result = t.m * t.n // t.threads
    elements = [side * t.k / t.threads for side in (t.m, t.n)]
    held = math.ceil(sum(o.registers * e / 4 for o, e in zip(operands, elements, strict=True)))
    held += max(0, math.ceil(sum(o.accesses * e for o, e in zip(operands, elements, strict=True))) - ADDRESSES)
    if simt:
        fragments = t.k * 4 + result
    else:
        m, n = wave_tile(t, 16, chip)
        side = 32 if chip.warp > 32 and m % 32 == 0 and n % 32 == 0 else 16
        lane = 4 * chip.fragment_copies     # registers of one operand
        fragments = min((m // side + n // side) * lane * steps, max(AHEAD, (m // side + n // side) * lane))
    return result + max(held + fragments, epilogue) + OTHERS
