"""Experts' matrices, which are picked by index, lie in panels: compiled mixtures give what their ops mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import xcc
from xcc._mlir import ir
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx import importer

EXPERTS, WIDTH, INNER, BLOCK = 5, 64, 96, 32


def mixture(op: str) -> Any:
    """A model of one node with free tokens; each has two experts."""
    rng = np.random.default_rng(0)
    shapes = {"fc1": (EXPERTS, INNER, WIDTH), "fc2": (EXPERTS, WIDTH, INNER)}
    weights: dict[str, Any] = {}
    for name, (count, rows, depth) in shapes.items():
        if op == "MoE":
            weights[name] = rng.standard_normal((count, rows, depth)).astype(np.float32)
        else:
            weights[name] = rng.integers(0, 256, (count, rows, depth // 2), np.uint8)
            weights[f"{name}_scales"] = rng.uniform(0.01, 0.02, (count, rows, depth // BLOCK)).astype(np.float32)
        weights[f"{name}_bias"] = rng.standard_normal((count, rows)).astype(np.float32)
    more = {"expert_weight_bits": 4, "block_size": BLOCK} if op == "QMoE" else {}
    node = helper.make_node(op, ["x", "scores", *weights], ["y"], domain="com.microsoft", k=2, activation_type="silu",
                            normalize_routing_weights=1, **more)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (
        ("x", ["t", WIDTH]), ("scores", ["t", EXPERTS]), ("y", ["t", WIDTH]))]
    graph = helper.make_graph([node], "g", ends[:2], ends[2:],
                              [onnx.numpy_helper.from_array(v, n) for n, v in weights.items()])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("op", ["MoE", "QMoE"])
def test_experts(op: str) -> None:
    model, rng = mixture(op), np.random.default_rng(1)
    compiled = xcc.compile(model)
    with ir.Context():
        module, weights = importer.load(model)
        for tokens in (1, 7, 30):
            feeds = {"x": rng.standard_normal((tokens, WIDTH)).astype(np.float32),
                     "scores": rng.standard_normal((tokens, EXPERTS)).astype(np.float32)}
            want = interpret(module, feeds, weights)[0]
            np.testing.assert_allclose(compiled.run(feeds)["y"], want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
