"""The ops of ai.onnx.ml that are plain tensor arithmetic."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, scalar

_DOMAIN = "ai.onnx.ml"


@onnx_op("ArrayFeatureExtractor", domain=_DOMAIN)
def array_feature_extractor(cx: Context) -> Value:
    """The elements at the flat positions Y of the last dim; a vector becomes one row."""
    x, positions = cx[0], cx[1]
    count = 1
    for d in cx.shape(1):
        count = count * d  # type: ignore[assignment]
    if cx.rank(0) == 1:
        x = xt.reshape(x, shape=(1, *cx.shape(0)))
    return xt.gather(x, xt.reshape(positions, shape=(count,)), axis=len(xt.shape_of(x)) - 1)


@onnx_op("Binarizer", domain=_DOMAIN)
def binarizer(cx: Context) -> Value:
    """1 above the threshold, else 0."""
    x = cx[0]
    return convert(xt.compare(x, scalar(cx.attr("threshold", 0.0), x), direction="gt"), element(x))


@onnx_op("Scaler", domain=_DOMAIN)
def scaler(cx: Context) -> Value:
    """(x - offset) * scale, as f32."""
    x = convert(cx[0], "f32")
    offset, scale = (xt.constant(cx.attr(name), "f32") for name in ("offset", "scale"))
    return xt.mul(xt.sub(x, offset), scale)
