"""Tiles of contractions on NVIDIA chips, and their time.

The cost of a candidate is that of its waves of workgroups: the chip's matrix rate, what the tile reads through the L2
cache, and the cores that the last wave leaves idle. Candidates are those whose accumulators fit in registers and whose
stages fit in shared memory.
"""

from __future__ import annotations

import math
from dataclasses import replace

from xcc.targets.base import Chip
from xcc.targets.gpu_contraction import START_SECONDS, STEP_SECONDS, MatrixTile, shares, with_room
from xcc.targets.gpu_operands import Loaded

ACCUMULATORS = 128      # registers of a thread for the result's tile
LATENCY = 0.8e-6        # of a copy from the L2 cache, where two steps of the stages are being computed or freed
ELEMENTS = 16384        # results whose epilogue takes START_SECONDS
AGAIN = 0.5             # of START_SECONDS for tiles that a workgroup computes behind others: their copies begin earlier
FEWEST = 4              # stages; more of them than steps take 40% longer (H200, 16384x640x320: 20.8 us, 14.1 with five)
TURNED = 1.03           # time of a warpgroup's tile that is higher than wide (H100, 4096^3: 2 to 3%)


def candidates(size: int, simt: bool, chip: Chip, warpgroup: bool = True) -> list[MatrixTile]:
    """Every tile worth trying for operands of `size` bytes; simt: by FMAs, without matrix instructions.

    warpgroup: whether instructions of warpgroups take these operands.
    """
    if simt:
        tiles = [MatrixTile(m, n, k, threads, 3) for m, n, k, threads in (
            (256, 128, 16, 256), (128, 128, 16, 256), (64, 128, 16, 128), (128, 64, 16, 128), (64, 64, 16, 128),
            (64, 64, 32, 128), (32, 64, 16, 64), (32, 64, 32, 64), (32, 32, 32, 64),
            (16, 64, 32, 64))]
    else:
        k = 64 // size
        tiles = [MatrixTile(128, 256, 2 * k, 256, 4), MatrixTile(256, 128, 2 * k, 256, 4),
                 MatrixTile(128, 128, k, 128, 4),
                 MatrixTile(128, 64, k, 128, 4), MatrixTile(64, 128, k, 128, 4), MatrixTile(64, 64, k, 128, 4),
                 MatrixTile(32, 64, 2 * k, 128, 4), MatrixTile(64, 32, 2 * k, 128, 4),
                 *(MatrixTile(a, b, 4 * k, 128, 4) for a, b in ((32, 32), (16, 64), (64, 16), (16, 32), (32, 16)))]
        if size == 4:       # whose steps have half the products
            tiles += [MatrixTile(a, b, k * depth, 128, 4) for a, b in ((128, 128), (128, 64), (64, 128), (64, 64))
                      for depth in (2, 4)]
    tiles = [t for t in tiles if t.m * t.n // t.threads <= ACCUMULATORS]
    if chip.warpgroup_products and warpgroup and not simt:
        k = 128 // size
        tiles += [t for m, n, threads in ((128, 256, 256), (128, 192, 256), (256, 128, 256), (128, 128, 256),
                                          (128, 96, 256), (64, 256, 128), (128, 64, 256), (64, 128, 128),
                                          (64, 64, 128), (64, 32, 128))
                  for stages in (4, 5, 6)
                  if (t := MatrixTile(m, n, k, threads, stages, _group(m, n, chip), warpgroup=True)).shared_bytes(size)
                  <= chip.shared_bytes]
    return _shallower(tiles, size, chip)


def _streaming(rows: int, size: int, chip: Chip) -> list[MatrixTile]:
    """Tiles of all `rows` of a product whose matrix is read once, which copy far ahead."""
    k = 64 // size
    return _shallower([*(MatrixTile(rows, n, 4 * k, 128, 4) for n in (32, 64)), MatrixTile(rows, 128, 2 * k, 128, 6),
                       *([MatrixTile(rows, 32, 8 * k, 128, 4)] if rows == chip.streamed_rows[0] else [])], size, chip)


def _shallower(tiles: list[MatrixTile], size: int, chip: Chip) -> list[MatrixTile]:
    """`tiles` with as many stages as shared memory has room for."""
    out = []
    for t in tiles:
        while t.stages > 2 and t.shared_bytes(size) > chip.shared_bytes:
            shallow = t.stages == 3 and t.k * size > 64
            t = replace(t, k=t.k // 2, stages=4) if shallow else replace(t, stages=t.stages - 1)
        out.append(t)
    return with_room(out, size, chip)


def _group(m: int, n: int, chip: Chip) -> int:
    """Rows of tiles of m x n in a band, so that the tiles that run at once span about as many rows as columns."""
    return 1 << round(math.log2(max(1.0, math.sqrt(chip.cores * n / m))) - 0.05)


FRAGMENT = 8            # of k that an instruction of tf32 multiplies
PRODUCT_CYCLES = 6.5    # of a warp, for such an instruction on 16x8 results
OPERAND_CYCLES = 3      # to read a register of an operand from shared memory, and to round it


def rounded_seconds(t: MatrixTile, k: int, chip: Chip) -> float:
    """Of a core that computes a tile by warps' instructions on tf32: these read registers of 4 bytes one by one."""
    warps = t.threads / chip.warp
    results = t.m * t.n / warps
    cycles = results / 128 * PRODUCT_CYCLES + math.sqrt(results) / 2 * OPERAND_CYCLES
    clock = dict(chip.flops).get("f32", 1e12) / (256 * chip.cores)
    return cycles * warps / 4 * k / FRAGMENT / clock


def matrix_tile(m: int, n: int, k: int, batch: int, size: int, simt: bool, chip: Chip, exchanged: int,
                _operands: tuple[Loaded, Loaded] | None = None, warpgroup: bool = True, unit: int = 0,
                workers: int = 0) -> MatrixTile:
    """The tile with the least estimated time; see gpu_contraction.matrix_tile.

    workers: how many workgroups the steps of all tiles, of fewer, are dealt out to; 0: a tile is one workgroup's.
    """
    rows = next((r for r in chip.streamed_rows if m <= r and not simt), 0)
    if rows:
        timed = [replace(t, seconds=streamed_seconds(t, n, k, batch, size, chip)) for t in _streaming(rows, size, chip)]
        return min(timed, key=lambda t: (t.seconds, t.n * t.k * t.stages))
    rates = dict(chip.flops)
    rate = rates.get("f16", 1e12) * 2 / max(1, size) * 0.6
    cores = chip.cores
    warpgroups = chip.warpgroup_products

    def seconds(t: MatrixTile) -> float:
        """`shared`: rate of the L2 cache, in the memory's; `drawing`: share of the cores that draw all of it."""
        tiles, steps = shares(t, m, n, k, batch, workers)
        if simt:
            return fma_seconds(t, tiles, steps, size, chip)
        resident = max(1, min(2 if t.m * t.n >= 128 * 128 else 4, chip.shared_bytes // t.shared_bytes(size),
                              512 // t.threads))
        waves = -(-tiles // cores)
        faster, whole = (1.3, 16384) if t.warpgroup else (0.7 if warpgroups else 1.0, 8192)
        compute = 2.0 * t.m * t.n * k / (rate * faster / cores) / min(1.0, math.sqrt(math.sqrt(t.m * t.n / whole)))
        if size == 4 and not t.warpgroup:
            compute = rounded_seconds(t, k, chip)
        shared, drawing = (3.0, 0.9) if t.warpgroup else (2.75 if warpgroups else 2.0, 0.7)
        moved = (t.m + t.n) * k * size / (chip.bandwidth * shared / max(min(cores, tiles), drawing * cores))
        step = LATENCY / (t.stages - 2) if t.warpgroup else STEP_SECONDS
        together = min(resident, waves)
        starts = 1 + AGAIN * (waves - 1) if t.warpgroup else waves
        return waves * max(compute, moved, steps * step / together) \
            + START_SECONDS * (starts + waves * t.m * t.n / ELEMENTS) / together

    def cost(t: MatrixTile) -> tuple[float, int, int]:
        return seconds(t) * (TURNED if t.warpgroup and t.m > t.n else 1.0), -(-(-m // t.m) * -(-n // t.n)), -t.stages

    found = [t for t in candidates(size, simt, chip, warpgroup) if t.n & t.n - 1 == 0 or unit and t.n % unit == 0]
    fitting = [t for t in found if t.m * t.n * exchanged <= chip.shared_bytes
               and not (t.warpgroup and (2 * m <= t.m or 2 * n <= t.n))]    # its instructions need the whole tile
    best = min(fitting or found[-1:], key=cost)
    return replace(best, stages=min(best.stages, max(FEWEST, -(-k // best.k))), seconds=seconds(best))


IN_FLIGHT = 1.13e-6     # seconds of the memory's bandwidth that are under way where it is used to the full
FEWER = 0.4             # power of the share of these bytes that the bandwidth goes with
LINE = 6.4              # bytes of the time of a row that its length does not change
SECTOR = 32             # bytes that are read at least
OWN = 3                 # times its share of the bandwidth that a core draws at most


def streamed_seconds(t: MatrixTile, n: int, k: int, batch: int, size: int, chip: Chip) -> float:
    """Of a product with so few rows that a tile has all of them: those in which its matrix comes from memory, which
    takes enough copies under way, and rows of lines that lie together.

    The constants follow 140 times of tiles on an H100: 2048 to 11008 by 4096 to 32000, of 8 rows.
    """
    if n * k * batch == 0:
        return 0.0
    tiles = -(-n // t.n) * batch
    running = min(tiles, chip.cores * max(1, chip.shared_bytes // t.shared_bytes(size)))
    columns = min(t.n, n) * size
    under_way = running * min(k, (t.stages - 1) * t.k) * columns / (IN_FLIGHT * chip.bandwidth)
    rate = min(1.0, under_way ** FEWER, OWN * tiles / chip.cores) * (1 - LINE / max(SECTOR, columns))
    return n * k * batch * size / (chip.bandwidth * rate)


READ_CYCLES = 4         # of shared memory, for 16 bytes a lane
FMA_CYCLES = 1.4        # for a warp's FMAs on its quarter of a core's lanes
LONE_CYCLES = 1.6       # likewise of a warp that is alone there
ROUND_CYCLES = 100      # a step of the loop that nothing else covers
FIRST_CYCLES = 4000     # of a kernel: launch, addresses, first loads, stores
REGISTERS = (60, 1.2)   # of a thread, and more for each result
WIDENING = 4            # instructions for an operand's element
UNHIDDEN = 0.1          # share of the time of reads from the L2 cache that delays FMAs


def fma_seconds(t: MatrixTile, tiles: int, steps: int, size: int, chip: Chip) -> float:
    """Of `tiles` workgroups that add up `steps` by FMAs. Those of a core share its lanes and its shared memory, from
    which a thread reads four of k at a time for its rows and columns; one that is alone there waits for each read.

    The constants follow 134 times of tiles and sums cut into parts on an H100, from which this differs by 13%
    (root mean square); the tile that it chooses takes 4% more than the fastest.
    """
    cores = chip.cores
    held, warps = max(16, t.m * t.n // t.threads), t.threads / chip.warp
    sides = 2 * 4 * math.sqrt(held / 16)         # rows and columns of a thread, which has whole 4x4 blocks
    widened = 0.0 if size >= 4 else WIDENING * sides        # a thread widens what it reads
    fma = (held + widened) * t.threads * t.k / 128
    read = sides * t.k * size / 16 * warps * READ_CYCLES
    together = math.hypot(fma * FMA_CYCLES, read)
    alone = max(together, fma * max(1.0, 4 / warps) * LONE_CYCLES + ROUND_CYCLES)
    resident = max(1, min(8, chip.shared_bytes // t.shared_bytes(size),
                          int(65536 / (t.threads * (REGISTERS[0] + REGISTERS[1] * held)))))
    waves = -(-tiles // cores)
    cycles = steps * max(waves * together, -(-waves // resident) * alone) + FIRST_CYCLES
    moved = tiles * (t.m + t.n) * steps * t.k * size / (chip.bandwidth * (2.75 if chip.warpgroup_products else 2))
    return max(cycles * 256 * cores / dict(chip.flops).get("f32", 1e12), moved) + UNHIDDEN * moved
