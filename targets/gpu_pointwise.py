"""Tiles of GPU kernels that reduce nothing, or a window's neighbours: elements lie side by side, or are transposed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Kernel, bare_loop
from xcc.passes.shared.dims import pow2_above
from xcc.symbolic import Dim
from xcc.targets.base import Chip

POINTWISE_TILE = 1024
LARGE_POINTWISE = 2048      # where more tiles would wait for a place, of kernels that read no more than
FEW_READS = 3               # tensors, and one of them at computed places at most: others lack registers
FEW_POINTWISE = 128         # elements of a tile, at least, where larger ones would leave cores without work
TRANSPOSE_BYTES = 128       # of a row of a transposed tile, on both sides; twice that of what is read
TRANSPOSE_TILES = 8         # where a core has as many tiles: 8192x4096 f16 on an H100 50.7 -> 49.5 us


def threads_for(elements: int, chip: Chip, most: int = 256) -> int:
    """Threads for a tile: about 8 elements each, whole warps."""
    return max(chip.warp, min(most, chip.max_threads, pow2_above(max(1, elements // 8))))


def pointwise_tile(place: Domain, windows: bool, light: bool, chip: Chip) -> tuple[list[int], list[int], int]:
    """Block, vector and threads of pointwise kernels, transposes and `windows`, of which neighbours in several dims
    share what they read. `light`: an element takes few reads."""
    dims = place.dims
    last = len(dims) - 1
    tile = [1] * len(dims)
    across = _transposed_dim(place)
    most = POINTWISE_TILE if windows or across is not None else _elements(dims, light, chip)
    tile[last] = min(most if len(dims) == 1 else most // 4, pow2_above(estimate(dims[last])))
    if across is not None:
        side = TRANSPOSE_BYTES // element_bytes(place.main.element)
        wide = side * (2 if volume(dims) >= TRANSPOSE_TILES * chip.cores * 2 * side * side else 1)
        for d, length in ((last, side), (across, wide)):
            tile[d] = min(length, pow2_above(estimate(dims[d])))
        for d in (across, last):        # the other side is short
            tile[d] = max(tile[d], min(POINTWISE_TILE // (tile[last] * tile[across] // tile[d]),
                                       pow2_above(estimate(dims[d]))))
    elif len(dims) > 1 and not windows:
        tile[last] = _along(estimate(dims[last]), tile[last], most)
    room = max(1, most // prod(tile))
    for d in (d for d in range(last - 1, -1, -1) if tile[d] == 1):
        tile[d] = min(room, pow2_above(estimate(dims[d])))
        room //= tile[d]
    return tile, tile, threads_for(prod(tile) * POINTWISE_TILE // most, chip)


def reads_little(kernel: Kernel, place: Domain) -> bool:
    """Whether an element takes few reads, so that a thread has registers for many elements."""
    gathers = sum(inner.operation.name == "tensor.extract" for o in kernel.ops if o.operation is not None
                  for inner in o.block.operations)
    return len(place.reads) <= FEW_READS and gathers <= 1


def _elements(dims: Sequence[Dim], light: bool, chip: Chip) -> int:
    """Elements of a pointwise tile. Where few are known to be there, a block for each core, with as many threads: what
    a thread does one behind the other is the time that they take."""
    most, known = POINTWISE_TILE, all(isinstance(d, int) for d in dims)
    if known and light and volume(dims) >= LARGE_POINTWISE * chip.resident_blocks * chip.cores:
        return LARGE_POINTWISE
    while known and most > FEW_POINTWISE and volume(dims) < most * chip.cores:
        most //= 2
    return most


def _along(size: int, least: int, most: int) -> int:
    """Elements of a pointwise tile along a row of `size`: all of the tile's, or as few as `least` where a row would be
    padded more.

    What a block reads then lies together: in four rows of 256 each, 8192x4096 f16 values take 1% longer on an H100.
    """
    wider = [n for n in (2 * least, 4 * least) if n <= most and -size % n <= -size % least]
    return max(wider, default=least)


def _transposed_dim(place: Domain) -> int | None:
    """A domain dim, not the last, that is contiguous in a large argument."""
    last = len(place.dims) - 1
    for t, access in place.reads:
        if len(access) < 2 or len(t.dims) < len(place.dims):
            continue
        inner = bare_loop(access[-1])
        if inner is not None and inner != last and any(bare_loop(e) == last for e in access):
            return inner
    return None
