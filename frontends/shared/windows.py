"""Windows over spatial dims: sizes, steps, and the padding that makes them fit."""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc.symbolic import Dim

Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class Window:
    """The window of a convolution or a pool, an entry per spatial dim."""

    kernel: Shape
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: Shape
    high: Shape

    def spans(self) -> Shape:
        """How many elements each window reaches over."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def same_pads(spatial: Shape, kernel: Shape, strides: tuple[int, ...], dilations: tuple[int, ...],
              upper: bool) -> tuple[Shape, Shape]:
    """The padding with which there is a result for every stride of elements; an odd one goes to the end if `upper`."""
    low: list[Dim] = []
    high: list[Dim] = []
    for n, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
        total = symbolic.dim_max((symbolic.ceildiv(n, s) - 1) * s + (k - 1) * d + 1 - n, 0)
        small = symbolic.floordiv(total, 2)
        low.append(small if upper else total - small)
        high.append(total - small if upper else small)
    return tuple(low), tuple(high)


def ceil_high(spatial: Shape, w: Window) -> Shape:
    """`high` grown so that the last window fits, too; one that would start in the high padding is left out."""
    return tuple(_ceil_high(n, span, s, low, high)
                 for n, span, s, low, high in zip(spatial, w.spans(), w.strides, w.low, w.high, strict=True))


def _ceil_high(n: Dim, span: Dim, s: int, low: Dim, high: Dim) -> Dim:
    count = symbolic.ceildiv(n + low + high - span, s) + 1
    starts_inside = symbolic.floordiv(n + low - 1, s) + 1
    count = symbolic.dim_min(count, starts_inside)
    return (count - 1) * s + span - n - low
