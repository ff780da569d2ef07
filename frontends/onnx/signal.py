"""Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.elementary import log10, power
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.element_types import from_onnx
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, dim_scalar, unsqueeze
from xcc.frontends.shared.transforms import cut_or_padded
from xcc.frontends.shared.windows import frames
from xcc.symbolic import Dim


@onnx_op("DFT", since=17)
def dft_attribute(cx: Context) -> Value:
    return _dft(cx, cx.axis(default=1))


@onnx_op("DFT", since=20)
def dft_operand(cx: Context) -> Value:
    """output = DFT(input, dft_length?, axis?; inverse, onesided)."""
    return _dft(cx, cx.normal_axis(cx.static_ints(2)[0] if cx.has(2) else -2))


def _dft(cx: Context, axis: int) -> Value:
    x, inverse, onesided = cx[0], bool(cx.attr("inverse", 0)), bool(cx.attr("onesided", 0))
    length = cx.dims(1)[0] if cx.has(1) else cx.shape(0)[axis]
    if inverse and onesided:
        return _real_inverse(cx, x, axis, length)
    return xt.dft(cut_or_padded(x, axis, length), axis=axis, inverse=inverse, onesided=onesided)


def _real_inverse(cx: Context, x: Value, axis: int, length: Dim) -> Value:
    """The half spectrum transformed back; the real part is the result."""
    if not cx.has(1):
        length = (xt.shape_of(x)[axis] - 1) * 2
    half = cut_or_padded(x, axis, symbolic.floordiv(length, 2) + 1)
    return xt.dft(_complex(half), axis=axis, inverse=True, onesided=True, length=(length,))


def _complex(x: Value) -> Value:
    """[..., 1] gets a zero imaginary part."""
    shape = xt.shape_of(x)
    if shape[-1] == 2:
        return x
    return xt.pad(x, low=(0,) * len(shape), high=(*[0] * (len(shape) - 1), 1))


@onnx_op("STFT", since=17)
def stft(cx: Context) -> Value:
    """output [batch, frames, bins, 2] = STFT(signal, frame_step, window?, frame_length?; onesided)."""
    x = cx[0]
    step = cx.dims(1)[0]
    size = cx.dims(3)[0] if cx.has(3) else cx.shape(2)[0]
    if len(cx.shape(0)) == 2:
        x = unsqueeze(x, [2])
    batch, length, parts = xt.shape_of(x)
    framed = frames(x, 1, size, step, symbolic.floordiv(length - size, step) + 1)
    if cx.has(2):
        framed = xt.mul(framed, xt.reshape(cx[2], shape=(1, 1, size, 1)))
    return xt.dft(framed, axis=2, inverse=False, onesided=bool(cx.attr("onesided", 1)) and parts == 1)


@onnx_op("HannWindow", "HammingWindow", "BlackmanWindow", since=17)
def window(cx: Context) -> Value:
    """Sums of cosines over `size` points; a periodic window has one point more, left out."""
    size = cx.dims(0)[0] if cx.tensor(0).data is not None else (cx.declared() or cx.dims(0))[0]
    dtype = from_onnx(cx.attr("output_datatype", 1))
    periods = size if cx.attr("periodic", 1) else size - 1
    line = convert(xt.iota(shape=(size,), axis=0, dtype="i64"), "f32")
    angle = xt.div(xt.mul(line, xt.scalar(2 * np.pi, "f32")), dim_scalar(periods, "f32"))
    a = {"HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 1 - 25 / 46, 0.0),
         "BlackmanWindow": (0.42, 0.5, 0.08)}[cx.op]
    out = xt.sub(xt.scalar(a[0], "f32"), xt.mul(xt.cos(angle), xt.scalar(a[1], "f32")))
    if a[2]:
        out = xt.add(out, xt.mul(xt.cos(xt.mul(angle, xt.scalar(2, "f32"))), xt.scalar(a[2], "f32")))
    return convert(out, dtype)


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(cx: Context) -> Any:
    """[dft_length/2 + 1, num_mel_bins] triangles on the mel scale; all operands are constants."""
    bins, length, rate, low, high = (float(cx.const(i).reshape(-1)[0]) for i in range(5))
    spectrum = int(length) // 2 + 1
    mels = np.linspace(_mel(low), _mel(high), int(bins) + 2, endpoint=False)
    edges = np.floor((length + 1) * (700.0 * (power(10.0, mels / 2595.0) - 1.0)) / rate).astype(int)
    out = np.zeros((spectrum, int(bins)), np.float32)
    for b in range(int(bins)):
        left, middle, right = edges[b:b + 3]
        if left == middle:
            out[middle, b] = 1
        for i in range(left, middle + 1):
            if middle > left:
                out[i, b] = (i - left) / (middle - left)
        for i in range(middle, right):
            if right > middle:
                out[i, b] = (right - i) / (right - middle)
    return cx.known(out.astype(from_onnx(cx.attr("output_datatype", 1))))


def _mel(frequency: float) -> float:
    return float(2595.0 * log10(1.0 + frequency / 700.0))


