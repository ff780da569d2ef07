"""Convolutions in Winograd's form.

With tiles of m x m results of a 3 x 3 filter, t = m + 2: ``y = A' [(G w G') * (B' x B)] A`` for each t x t patch x,
where * multiplies element by element and sums over channels: t * t products of matrices in place of 9 m * m.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from xcc.dialects.xt.broadcasting import merge_dim
from xcc.dialects.xt.fields import dims, integer, operand
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.products import matmul
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim

WINDOW = 3
POINTS = {2: (0, 1, -1), 4: (0, 1, -1, Fraction(1, 2), -2)}
"""Of each tile, where the polynomials are evaluated, infinity aside: those with the least rounding error."""


@lru_cache(maxsize=8)
def winograd_matrices(tile: int) -> tuple[Array, Array, Array]:
    """A' [tile, t], G [t, 3] and B' [t, t] in f64: Toom-Cook's interpolation turned around.

    A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015); for the points B. Barabasz et al.,
    "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks" (2020).
    """
    points = [Fraction(p) for p in POINTS[tile]]
    t = tile + WINDOW - 1
    output = np.zeros((tile, t))
    weight = np.zeros((t, WINDOW))
    image = np.zeros((t, t))
    for j, p in enumerate(points):
        others = [q for q in points if q != p]
        scale = Fraction(1)
        for q in others:
            scale *= p - q
        output[:, j] = [float(p ** i) for i in range(tile)]
        weight[j] = [float(p ** k / scale) for k in range(WINDOW)]
        image[j, :t - 1] = [float(c) for c in _product(others)]
    output[-1, -1] = weight[-1, -1] = 1.0
    image[-1] = [float(c) for c in _product(points)]
    return output, weight, image


def _product(roots: list[Fraction]) -> list[Fraction]:
    """The coefficients of the product of all x - root, the constant one first."""
    out = [Fraction(1)]
    for root in roots:
        out = [(out[i - 1] if i else 0) - root * (out[i] if i < len(out) else 0) for i in range(len(out) + 1)]
    return out


def covered(d: Dim, tile: int) -> int:
    """How many elements behind `d` tiles may reach to: as few as can be where it is known."""
    return -d % tile if isinstance(d, int) else tile - 1


class WinogradConvolution(XtOp, name="winograd_convolution"):
    """A 3x3 convolution with stride 1 of an image x [n, h, w, channels] by tiles of `tile` x `tile` results.

    w is the transformed filter in panels of P outputs, [t, t, ceil(outputs / P), channels, P] with t = tile + 2.
    `spatial` is (height, width) of the result [n, height, width, outputs]; x holds what its tiles read: h is
    ceil(height / tile) * tile + 2, where height is symbolic height + tile + 1, enough for any. An infinity or NaN in x
    spreads over all tiles that read it.
    """

    x = operand()
    w = operand()
    outputs = integer()
    tile = integer()
    spatial = dims()
    access = "contraction"

    def infer(a: Attrs, x: TensorType, w: TensorType) -> TensorType:
        if a.tile not in POINTS:
            raise InferError(f"tiles are {' or '.join(map(str, POINTS))}, not {a.tile}")
        size = a.tile + WINDOW - 1
        if x.rank != 4 or w.rank != 5 or tuple(w.shape[:2]) != (size, size):
            raise InferError(f"x needs rank 4 and w shape ({size}, {size}, panels, channels, columns), "
                             f"not rank {x.rank} and {w.shape}")
        if merge_dim(x.shape[3], w.shape[3]) is None or -(-a.outputs // w.shape[4]) != w.shape[2]:
            raise InferError(f"w {w.shape} is no filter of {x.shape[3]} channels with {a.outputs} outputs")
        need = tuple(d + covered(d, a.tile) + WINDOW - 1 for d in a.spatial)
        if len(need) != 2 or any(isinstance(n, int) and n != d for n, d in zip(need, x.shape[1:3], strict=True)):
            raise InferError(f"tiles of {a.tile} that cover {a.spatial} read {need}, x has {x.shape[1:3]}")
        return TensorType((x.shape[0], *a.spatial, a.outputs), x.dtype)

    def evaluate(a: Attrs, x: Any, w: Any) -> Any:
        spatial = [d if isinstance(d, int) else n - covered(d, a.tile) - WINDOW + 1
                   for d, n in zip(a.spatial, x.shape[1:3], strict=True)]
        output, _, image = winograd_matrices(a.tile)
        size = len(image)
        patches = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::a.tile, ::a.tile]
        n, down, across, channels = patches.shape[:4]
        both = np.moveaxis(_on_both(image, patches.astype(np.float64)), (-2, -1), (0, 1))
        filters = np.moveaxis(w.astype(np.float64), 3, 2).reshape(size, size, channels, -1)
        sums = matmul(both.reshape(size, size, -1, channels), filters)[..., :a.outputs]
        tiles = _on_both(output, np.moveaxis(sums.reshape(size, size, n, down, across, a.outputs), (0, 1), (-2, -1)))
        out = tiles.transpose(0, 1, 4, 2, 5, 3).reshape(n, down * a.tile, across * a.tile, a.outputs)
        out = out[:, :spatial[0], :spatial[1]]
        return np.ascontiguousarray(out).astype(x.dtype)


def _on_both(matrix: Any, x: Any) -> Any:
    """`matrix` on each of the last two dims of `x`."""
    for _ in range(2):
        rows = matmul(x.reshape(-1, x.shape[-1]), matrix.T)
        x = np.swapaxes(rows.reshape(*x.shape[:-1], -1), -1, -2)
    return x
