"""Windows over spatial dims: sizes, steps, and the padding that makes them fit."""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import along, dim_scalar, slice_axis
from xcc.symbolic import Dim

Shape = tuple[Dim, ...]
PIECES = 16         # of a frame, up to which copies of whole blocks take less time than reading element by element


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


def frames(x: Value, axis: int, size: Dim, step: Dim, count: Dim) -> Value:
    """[..., count, size, ...]: `count` windows of `size` neighbours along `axis`, `step` apart.

    Where a window is a few blocks of a step, these are read block by block: the first block of all windows, the second
    of all, and so on, side by side.
    """
    pieces = size // step if isinstance(size, int) and isinstance(step, int) and size % step == 0 else 0
    if not 0 < pieces <= PIECES:
        starts = xt.mul(along(xt.iota(shape=(count,), axis=0, dtype="i64"), 0, 2), dim_scalar(step, "i64"))
        return xt.gather(x, xt.add(starts, along(xt.iota(shape=(size,), axis=0, dtype="i64"), 1, 2)), axis=axis)
    shape, blocks = xt.shape_of(x), count + pieces - 1
    x = xt.reshape(slice_axis(x, axis, 0, blocks * step), shape=(*shape[:axis], blocks, step, *shape[axis + 1:]))
    return xt.concatenate(*(slice_axis(x, axis, i, count + i) for i in range(pieces)), axis=axis + 1)
