"""A language model of a small Llama's kind, and what it goes on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHARED = {"q*": "tp:1", "k*": "tp:1", "v*": "tp:1", "up*": "tp:1", "head": "tp:1"}
WIDTH, HEADS, LAYERS, VOCAB, TOKENS, GIVEN = 32, 2, 2, 64, 208, 8


def decoder(path: Path) -> Path:
    """Logits of all of `TOKENS` tokens."""
    rng = np.random.default_rng(0)
    weights: list[Any] = []
    nodes: list[Any] = []

    def weight(name: str, *shape: int) -> str:
        data = rng.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5 if len(shape) > 1 else np.ones(shape)
        weights.append(numpy_helper.from_array(data.astype(np.float32), name))
        return name

    def node(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{kind}{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def product(x: str, name: str, rows: int, columns: int, output: str = "") -> str:
        return node("MatMul", x, weight(name, rows, columns), output=output)

    x = node("Gather", weight("embed", VOCAB, WIDTH), "ids")
    for n in range(LAYERS):
        y = node("RMSNormalization", x, weight(f"norm{n}", WIDTH))
        q, k, v = (product(y, f"{name}{n}", WIDTH, WIDTH) for name in "qkv")
        y = node("Attention", q, k, v, q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)
        x = node("Add", x, product(y, f"o{n}", WIDTH, WIDTH))
        y = node("Gelu", product(node("RMSNormalization", x, weight(f"inner{n}", WIDTH)), f"up{n}", WIDTH, 2 * WIDTH))
        x = node("Add", x, product(y, f"down{n}", 2 * WIDTH, WIDTH))
    product(node("RMSNormalization", x, weight("norm", WIDTH)), "head", WIDTH, VOCAB, "logits")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, TOKENS])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, TOKENS, VOCAB])
    graph = helper.make_graph(nodes, "decoder", [ids], [logits], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)
    return path


def greedy(model: Any) -> list[int]:
    """The most likely token each time, behind `GIVEN` ones."""
    ids = np.zeros((1, TOKENS), np.int64)
    ids[0, :GIVEN] = np.arange(GIVEN)
    for n in range(GIVEN, TOKENS):
        ids[0, n] = np.argmax(np.asarray(model.run({"ids": ids})["logits"])[0, n - 1])
    found: list[int] = ids[0].tolist()
    return found
