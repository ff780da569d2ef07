"""Fourier transforms (``torch.fft``), one dim after the other.

    torch.fft.rfft(x: f32[N, 400])    ->    Complex of two f32[N, 201]
"""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, dim_scalar, rank_of, scalar, squeeze, unsqueeze
from xcc.frontends.shared.transforms import cut_or_padded
from xcc.frontends.torch.complex import from_pairs, view_as_real
from xcc.frontends.torch.context import Complex, Context
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim, floordiv, product

_POWERS = (0.0, -0.5, -1.0)
"""By ``normalization``: the power of the number of elements that a transform is multiplied with."""


@aten("aten._fft_r2c.default", namespace="complex")
def real_to_complex(cx: Context) -> Complex:
    """Of real numbers, the last of `dim` first; of that one `onesided` keeps the first half."""
    x = cx.tensor("self")
    *others, last = cx.axes()
    lengths = [xt.shape_of(x)[axis] for axis in (*others, last)]
    x = xt.dft(unsqueeze(x, (rank_of(x),)), axis=last, inverse=False, onesided=bool(cx["onesided"]))
    return from_pairs(_scaled(cx, _along(x, others, inverse=False), lengths, inverse=False))


@aten("aten._fft_c2c.default", namespace="complex")
def complex_to_complex(cx: Context) -> Complex:
    x, axes, inverse = view_as_real(cx), cx.args["dim"], not cx["forward"]
    axes = [cx.normal(axis, rank_of(x) - 1) for axis in axes]
    lengths = [xt.shape_of(x)[axis] for axis in axes]
    return from_pairs(_scaled(cx, _along(x, axes, inverse), lengths, inverse))


@aten("aten._fft_c2r.default", namespace="complex")
def complex_to_real(cx: Context) -> Value:
    """The inverse, whose last of `dim`, of `last_dim_size` numbers, is given as its first half."""
    x = view_as_real(cx)
    *others, last = (cx.normal(axis, rank_of(x) - 1) for axis in cx.args["dim"])
    length, = cx.dims("last_dim_size")
    lengths = [*(xt.shape_of(x)[axis] for axis in others), length]
    half = cut_or_padded(_along(x, others, inverse=True), last, floordiv(length, 2) + 1)
    whole = xt.dft(half, axis=last, inverse=True, onesided=True, length=(length,))
    return squeeze(_scaled(cx, whole, lengths, inverse=True), (rank_of(x) - 1,))


def _along(x: Value, axes: list[int], inverse: bool) -> Value:
    for axis in axes:
        x = xt.dft(x, axis=axis, inverse=inverse, onesided=False)
    return x


def _scaled(cx: Context, x: Value, lengths: list[Dim], inverse: bool) -> Value:
    """By what torch wants of it; xt's inverse is divided by the lengths."""
    power, count = _POWERS[int(cx["normalization"])] + inverse, product(lengths)
    if not power:
        return x
    if isinstance(count, int):
        return xt.mul(x, scalar(float(count) ** power, x))
    return xt.mul(x, convert(xt.pow(dim_scalar(count, "f64"), xt.scalar(power, "f64")), xt.TensorType.of(x).dtype))
