"""Which lines of memory share a set of the L1 cache: those that lie a multiple of 4 KiB apart, in all chips we know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

WAYS = 12           # of a set
PAGE = 4096         # bytes of a way
LINE_BYTES = 64


def lines_of_a_set(addresses: Iterable[int]) -> int:
    """How many different lines the busiest set has of those at `addresses`, in bytes."""
    sets = [line % (PAGE // LINE_BYTES) for line in {a // LINE_BYTES for a in addresses}]
    return max(map(sets.count, set(sets)), default=0)


def spread_dims(dims: Sequence[int], tile: Sequence[int], size: int) -> tuple[int, ...]:
    """`dims` of a buffer with elements of `size` bytes, the last with a cache line more where that lets the rows of a
    `tile` of it lie in several sets, and one set would not hold them.
    """
    def busiest(of: Sequence[int]) -> int:
        steps = [size * prod(of[d + 1:]) for d in range(len(of) - 1)]
        return lines_of_a_set(sum(i * s for i, s in zip(at, steps, strict=True))
                              for at in product(*(range(n) for n in tile[:-1])))

    wider = (*dims[:-1], dims[-1] + LINE_BYTES // size)
    return wider if busiest(dims) > WAYS and busiest(wider) < busiest(dims) else tuple(dims)
