"""Resampling: resize of whole tensors (ONNX's definition)."""

import math
from collections.abc import Sequence

import numpy as np

from xcc.dialects.xt.fields import boolean, dims, integer, number, numbers, operand, per_dim, text
from xcc.dialects.xt.numeric import NARROW, Array
from xcc.dialects.xt.op import Attrs, InferError, XtOp
from xcc.dialects.xt.reading import check_rank
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType, dtype_name, is_float
from xcc.symbolic import Dim

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_crop_and_resize")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


class Resize(XtOp, name="resize"):
    """x resampled to `shape`, each dim on its own; dims of equal size and scale 1 are copied.

    mode: nearest (with `nearest_mode`), linear, cubic (Keys, `cubic_coeff`). `coordinate` maps an output position to
    an input position. `scales` (an entry a dim, 0 for output size / input size) are the exact factors; dims that become
    1 to `multiples` times as long go by their sizes all the same. `roi` (starts then ends, an entry a dim each) and
    `extrapolation` serve tf_crop_and_resize. `antialias` widens the filter when shrinking. `exclude_outside` drops taps
    outside the input and rescales the rest.
    """

    x = operand()
    shape = per_dim(kind=dims)
    mode = text("nearest", ("nearest", "linear", "cubic"))
    coordinate = text("half_pixel", COORDINATES)
    nearest_mode = text("round_prefer_floor", NEAREST)
    cubic_coeff = number(-0.75)
    exclude_outside = boolean(False)
    extrapolation = number(0.0)
    antialias = boolean(False)
    scales = per_dim(0.0, numbers)
    multiples = integer(0)
    roi = numbers(())
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if a.coordinate == "tf_crop_and_resize":
            check_rank("roi", a.roi, 2 * x.rank)
        if a.mode != "nearest" and not (is_float(x.dtype) or x.dtype in ("ui8", "i8", "i32")):
            raise InferError(f"mode {a.mode} does not take {x.dtype}")
        return x.with_shape(a.shape)

    def sampled(a: Attrs, x: TensorType) -> Sequence[int]:
        return [d for d, n in enumerate(a.shape) if resized(a, d, x.shape[d], n)]

    def evaluate(a: Attrs, x: Array) -> Array:
        shape = static_dims(a.shape, "shape")
        exact = x if a.mode == "nearest" else x.astype(np.float64)
        outside = np.zeros(shape, bool)
        for d, size in enumerate(shape):
            if not resized(a, d, x.shape[d], size):
                continue
            index, weights, off = taps(a, d, x.shape[d], size)
            picked = np.moveaxis(np.take(exact, index, d), d + 1, -1)
            if a.mode == "nearest":
                exact = picked[..., 0]
            else:
                column = weights.reshape([-1 if i == d else 1 for i in range(x.ndim)] + [weights.shape[1]])
                exact = (picked * column).sum(-1)
            outside |= off.reshape([-1 if i == d else 1 for i in range(x.ndim)])
        exact = np.where(outside, np.array(a.extrapolation).astype(exact.dtype), exact)
        if not is_float(dtype_name(x.dtype)) and a.mode != "nearest":
            exact = np.rint(exact)
        return exact.astype(np.float32).astype(x.dtype) if dtype_name(x.dtype) in NARROW else exact.astype(x.dtype)


def resized(a: Attrs, axis: int, size: Dim, out: Dim) -> bool:
    """Whether dim `axis` changes at all."""
    cropped = a.coordinate == "tf_crop_and_resize" and (a.roi[axis], a.roi[axis + len(a.shape)]) != (0.0, 1.0)
    return size != out or scale_of(a, axis, size, out) not in (0.0, 1.0) or cropped


def scale_of(a: Attrs, axis: int, size: Dim, out: Dim) -> float:
    """The factor that dim `axis` goes by; 0 where its sizes decide."""
    return next((float(k) for k in range(1, a.multiples + 1) if out == size * k), a.scales[axis])


