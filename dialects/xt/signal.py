"""The discrete Fourier transform; windows, STFT and mel filters are built from it by converters."""

from typing import Any

import numpy as np

from xcc.dialects.xt.fields import boolean, integer, operand
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, axis_of
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import floordiv


class Dft(XtOp, name="dft"):
    """Fourier transform along `axis` of x [..., 2] (real, imaginary) or [..., 1] (real); result [..., 2].

    `inverse` divides by the length. `onesided` keeps the first n//2 + 1 frequencies of a forward transform.
    """

    x = operand()
    axis = integer(-2)
    inverse = boolean(False)
    onesided = boolean(False)
    access = "composite"

    @staticmethod
    def normalize(a: Attrs, x: TensorType) -> None:
        a.axis = axis_of(a.axis, x.rank)

    @staticmethod
    def infer(a: Attrs, x: TensorType) -> TensorType:
        check_float(x)
        if x.rank < 2 or x.shape[-1] not in (1, 2) or axis_of(a.axis, x.rank) == x.rank - 1:
            raise InferError("x ends in a dim of 1 or 2 (real, imaginary), and the axis is another one")
        if a.onesided and a.inverse:
            raise InferError("an inverse transform is not onesided")
        n = x.shape[a.axis]
        size = floordiv(n, 2) + 1 if a.onesided else n
        return x.with_shape([*(size if d == a.axis else m for d, m in enumerate(x.shape[:-1])), 2])

    @staticmethod
    def evaluate(a: Attrs, x: Any) -> Any:
        def f(v: Any) -> Any:
            z = v[..., 0] + (1j * v[..., 1] if v.shape[-1] == 2 else 0)
            y = np.fft.ifft(z, axis=a.axis) if a.inverse else np.fft.fft(z, axis=a.axis)
            y = np.take(y, np.arange(z.shape[a.axis] // 2 + 1), a.axis) if a.onesided else y
            return np.stack([y.real, y.imag], -1)

        return in_float(f, x)
