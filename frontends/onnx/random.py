"""Random numbers: counter-based, so that a seed gives the same numbers on every target."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, Shape
from xcc.frontends.onnx.element_types import from_onnx
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert


def _seed(cx: Context) -> int:
    """The node's seed; without one a number of its own for each node, so that two nodes differ."""
    seed = cx.attr("seed")
    if seed is None:
        cx.graph.model.counter += 1
        return cx.graph.model.counter
    return int(np.float32(seed).view(np.int32))


def _result(cx: Context, shape: Shape, fallback: Any) -> Value:
    number = cx.attr("dtype")
    dtype = from_onnx(number) if number else fallback
    if "Normal" in cx.op:
        x = xt.random_normal(shape=shape, mean=cx.attr("mean", 0.0), scale=cx.attr("scale", 1.0), seed=_seed(cx),
                             dtype="f32")
    else:
        x = xt.random_uniform(shape=shape, low=cx.attr("low", 0.0), high=cx.attr("high", 1.0), seed=_seed(cx),
                              dtype="f32")
    return convert(x, dtype)


@onnx_op("RandomNormal", "RandomUniform")
def random_of_shape(cx: Context) -> Value:
    return _result(cx, tuple(cx.attr("shape")), np.dtype(np.float32))


@onnx_op("RandomNormalLike", "RandomUniformLike")
def random_like(cx: Context) -> Value:
    return _result(cx, cx.shape(0), cx.dtype(0))


@onnx_op("Bernoulli")
def bernoulli(cx: Context) -> Value:
    """1 with the probability given by each element."""
    x = cx[0]
    dtype = from_onnx(cx.attr("dtype")) if cx.attr("dtype") else cx.dtype(0)
    noise = xt.random_uniform(shape=cx.shape(0), low=0.0, high=1.0, seed=_seed(cx), dtype="f32")
    return convert(xt.compare(noise, convert(x, "f32"), direction="lt"), dtype)


@onnx_op("Multinomial")
def multinomial(cx: Context) -> Value:
    """Samples of the distribution with unnormalised log-probabilities, by the Gumbel maximum."""
    x = convert(cx[0], "f32")
    batch, classes = cx.shape(0)
    count = cx.attr("sample_size", 1)
    noise = xt.random_uniform(shape=(batch, count, classes), low=1e-20, high=1.0, seed=_seed(cx), dtype="f32")
    gumbel = xt.neg(xt.log(xt.neg(xt.log(noise))))
    scores = xt.add(gumbel, xt.reshape(x, shape=(batch, 1, classes)))
    picked = xt.arg_reduce(scores, kind="argmax", axis=2, keepdims=False)
    return convert(picked, from_onnx(cx.attr("dtype", 6)))