def taps(a: Attrs, axis: int, size: int, out: int) -> tuple[Array, Array, Array]:
    """For each output position of dim `axis`: input indices [out, taps], weights alike, and whether it is outside."""
    if not out:
        return np.zeros((0, 1), np.int64), np.zeros((0, 1)), np.zeros(0, bool)
    scale = scale_of(a, axis, size, out) or (out / size if size else 1.0)
    x = source_positions(a, axis, size, out, scale)
    outside = (x < 0) | (x > size - 1) if a.coordinate == "tf_crop_and_resize" else np.zeros(out, bool)
    index, weights = zip(*(_row(a, float(p), scale) for p in x), strict=True)
    table = np.array(index, np.int64).reshape(out, -1)
    factors = np.array(weights, np.float64).reshape(out, -1)
    if a.exclude_outside:
        factors = np.where((table < 0) | (table >= size), 0, factors)
        total = factors.sum(-1, keepdims=True)
        factors = factors / np.where(total == 0, 1, total)      # of taps that are all outside none counts
    return np.clip(table, 0, max(size - 1, 0)), factors, outside


def source_positions(a: Attrs, axis: int, size: int, out: int, scale: float) -> Array:
    """The input coordinate of each output position."""
    y = np.arange(out, dtype=np.float64)
    match a.coordinate:
        case "align_corners":
            return y * (size - 1) / (scale * size - 1) if out > 1 else np.zeros(out)
        case "asymmetric":
            return y / scale
        case "pytorch_half_pixel" if out == 1:
            return np.zeros(1)
        case "half_pixel_symmetric":
            offset = size / 2 * (1 - out / (scale * size))
            return offset + (y + 0.5) / scale - 0.5
        case "tf_crop_and_resize":
            start, end = (r * (size - 1) for r in (a.roi[axis], a.roi[axis + len(a.roi) // 2]))
            return start + (y * (end - start) / (out - 1) if out > 1 else np.full(out, (end - start) / 2))
    return (y + 0.5) / scale - 0.5


def _row(a: Attrs, x: float, scale: float) -> tuple[list[int], list[float]]:
    """Indices and weights of the taps around position `x`; a whole position is the right end of its cell."""
    left = math.ceil(x) - 1
    ratio = x - left
    shrink = min(scale, 1.0) if a.antialias else 1.0
    if a.mode == "nearest":
        if ratio == 1:
            return [left + 1], [1.0]
        right = {"round_prefer_floor": ratio > 0.5, "round_prefer_ceil": ratio >= 0.5, "floor": False,
                 "ceil": True}[a.nearest_mode]
        return [left + int(right)], [1.0]
    offsets = tap_offsets(a, shrink)
    kernel = _triangle if a.mode == "linear" else lambda t: keys(t, a.cubic_coeff)
    weights = [kernel((o - ratio) * shrink) for o in offsets]
    total = sum(weights)
    return [left + o for o in offsets], [w / total for w in weights]


def tap_offsets(a: Attrs, shrink: float) -> list[int]:
    """Where the taps of linear and cubic are, from the left neighbour of a position on."""
    first = math.floor(-(1 if a.mode == "linear" else 2) / shrink) + 1
    return list(range(first, 2 - first))


def symbolic_form(a: Attrs) -> bool:
    """Whether dims that change may have symbolic sizes: a cropped region may not."""
    return a.coordinate != "tf_crop_and_resize"


def _triangle(t: float) -> float:
    return max(0.0, 1 - abs(t))


def keys(t: float, c: float) -> float:
    """The cubic convolution kernel of Keys (1981)."""
    t = abs(t)
    if t <= 1:
        return (c + 2) * t**3 - (c + 3) * t**2 + 1
    return c * t**3 - 5 * c * t**2 + 8 * c * t - 4 * c if t < 2 else 0.0
