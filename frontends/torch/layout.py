"""In which order the dims of a dense tensor lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["inverse", "order_of", "strides_of"]


def order_of(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The dims from the outermost in memory to the innermost; None where elements overlap or have gaps between them.

    Channels last is (0, 2, 3, 1). Dims of 1 lie where they stand.
    """
    if 0 in sizes:
        return tuple(range(len(sizes)))
    left = [d for d in range(len(sizes)) if sizes[d] != 1]
    inner: list[int] = []
    span = 1
    while left:
        found = [d for d in left if strides[d] == span]
        if not found:
            return None
        left.remove(found[-1])
        inner.insert(0, found[-1])
        span *= sizes[found[-1]]
    places = iter(inner)
    return tuple(d if sizes[d] == 1 else next(places) for d in range(len(sizes)))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that gives what lies in `order` its dims in their own order again."""
    return tuple(order.index(d) for d in range(len(order)))


def strides_of(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a dense tensor of `shape` whose dims lie in `order`."""
    out = [0] * len(shape)
    span = 1
    for d in reversed(order):
        out[d] = span
        span *= max(shape[d], 1)
    return tuple(out)
