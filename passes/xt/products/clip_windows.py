"""Windows that reach beyond the image: elements that lie outside of it for every result are no part of the window.

    reduce_window(x) {window = [1280], strides = [1280], high = [1273]} : 7 -> 1   becomes   reduce(x)

Elements outside are neutral, so a window without them gives the same. One that is the whole image is a reduction, whose
rows are read in vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import window_size
from xcc.dim_expr import Expr


@dataclass(frozen=True)
class _Dim:
    """A window along one dim, with its padding."""

    window: Any
    low: Any
    high: Any


def clipped(op: Operation) -> Value | None:
    """The windows without what no result reads of the image, or a reduction; None where neither is to be done."""
    a, x = xt.attrs_of(op), op.operands[0]
    shape, out = xt.shape_of(x), xt.shape_of(op.results[0])
    before = [_Dim(*found) for found in zip(a.window, a.low, a.high, strict=True)]
    after = [_clip(d, n, m, stride, dilation)
             for d, n, m, stride, dilation in zip(before, shape, out, a.strides, a.dilations, strict=True)]
    reduced = [n for n, d in enumerate(after) if d.window != 1]
    if reduced and all(out[n] == 1 and after[n] == _Dim(shape[n], 0, 0) and (a.dilations[n] == 1 or shape[n] == 1)
                       for n in reduced) and all(a.strides[n] == 1 and after[n] == _Dim(1, 0, 0)
                                                 for n in range(len(shape)) if n not in reduced):
        return xt.reduce(x, kind=a.kind, axes=tuple(reduced), keepdims=True)
    if after == before:
        return None
    return xt.reduce_window(x, kind=a.kind, strides=a.strides, dilations=a.dilations, window=[d.window for d in after],
                            low=[d.low for d in after], high=[d.high for d in after])


def _clip(d: _Dim, size: int | Expr, results: int | Expr, stride: int, dilation: int) -> _Dim:
    """`d` from the first element that lies in the image for some result to the last one."""
    if not all(isinstance(n, int) for n in (d.window, d.low, d.high, size, results)) or not size or not results:
        return d
    starts = [o * stride - d.low for o in (0, results - 1)]
    # element j of the windows walks from starts[0] + j * dilation, by `stride`, to starts[1] + j * dilation
    first = max(0, -(starts[1] // dilation))
    last = min(d.window - 1, (size - 1 - starts[0]) // dilation)
    first = min(first, max(0, d.low // dilation))       # what is left still begins at or before the image
    if first > last or (first, last) == (0, d.window - 1):
        return d
    low, window = d.low - first * dilation, last - first + 1
    fewest = (results - 1) * stride + (window - 1) * dilation + 1 - size - low
    high = min(max(fewest, 0), fewest + stride - 1)
    new = _Dim(window, low, high)
    return new if window_size(size, window, stride, low, high, dilation) == results else d
