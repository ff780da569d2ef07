"""The discrete Fourier transform; windows, STFT and mel filters are built from it by converters."""

import math

import numpy as np

from xcc.dialects.xt.angles import cos, sin
from xcc.dialects.xt.fields import axis, boolean, operand
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.products import matmul
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import floordiv


class Dft(XtOp, name="dft"):
    """Fourier transform along `axis` of x [..., 2] (real, imaginary) or [..., 1] (real); result [..., 2].

    `inverse` divides by the length. `onesided` keeps the first n//2 + 1 frequencies of a forward transform.
    """

    x = operand()
    axis = axis(-2)
    inverse = boolean(False)
    onesided = boolean(False)
    access = "composite"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        check_float(x)
        if x.rank < 2 or x.shape[-1] not in (1, 2) or a.axis == x.rank - 1:
            raise InferError("x ends in a dim of 1 or 2 (real, imaginary), and the axis is another one")
        if a.onesided and a.inverse:
            raise InferError("an inverse transform is not onesided")
        n = x.shape[a.axis]
        size = floordiv(n, 2) + 1 if a.onesided else n
        return x.with_shape([*(size if d == a.axis else m for d, m in enumerate(x.shape[:-1])), 2])

    def evaluate(a: Attrs, x: Array) -> Array:
        def f(v: Array) -> Array:
            rows = np.moveaxis(v, a.axis, -2)
            table = roots_of_unity(a, *rows.shape[-2:]).astype(v.dtype)
            y = matmul(rows.reshape(-1, table.shape[0] * table.shape[1]), table.reshape(-1, math.prod(table.shape[2:])))
            return np.moveaxis(y.reshape(*rows.shape[:-2], *table.shape[2:]), -2, a.axis)

        return in_float(f, x)


def roots_of_unity(a: Attrs, n: int, parts: int) -> Array:
    """What the transform of `n` numbers of `parts` parts multiplies with: [n, parts, frequencies, 2] in f64."""
    m = n // 2 + 1 if a.onesided else n
    table = np.moveaxis(rotations(np.outer(np.arange(n), np.arange(m)), n, a.inverse), 2, 1)
    return np.asarray(table[:, :parts] / (n if a.inverse else 1))


def rotations(places: Array, n: int, inverse: bool) -> Array:
    """Multiplication of a row (real, imaginary) by the `n`-th root of unity to the power of each place: [..., 2, 2] in
    f64, exact but for the rounding of the sine and cosine; that of half a turn has no imaginary part."""
    quarters = np.rint(4 * np.arange(n) / max(n, 1)).astype(np.int64)
    angle = np.pi / 2 * (4 * np.arange(n) - quarters * n) / max(n, 1)
    near, across, turned = cos(angle), sin(angle), quarters % 4
    cosine = np.choose(turned, (near, -across, -near, across))[places % max(n, 1)]
    sine = np.choose(turned, (across, near, -across, -near))[places % max(n, 1)] * (-1 if inverse else 1)
    return np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2) + 0.0    # no zero below 0
