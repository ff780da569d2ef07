"""Tiles of a contraction on a GPU: (m, n, k, batch, operand type, chip) -> MatrixTile, a pure function.

The costs are the target's: `Chip.tiles` names its module.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace

from xcc.passes.linalg.kernel.kernel import Kernel, Op
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import is_static
from xcc.targets.base import Chip
from xcc.targets.gpu_operands import Loaded, along

STEP_SECONDS = 0.35e-6  # a step of the loop that nothing else covers: barrier, latency of shared memory
START_SECONDS = 1e-6    # of a workgroup: addresses, first loads
LINE = 128      # bytes of a row of shared memory that columns fill which lie side by side
RUN = 32        # columns of a result whose order such an instruction may change
AGAIN_SECONDS = 4e-6    # of a second launch, which adds up what workgroups have of a tile, and of its waits
AGAIN_RATE = 0.7        # of the memory's bandwidth, with which these sums are written and read; FMAs hide the writing
SUM_BYTES = 4   # of a sum
SURE, SURE_FMA = 1.2, 1.1       # times less that parts of a sum must take by estimate
LONG = 1024     # terms of a sum
BESIDE = 4      # workgroups of a core that add up tiles by FMAs, and hide each other's latencies
FEW = 32        # rows or columns: with fewer, memory is what a product waits for, unless it leaves so many cores
IDLE = 0.9      # without work
SHORT = 8       # operations behind a product that lanes which are off may compute, too


@dataclass(frozen=True)
class MatrixTile:
    """m, n, k: a workgroup's tile; `stages` of its operands are in shared memory; the rest as in Schedule.

    n may be no power of two where instructions of warpgroups compute so many columns: lanes of a vector are off.
    workers: how many workgroups add up the tiles (stream-K), 0: one each. seconds: all tiles' estimated time.
    """

    m: int
    n: int
    k: int
    threads: int
    stages: int
    group: int = 8
    warpgroup: bool = False
    workers: int = 0
    seconds: float = field(default=0.0, compare=False)

    def shared_bytes(self, size: int) -> int:
        return self.stages * (self.m + pow2_above(self.n)) * self.k * size


def with_room(tiles: list[MatrixTile], size: int, chip: Chip) -> list[MatrixTile]:
    """Those of `tiles` that the chip has shared memory for; the smallest where it has for none (it is then made
    smaller: passes/linalg/schedule/smaller.py)."""
    fitting = [t for t in tiles if t.shared_bytes(size) <= chip.shared_bytes]
    return fitting or [min(tiles, key=lambda t: t.shared_bytes(size))]


def matrix_tile(m: int, n: int, k: int, batch: int, size: int, simt: bool, chip: Chip,
                exchanged: int = 0, operands: tuple[Loaded, Loaded] | None = None, warpgroup: bool = True,
                unit: int = 0, streams: bool = False) -> MatrixTile:
    """The tile with the least estimated time; sides of the problem below a tile's are padded to it.

    size, simt: bytes of an operand's element as it is multiplied, and by FMAs, without matrix instructions.
    exchanged: bytes of an element of the result's tile that may go through shared memory from one layout to another.
    operands: what is loaded for the left one and the right one; None: as they are multiplied, 16 bytes at a time.
    warpgroup: whether instructions of warpgroups take these operands.
    unit: what the columns of a tile are a multiple of where they may be no power of two; 0: where they may not.
    streams: whether several workgroups may add up a tile, each some of its steps.
    """
    target = importlib.import_module(chip.tiles)

    def tile(terms: int, parts: int, workers: int = 0) -> MatrixTile:
        found: MatrixTile = target.matrix_tile(m, n, terms, parts, size, simt, chip, exchanged, operands, warpgroup,
                                               unit, workers)
        return found

    best = tile(k, batch)
    idle = 1 - _tiles(best, m, n) / chip.cores
    if not streams or k < LONG or min(m, n) < FEW and not simt and idle < IDLE:
        return best
    most = chip.cores * (BESIDE if simt else 1)
    found = []
    for workers in sorted({most // tiles for tiles in range(1, most // 2 + 1)}):    # as many for each tile
        t = tile(-(-k // workers), workers)
        if (total := _tiles(t, m, n) * workers) <= most and workers * t.k <= k:
            found.append(replace(t, workers=total))
    for workers in range(chip.cores, most + 1, chip.cores) if simt else ():         # steps of two tiles for some
        t = tile(k, batch, workers)
        if _tiles(t, m, n) < workers:
            found.append(replace(t, workers=workers))
    timed = [replace(t, seconds=t.seconds + _again(t, m, n, simt, chip)) for t in found]
    fastest = min(timed, key=lambda t: t.seconds, default=best)
    return fastest if fastest.seconds < best.seconds / (SURE_FMA if simt else SURE) else best


def shares(t: MatrixTile, m: int, n: int, k: int, batch: int, workers: int) -> tuple[int, int]:
    """How many workgroups there are, and steps that each one takes at most."""
    tiles, steps = _tiles(t, m, n) * batch, -(-k // t.k)
    return (workers, -(-tiles * steps // workers)) if workers else (tiles, steps)


def _tiles(t: MatrixTile, m: int, n: int) -> int:
    return -(-m // t.m) * -(-n // t.n)


def _again(t: MatrixTile, m: int, n: int, simt: bool, chip: Chip) -> float:
    """Seconds in which the sums that `t.workers` have of tiles are written, read and added up."""
    tiles = _tiles(t, m, n)
    parts = t.workers if t.workers % tiles == 0 else t.workers + tiles
    return AGAIN_SECONDS + parts * t.m * t.n * (1 if simt else 2) * SUM_BYTES / (AGAIN_RATE * chip.bandwidth)


def may_stream(kernel: Kernel, op: Op, joined: tuple[int, ...] = ()) -> bool:
    """Whether several workgroups may add up a tile of the product `op`: results of one known shape, and one loop to
    deal out, which may be several that are `joined`."""
    loops = {p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1}
    return len(loops - set(joined)) == (0 if joined else 1) and all(o is op or not o.is_reduction for o in kernel.ops) \
        and len({t.dims for t in kernel.results}) == 1 and is_static(kernel.results[0].dims)


def column_unit(kernel: Kernel, op: Op, shared: set[int], size: int) -> int:
    """What the columns of a tile of `op` are a multiple of where they are no power of two, as `matrix_tile` has it, for
    elements of `size` bytes; `shared`: loops of both factors."""
    behind = sum(len(list(o.block.operations)) - 1 for o in kernel.ops if o is not op and o.operation is not None)
    factors = product_operands(op)
    if factors is None or behind > SHORT:
        return 0
    return RUN if along(op, factors[1], shared) else LINE // size
