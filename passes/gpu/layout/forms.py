"""The layouts that passes start from: of threads whose accesses coalesce, of tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xcc.passes.gpu.layout.linear import Layout, Vector, log2, unit


def row_major(shape: Sequence[int], order: Sequence[int] | None = None) -> Layout:
    """Memory offset of a position, a 1-D layout from ``dim0``, ...; `order` lists the dims fastest first."""
    order = list(order) if order is not None else list(reversed(range(len(shape))))
    stride = {}
    total = 1
    for d in order:
        stride[d] = total
        total *= shape[d]
    return Layout.make([total], {f"dim{d}": [[stride[d] << b] for b in range(log2(s))] for d, s in enumerate(shape)})


def swizzled(shape: Sequence[int], order: Sequence[int], vector: int, row_bytes_limit: int, element_bytes: int,
             folds: int = 1, by_row: bool = False) -> Layout:
    """`row_major` whose offset's bits within a row of `row_bytes_limit` bytes are XORed with the bits above.

    by_row: with the bits of the number of the tile's row, where that is longer.

    Runs of `vector` elements stay together; rows that would fall on the same banks are spread over them. With two
    `folds` the bits above those are XORed in too: rows that are apart by as many as are spread are spread as well.
    """
    plain = row_major(shape, order)
    total = plain.shape[0]
    vector = min(vector, total)
    row = min(max(vector, row_bytes_limit // element_bytes), total)
    low, high = log2(vector), log2(row)
    first = max(high, log2(shape[order[0]])) if by_row else high

    def mix(offset: int) -> int:
        above = offset >> first
        for fold in range(1, folds):
            above ^= offset >> first + fold * (high - low)
        return offset ^ (above & (1 << (high - low)) - 1) << low

    return Layout.make([total], {n: [[mix(v[0])] for v in vs] for n, vs in plain.bases})


def blocked(shape: Sequence[int], order: Sequence[int], vector: int, warp: int, warps: int,
            rows: Sequence[tuple[int, int]] = ()) -> Layout:
    """The coalesced layout: `order` lists the dims by distance in memory, nearest first.

    A thread holds `vector` neighbours, the lanes of a warp continue along the nearest dims, warps are spread over
    the farthest dims first (so that a row stays in one warp where the tile has rows enough), and registers repeat
    this over the rest of the tile. Threads that the tile cannot use hold copies. rows: (dim, count) of neighbours along
    other dims that a thread holds beside the `vector` ones.
    """
    left = {d: log2(s) for d, s in enumerate(shape)}
    used = dict.fromkeys(left, 0)
    rank = len(shape)
    split: dict[int, list[int]] = {d: list(range(log2(s))) for d, s in enumerate(shape)}
    bases: dict[str, list[Vector]] = {"register": [], "lane": [], "warp": []}

    def take(name: str, d: int, high: bool) -> None:
        bit = split[d].pop(-1 if high else 0)
        used[d] += 1
        bases[name].append(unit(rank, d, 1 << bit))

    for _ in range(log2(vector)):
        if order and split[order[0]]:
            take("register", order[0], False)
    for d, count in rows:
        for _ in range(log2(count)):
            take("register", d, False)
    for _ in range(log2(warp)):
        free = [d for d in order if split[d]]
        if free:
            take("lane", free[0], False)
        else:
            bases["lane"].append((0,) * rank)
    warp_dims: list[int] = []
    room = {d: len(split[d]) for d in order}
    for _ in range(log2(warps)):
        free = [d for d in reversed(order) if room[d]]
        if free:
            room[free[0]] -= 1
            warp_dims.append(free[0])
        else:
            warp_dims.append(-1)
    for d in warp_dims:
        if d < 0:
            bases["warp"].append((0,) * rank)
        else:
            take("warp", d, False)
    for d in order:
        while split[d]:
            take("register", d, False)
    return Layout.make(shape, bases)


def memory_of(text: str, shape: tuple[int, ...]) -> Layout:
    """The memory layout of a tile of `shape` that `text` says; ValueError where it is none."""
    memory = Layout.parse(text)
    sizes = tuple(memory.size(name) for name in memory.inputs)
    if memory.inputs != tuple(f"dim{d}" for d in range(len(sizes))) or sizes != shape \
            or memory.shape != (prod(shape),) or not memory.is_injective():
        raise ValueError(f"'{text}' gives the elements of a tile of {shape} no places of their own")
    return memory
