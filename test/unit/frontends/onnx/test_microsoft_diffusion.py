"""Ops that onnxruntime's optimiser writes into diffusion models for GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from microsoft_ops import drawn, evaluated, model
from onnx import helper


def last(x: Any) -> Any:
    """[n, c, h, w] as [n, h, w, c]."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def same(op: str, inputs: Sequence[Any], nodes: Sequence[Any], feeds: dict[str, Any], **options: Any) -> None:
    """onnxruntime has `op` on GPUs alone: it gives what its `nodes`, which end in y0, give with the channels first."""
    results = [onnx.ValueInfoProto(name="y0")]
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in feeds.items()]
    plain = helper.make_model(helper.make_graph(nodes, "g", given, results), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21)])
    want, = onnxruntime.InferenceSession(plain.SerializeToString()).run(None, feeds)
    got = evaluated(model(op, inputs, 1, **options), {f"x{i}": a for i, a in enumerate(inputs) if a is not None})
    np.testing.assert_allclose(got[0], last(want) if want.ndim == 4 else want, atol=2e-5, rtol=1e-4)


def test_channels_last_of_diffusion_models():
    node = helper.make_node
    x, w, b = drawn(2, 8, 6, 5), drawn(12, 4, 3, 3), drawn(12)
    form = {"group": 2, "strides": [2, 1], "pads": [1] * 4}
    same("NhwcConv", [last(x), last(w), b], [node("Conv", ["x", "w", "b"], ["y0"], **form)],
         {"x": x, "w": w, "b": b}, **form)
    gamma, beta, skip, bias = drawn(8), drawn(8), drawn(2, 8, 1, 1), drawn(8)
    norm = node("GroupNormalization", ["x", "gamma", "beta"], ["n"], num_groups=4)
    silu = [node("Sigmoid", ["n"], ["s"]), node("Mul", ["n", "s"], ["y0"])]
    same("GroupNorm", [last(x), gamma, beta], [norm, *silu], {"x": x, "gamma": gamma, "beta": beta}, groups=4,
         activation=1)
    for narrow in (skip[:, :, 0, 0], last(skip)):
        same("SkipGroupNorm", [last(x), gamma, beta, narrow, bias],
             [node("Add", ["x", "k"], ["n0"]), node("Add", ["n0", "b"], ["x1"]),
              node("GroupNormalization", ["x1", "gamma", "beta"], ["y0"], num_groups=4)],
             {"x": x, "k": skip, "b": bias[:, None, None], "gamma": gamma, "beta": beta}, groups=4, activation=0)


def test_biases_of_diffusion_models():
    node = helper.make_node
    x, bias, skip = drawn(2, 5, 12), drawn(12), drawn(2, 5, 12)
    added = node("Add", ["x", "b"], ["t"])
    same("BiasAdd", [x, bias, skip], [added, node("Add", ["t", "k"], ["y0"])], {"x": x, "b": bias, "k": skip})
    halves = [node("Split", ["t"], ["l", "r"], axis=2, num_outputs=2), node("Gelu", ["r"], ["g"]),
              node("Mul", ["l", "g"], ["y0"])]
    same("BiasSplitGelu", [x, bias], [added, *halves], {"x": x, "b": bias})
