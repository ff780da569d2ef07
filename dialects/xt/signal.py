"""The discrete Fourier transform; windows, STFT and mel filters are built from it by converters."""

import math

import numpy as np

from xcc.dialects.xt.angles import cos, sin
from xcc.dialects.xt.broadcasting import same_dtype
from xcc.dialects.xt.fields import axis, boolean, dims, integer, operand, text
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.products import matmul
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import floordiv


class Dft(XtOp, name="dft"):
    """Fourier transform along `axis` of x [..., 2] (real, imaginary) or [..., 1] (real); result [..., 2].

    `inverse` divides by the length. `onesided` keeps the first n//2 + 1 frequencies of a forward transform; an inverse
    one has these of a real tensor, x [..., n//2 + 1, ..., 2], and makes its `length` n numbers, [..., n, ..., 1].
    """

    x = operand()
    axis = axis(-2)
    inverse = boolean(False)
    onesided = boolean(False)
    length = dims(())
    access = "composite"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        check_float(x)
        if x.rank < 2 or x.shape[-1] not in (1, 2) or a.axis == x.rank - 1:
            raise InferError("x ends in a dim of 1 or 2 (real, imaginary), and the axis is another one")
        real = a.inverse and a.onesided
        if len(a.length) != real:
            raise InferError("`length` goes with the inverse of one side")
        n = a.length[0] if real else x.shape[a.axis]
        if real and (x.shape[-1] != 2 or not same_dims(x.shape[a.axis], floordiv(n, 2) + 1)):
            raise InferError(f"{x} is no half of the frequencies of {n} numbers")
        size = floordiv(n, 2) + 1 if a.onesided and not real else n
        return x.with_shape([*(size if d == a.axis else m for d, m in enumerate(x.shape[:-1])), 1 if real else 2])

    def evaluate(a: Attrs, x: Array) -> Array:
        n = static_dims(a.length, "length")[0] if a.length else x.shape[a.axis]

        def f(v: Array) -> Array:
            rows = np.moveaxis(v, a.axis, -2)
            table = roots_of_unity(a, n, rows.shape[-1]).astype(v.dtype)
            y = matmul(rows.reshape(-1, table.shape[0] * table.shape[1]), table.reshape(-1, math.prod(table.shape[2:])))
            return np.moveaxis(y.reshape(*rows.shape[:-2], *table.shape[2:]), -2, a.axis)

        return in_float(f, x)


FOURIER = ("forward", "inverse", "real", "real_inverse")


class FourierRows(XtOp, name="fourier_rows"):
    """The Fourier transform of each row of x [m, 2n], pairs of real and imaginary part: [m, 2n]. `real` is that of n
    numbers [m, n], an even number: [m, n + 2], the first n/2 + 1 pairs. `real_inverse` is its inverse; inverses divide
    by n. `roots` [n, 2]: the powers of the root of unity, of the inverse one for inverses. A loop takes `lanes` rows.
    """

    x = operand()
    roots = operand()
    kind = text("forward", FOURIER)
    lanes = integer(8)

    def infer(a: Attrs, x: TensorType, roots: TensorType) -> TensorType:
        same_dtype(x, roots)
        check_float(x)
        n = roots.shape[0]
        sides = {"real": (n, n + 2), "real_inverse": (n + 2, n)}
        columns, result = sides.get(a.kind, (2 * n, 2 * n))
        if x.rank != 2 or roots.shape[1:] != (2,) or x.shape[1] != columns or a.kind in sides and n % 2:
            raise InferError(f"{x} are no rows for a transform ({a.kind}) with roots {roots}")
        return TensorType((x.shape[0], result), x.dtype)

    def evaluate(a: Attrs, x: Array, roots: Array) -> Array:
        n, inverse = len(roots), a.kind.endswith("inverse")
        places = np.outer(np.arange(n), np.arange(n)) % n
        c, s = roots[places, 0], roots[places, 1]
        table = np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], 1)          # [n, parts, n, parts]
        if a.kind == "real":
            table = table[:, :1, :n // 2 + 1]
        elif a.kind == "real_inverse":
            table = twice(table[:n // 2 + 1, :, :, :1], n)
        return matmul(x, table.reshape(x.shape[1], -1)) / x.dtype.type(n if inverse else 1)


def twice(table: Array, n: int) -> Array:
    """The first n//2 + 1 rows, each also for the one that symmetry makes equal to it: all but the first, and that of
    half of an even number."""
    count = np.full(len(table), 2)
    count[0] = 1
    count[n - n // 2:] = 1
    return np.asarray(table * count.reshape(-1, *[1] * (table.ndim - 1)).astype(table.dtype))


def roots_of_unity(a: Attrs, n: int, parts: int) -> Array:
    """What the transform of `n` numbers of `parts` parts multiplies with: [n, parts, frequencies, 2] in f64; for the
    inverse of one side [frequencies, 2, n, 1]."""
    half = n // 2 + 1
    real = a.inverse and a.onesided
    rows, columns = half if real else n, half if a.onesided and not real else n
    table = np.moveaxis(rotations(np.outer(np.arange(rows), np.arange(columns)), n, a.inverse), 2, 1)
    table = twice(table[..., :1], n) if real else table[:, :parts]
    return np.asarray(table / (n if a.inverse else 1))


def rotations(places: Array, n: int, inverse: bool) -> Array:
    """Multiplication of a row (real, imaginary) by the `n`-th root of unity to the power of each place: [..., 2, 2] in
    f64, exact but for the rounding of the sine and cosine; that of half a turn has no imaginary part."""
    quarters = np.rint(4 * np.arange(n) / max(n, 1)).astype(np.int64)
    angle = np.pi / 2 * (4 * np.arange(n) - quarters * n) / max(n, 1)
    near, across, turned = cos(angle), sin(angle), quarters % 4
    cosine = np.choose(turned, (near, -across, -near, across))[places % max(n, 1)]
    sine = np.choose(turned, (across, near, -across, -near))[places % max(n, 1)] * (-1 if inverse else 1)
    return np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2) + 0.0    # no zero below 0
