"""Sums over whole images that have a result for each tap of a window: the gradients of depthwise filters.

    dw[r, s, c] = sum over n, h, w of x[n, h + r, w + s, c] * dy[n, h, w, c]

A thread sums for all columns of the window, some of its rows and some channels: it reads a pixel of dy once for all of
these, and of x once for a row. A row of dy is written out, so that what neighbours read is one load and places in the
padding are known. Rows are dealt out to parts, each with workgroups of its own; what they leave is added in a second
launch, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xcc.passes.linalg.evaluate.row_parts import levels_of
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, volume
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.attributes import PART
from xcc.passes.shared.dims import pow2_above
from xcc.targets.base import Chip
from xcc.targets.gpu_rows import UNROLL, reduced_to_main
from xcc.targets.gpu_windows import RUN_BYTES, SCHEDULERS, WAIT, linear

MOST_SUMS = 112         # of a thread
MOST_PARTS = 16         # for each thread of a workgroup, which adds up what they leave
WARPS = (1, 2, 4, 8)    # of a workgroup
READ = 3                # instructions of a load, with its address
LEAST = 2               # warps of a core


@dataclass(frozen=True)
class _Sums:
    """A window of `rows` by `columns`, of which `others` are apart, over images of so many `lines` of `pixels`,
    `stride` apart, of `channels` of `size` bytes. walk: the loop along a line; joined: those over lines."""

    others: int
    rows: int
    columns: int
    channels: int
    lines: int
    pixels: int
    stride: int
    size: int
    walk: int
    joined: tuple[int, ...]


@dataclass(frozen=True)
class _Tile:
    """What a workgroup sums: a thread `rows` of the window for `width` channels, of `channels`, over `lines`."""

    rows: int
    width: int
    channels: int
    threads: int
    lines: int


def window_sums(kernel: Kernel, place: Domain, chip: Chip) -> Schedule | None:
    """The cheapest schedule; None where the kernel is no such sum, or its lines are too few to keep all cores busy."""
    reductions = [o for o in kernel.ops if o.is_reduction]
    if len(reductions) != 1 or not levels_of(kernel) or len(kernel.results) > 1 or PART in kernel.function.attributes:
        return None
    found = _sums(place, reductions[0]) if reduced_to_main(place, reductions) else None
    tiles = list(_tiles(found, chip)) if found is not None else []
    if found is None or not tiles:
        return None
    best = min(tiles, key=lambda t: (_seconds(found, t, chip), t.threads, t.lines))
    window = [pow2_above(found.rows), pow2_above(found.columns), best.channels]
    tile = tuple([1] * len(place.dims) + window)[-len(place.dims):] if len(place.dims) > 2 else tuple(window[1:])
    parts = -(-found.lines // best.lines)
    written = _written(found)
    lanes = tuple(0 if p == found.walk else 1 for p, r in enumerate(reductions[0].reduction) if r)
    return Schedule(tile, tile, tuple(range(len(tile))), (lanes,), "mask", "gather", parallel=True,
                    written=written if written < found.pixels else 0,
                    joined=(found.joined,) if len(found.joined) > 1 else (),
                    gpu=GpuPart(threads=best.threads, splits=parts if parts > 1 else 0,
                                beside=best.rows * window[1]))


def _sums(place: Domain, op: Op) -> _Sums | None:
    """What `op` sums, where one factor is read at places that move along with those of the result."""
    loops, dims = op.out_loops(), [d for d in place.dims if isinstance(d, int)]
    summed = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
    if product_operands(op) is None or len(op.inputs) != 2 or len(dims) < max(2, len(place.dims)) or len(summed) < 2 \
            or not all(isinstance(op.loops[p], int) for p in summed) or prod(dims[:-1]) > volume(
                op.loops[p] for p in summed):
        return None
    for (t, window), (_, pixel) in (op.inputs, op.inputs[::-1]):
        walk = linear(window[-2]) if len(window) > 1 else None
        along = [p for p in walk or {} if p in summed]
        order = [p for p in map(bare_loop, pixel) if p in summed]
        if walk is None or set(walk) != {loops[-2], summed[-1]} or along != [summed[-1]] \
                or {bare_loop(window[-1]), bare_loop(pixel[-1])} != {loops[-1]} or sorted(map(str, order)) != sorted(
                    map(str, summed)):
            continue
        others = tuple(p for p in order if p is not None and p != summed[-1])
        high = dims[-3] if len(dims) > 2 else 1
        return _Sums(prod(dims[:-3]), high, dims[-2], dims[-1], volume(op.loops[p] for p in others),
                     volume([op.loops[summed[-1]]]), walk[summed[-1]], element_bytes(t.element), summed[-1], others)
    return None


def _tiles(s: _Sums, chip: Chip) -> Iterator[_Tile]:
    high = pow2_above(s.rows)
    for warps in WARPS:
        for rows in (1 << n for n in range(high.bit_length())):
            for width in (1 << n for n in range((chip.vector_bytes // s.size).bit_length())):
                threads = warps * chip.warp
                channels = threads * rows * width // high
                if channels < width or s.channels % channels or min(rows, s.rows) * s.columns * width > MOST_SUMS:
                    continue
                for parts in range(1, min(MOST_PARTS * threads, s.lines) + 1):
                    lines = -(-s.lines // parts)
                    if -(-s.lines // lines) == parts \
                            and parts * (s.channels // channels) * s.others * warps >= LEAST * chip.cores:
                        yield _Tile(rows, width, channels, threads, lines)


def _written(s: _Sums) -> int:
    """Pixels of a line that are written out at once: equal shares of it."""
    return -(-s.pixels // -(-s.pixels // UNROLL))


def _seconds(s: _Sums, t: _Tile, chip: Chip) -> float:
    """By the instructions of a scheduler, and waits where it has few warps; or what comes from the L2 cache. Behind it
    what the parts leave is written and read."""
    parts = -(-s.lines // t.lines)
    groups = s.others * s.channels // t.channels * parts
    rows = min(t.rows, s.rows)
    access = READ * max(1.0, RUN_BYTES / (t.channels * s.size))
    again = 1 + (s.columns - 1) / _written(s) if _written(s) < s.pixels else 1      # what the next steps read, too
    loads = rows * again * s.stride
    pixel = rows * s.columns * t.width + (loads + 1) * ((t.width if s.size < 4 else 0) + access) \
        + loads * max(1, t.width * s.size // 4)
    line = s.pixels * pixel
    warps = -(-groups // chip.cores) * t.threads / chip.warp / SCHEDULERS
    issued = t.lines * max(warps * line, line + WAIT * -(-s.pixels // _written(s)))
    rate = dict(chip.flops)["f32"] / (2 * chip.warp * chip.cores * SCHEDULERS)
    read = groups * (s.rows - 1 + 2 * t.lines) * s.pixels * s.stride * t.channels * s.size
    left = 2 * parts * s.others * s.rows * s.columns * s.channels * 4 if parts > 1 else 0
    return max(issued / rate, read / (2 * chip.bandwidth)) + left / (2 * chip.bandwidth)
