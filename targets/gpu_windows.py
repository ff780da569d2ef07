"""Tiles of windows whose channels lie together: depthwise convolutions, pooling.

A thread computes `beside` neighbours along a row of the image, as many channels of each as one access is wide. It reads
what their windows share once, and each weight once for all of them; what a neighbour more saves in reads and
conversions is weighed against threads that are fewer, and tiles that are padded more. Tiles divide the channels: what
is read is inside the image then, whatever lanes are off, and needs no branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate
from xcc.passes.linalg.kernel.kernel import Op, bare_loop
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import Dim
from xcc.targets.base import Chip

WIDEST = 256            # channels of a tile
BESIDE = (1, 2, 4, 8)
ROWS = (1, 2, 4, 8, 16, 32)
WARPS = (1, 2, 4)       # of a workgroup: nothing is shared by them
ACCESS = 14             # instructions that an access of 16 bytes counts for, with its address and its test
RUN_BYTES = 64          # of neighbours that lanes read together; shorter runs take more cycles of the cache
WAIT = 600              # instructions that one scheduler could issue while a step of the window waits for memory
SCHEDULERS = 4          # of a core


@dataclass(frozen=True)
class WindowTile:
    """Elements of a workgroup's tile along each dim, its threads, and neighbours of a thread (see GpuPart)."""

    tile: tuple[int, ...]
    threads: int
    beside: int


@dataclass(frozen=True)
class _Window:
    """`taps` elements in all, `width` of them along a row, `stride` apart from window to window. `size`: bytes of an
    element that is read."""

    taps: int
    width: int
    stride: int
    size: int


def window_tile(place: Domain, reductions: list[Op], chip: Chip) -> WindowTile | None:
    """The cheapest tile; None where the kernel is no window along the last dim but one, of channels along the last, or
    sizes of the image are not known, or on chips whose masked loads are not shared by neighbours."""
    found = [_window(place, op) for op in reductions]
    windows = [w for w in found if w is not None]
    if not windows or len(windows) < len(found) or chip.masks_loads \
            or not all(isinstance(d, int) for d in place.dims[-3:]):
        return None
    window = max(windows, key=lambda w: w.taps)
    width = chip.vector_bytes // window.size
    sizes = [estimate(d) for d in place.dims]
    best: tuple[float, int, int] | None = None
    chosen = None
    for beside, rows, warps, columns, channels in product(
            BESIDE, ROWS, WARPS, _powers(sizes[-2], WIDEST), _powers(sizes[-1], WIDEST)):
        threads = warps * chip.warp
        if channels * columns * rows != threads * width * beside or channels < width or sizes[-1] % channels \
                or columns < beside or (rows > 1 and (len(sizes) < 3 or rows >= 2 * sizes[-3])):
            continue
        tile = (*(1 for _ in sizes[:-3]), rows, columns, channels)[-len(sizes):]
        cost = _cost(window, sizes, tile, width, beside, chip), threads, -channels
        if best is None or cost < best:
            best, chosen = cost, WindowTile(tile, threads, beside)
    return chosen


def _cost(window: _Window, sizes: list[int], tile: tuple[int, ...], width: int, beside: int, chip: Chip) -> float:
    """Cycles of a scheduler: what its warps issue, and what each waits."""
    padded = prod(-(-size // n) * n for size, n in zip(sizes, tile, strict=True))
    warps = padded / (width * beside * chip.warp * chip.cores * SCHEDULERS)
    read = (beside - 1) * window.stride + window.width      # places of a row of the window that a thread reads
    converts = width if window.size < 4 else 0
    access = ACCESS * max(1.0, RUN_BYTES / (tile[-1] * window.size))
    step = width * beside * window.width + (converts + access) * (read + window.width)
    steps = window.taps / window.width
    return steps * (step * warps + WAIT)


def _powers(size: int, most: int) -> list[int]:
    """Powers of two up to the first that is at least `size`."""
    return [1 << n for n in range(min(most, pow2_above(size)).bit_length())]


def _window(place: Domain, op: Op) -> _Window | None:
    """What `op` reads around each element of the main result."""
    if place.position.get(op) != tuple(symbolic.sym(f"i{d}") for d in range(len(place.dims))) or len(place.dims) < 2:
        return None
    loops = op.out_loops()
    sizes = {p: op.loops[p] for p, r in enumerate(op.reduction) if r}
    if not all(isinstance(size, int) for size in sizes.values()):
        return None
    for t, access in op.inputs:
        if len(access) < 2 or bare_loop(access[-1]) != loops[-1]:
            continue
        walk = linear(access[-2])
        along = [p for p in walk if p in sizes] if walk is not None else []
        if walk is not None and len(along) == 1 and set(walk) == {loops[-2], along[0]}:
            taps = prod(int(n) for n in sizes.values() if isinstance(n, int))
            return _Window(taps, estimate(sizes[along[0]]), walk[loops[-2]], element_bytes(t.element))
    return None


def linear(e: Dim) -> dict[int, int] | None:
    """The loops in a sum, by how far one step of each goes; None for what is no sum of loops."""
    if not isinstance(e, symbolic.Expr):
        return None
    out = {}
    for monomial, factor in e.terms:
        if not monomial:
            continue
        loop = bare_loop(symbolic.sym(monomial[0][0])) if len(monomial) == 1 and len(monomial[0]) == 1 else None
        if loop is None:
            return None
        out[loop] = factor
    return out
