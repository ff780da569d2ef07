"""A language model as exporters for onnxruntime write it: grouped attention over caches, narrow weights, norms."""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled import compare
from onnx import TensorProto, helper, numpy_helper
from small_graphs import compiled, reference

WORDS, WIDTH, HEADS, SHARED, SIZE, LAYERS, BLOCK = 50, 64, 4, 2, 16, 2, 16


class Model:
    """The graph under construction; weights are drawn from a seed."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, value: Any) -> str:
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return str(self.weights[-1].name)

    def floats(self, *shape: int, scale: float = 0.2) -> str:
        return self.weight((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def op(self, op: str, inputs: list[str], count: int = 1, domain: str = "com.microsoft", **attributes: Any) -> str:
        names = [f"v{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def product(self, x: str, rows: int, columns: int) -> str:
        """MatMulNBits with weights of 4 bits."""
        blocks = rows // BLOCK
        packed = self.weight(self.rng.integers(0, 256, (columns, blocks, BLOCK // 2), np.uint8))
        scales = self.weight(self.rng.uniform(0.01, 0.03, (columns, blocks)).astype(np.float32))
        return self.op("MatMulNBits", [x, packed, scales], K=rows, N=columns, bits=4, block_size=BLOCK)

    def layer(self, x: str, sum_: str, n: int, angles: list[str]) -> tuple[str, str]:
        shared = SHARED * SIZE
        packed = self.product(x, WIDTH, WIDTH + 2 * shared)
        operands = [packed, "", "", f"past.{n}.key", f"past.{n}.value", "seqlens_k", "total", *angles]
        self.nodes.append(helper.make_node(
            "GroupQueryAttention", operands, [f"attended.{n}", f"present.{n}.key", f"present.{n}.value"],
            domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED, do_rotary=1))
        x, sum_ = self.normed(sum_, self.product(f"attended.{n}", WIDTH, WIDTH))
        gate, up = self.product(x, WIDTH, 2 * WIDTH), self.product(x, WIDTH, 2 * WIDTH)
        gate = self.op("QuickGelu", [gate], alpha=1.0)
        x = self.product(self.op("Mul", [gate, up], domain=""), 2 * WIDTH, WIDTH)
        return self.normed(sum_, x)

    def normed(self, sum_: str, x: str) -> tuple[str, str]:
        out = self.op("SkipSimplifiedLayerNormalization", [sum_, x, self.floats(WIDTH, scale=1.0)], 4, epsilon=1e-5)
        return out, f"{out}_3"

    def built(self) -> Any:
        one = self.weight(np.array([1], np.int64))
        lengths = self.op("ReduceSum", ["attention_mask", one], domain="", keepdims=0)
        self.nodes.append(helper.make_node("Cast", [self.op("Sub", [lengths, one], domain="")], ["seqlens_k"], to=6))
        seen = self.op("Gather", [self.op("Shape", ["attention_mask"], domain=""), self.weight(np.array(1))], domain="")
        self.nodes.append(helper.make_node("Cast", [seen], ["total"], to=6))
        angles = [self.floats(32, SIZE // 2, scale=1.0) for _ in range(2)]
        sum_ = self.op("Gather", [self.floats(WORDS, WIDTH, scale=1.0), "input_ids"], domain="")
        x = self.op("SimplifiedLayerNormalization", [sum_, self.floats(WIDTH, scale=1.0)], domain="", axis=-1)
        for n in range(LAYERS):
            x, sum_ = self.layer(x, sum_, n, angles)
        self.nodes.append(helper.make_node("Identity", [self.product(x, WIDTH, WORDS)], ["logits"]))
        return self._model()

    def _model(self) -> Any:
        caches = [f"{n}.{kind}" for n in range(LAYERS) for kind in ("key", "value")]

        def value(name: str, shape: list[Any], kind: int = TensorProto.FLOAT) -> Any:
            return helper.make_tensor_value_info(name, kind, shape)

        inputs = [value("input_ids", ["batch", "new"], TensorProto.INT64),
                  value("attention_mask", ["batch", "total"], TensorProto.INT64),
                  *(value(f"past.{c}", ["batch", SHARED, "past", SIZE]) for c in caches)]
        outputs = [value("logits", ["batch", "new", WORDS]),
                   *(value(f"present.{c}", ["batch", SHARED, "kept", SIZE]) for c in caches)]
        graph = helper.make_graph(self.nodes, "genai", inputs, outputs, self.weights)
        sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=10)


def fed(tokens: Any, total: int, caches: list[Any]) -> dict[str, Any]:
    names = [f"past.{n}.{kind}" for n in range(LAYERS) for kind in ("key", "value")]
    return {"input_ids": tokens, "attention_mask": np.ones((len(tokens), total), np.int64),
            **dict(zip(names, caches, strict=True))}


def test_prompt_and_steps():
    """Each step's cache goes into the next; a batch of one is right, too."""
    source = Model().built()
    model = compiled(source)
    rng = np.random.default_rng(0)
    for batch, prompt in ((2, 5), (1, 1)):
        caches = [np.zeros((batch, SHARED, 0, SIZE), np.float32)] * (2 * LAYERS)
        for n, total in enumerate((prompt, prompt + 1, prompt + 2)):
            feeds = fed(rng.integers(0, WORDS, (batch, 1 if n else prompt)), total, caches)
            want = reference(source, feeds)
            for got, expected in zip(model.run(feeds).values(), want, strict=True):
                compare(got, expected, 8)
            caches = want[1:]
