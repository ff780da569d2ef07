"""Where the elements of a value are, among the ranks of one axis.

- *whole*: each rank has all of them;
- *split* along a dim: the dim is seen as `segments` equal parts, and each rank has its share of each of them, one
  behind the other. With one segment that is a block of neighbours. The columns of q, k and v in one matrix are three
  segments: each rank has the q, k and v of its heads;
- *partial*: each rank has an array of the value's shape, and their sum (or max, ...) is the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc.symbolic import Dim, floordiv, mod


@dataclass(frozen=True)
class Placement:
    """kind: "whole", "split" or "partial"; "any" of what the model holds, until its first use says how it lies."""

    kind: str
    dim: int = -1
    segments: Dim = 1
    combine: str = ""

    def __str__(self) -> str:
        if self.kind == "split":
            return f"split({self.dim})" if self.segments == 1 else f"split({self.dim} in {self.segments} segments)"
        return f"partial({self.combine})" if self.kind == "partial" else self.kind


WHOLE = Placement("whole")
ANY = Placement("any")


def split(dim: int, segments: Dim = 1) -> Placement:
    return Placement("split", dim, segments)


def partial(combine: str) -> Placement:
    return Placement("partial", combine=combine)


def exact(a: Dim, b: Dim) -> Dim | None:
    """a / b where that is known to be whole, else None."""
    if b == 0:
        return None
    quotient = floordiv(a, b)
    return quotient if quotient * b - a == 0 else None


def divides(size: Dim, segments: Dim, ranks: int) -> bool:
    """Whether `size` is known to be `segments` equal parts that `ranks` share equally. None of 0 elements."""
    part = exact(size, segments)
    return part is not None and part != 0 and bool(mod(part, ranks) == 0)


def local_shape(shape: Sequence[Dim], placement: Placement, ranks: int) -> tuple[Dim, ...]:
    """The shape of a rank's array of a value of `shape`."""
    if placement.kind != "split":
        return tuple(shape)
    return tuple(floordiv(n, ranks) if d == placement.dim else n for d, n in enumerate(shape))
