"""A language model of Llama-2-7B's width as an ONNX file, without the time that an export takes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

__all__ = ["inputs_of", "write_llama", "write_norms"]

HIDDEN, HEADS, INNER, LAYERS, VOCAB, POSITIONS = 4096, 32, 11008, 4, 32000, 4096
DIM = HIDDEN // HEADS
HALF = TensorProto.FLOAT16


def inputs_of(batch: int, seq: int, past: int) -> dict[str, np.ndarray[Any, Any]]:
    """Tokens, and keys and values of each layer."""
    rng = np.random.default_rng(0)
    cache = (batch, HEADS, past, DIM)
    return {"ids": rng.integers(0, VOCAB, (batch, seq))} | {
        f"{kind}{n}": rng.standard_normal(cache, np.float32).astype(np.float16)
        for n in range(LAYERS) for kind in "kv" if past}


def write_llama(path: Path, batch: int, seq: int, past: int) -> None:
    """The logits of all positions, or those of the tokens that come behind `past` ones, in f16; weights are random, and
    lie beside the model."""
    maker = _Maker(path, batch, seq, past)
    x = maker.node("Gather", [maker.weight("embed", (VOCAB, HIDDEN), 1.0), "ids"])
    for n in range(LAYERS):
        x = maker.layer(n, x)
    maker.node("MatMul", [maker.norm("norm", x), maker.weight("head", (HIDDEN, VOCAB))], "logits")
    maker.save()


def write_norms(path: Path, rows: int, links: int, inner: int = 64) -> None:
    """x = x + norm(x) a b, links times, with matrices of `inner` columns and rows, which cost next to nothing: where
    ranks share these, each link has a sum of `rows` x 4096 numbers, a residual add and a norm."""
    maker = _Maker(path, 1, rows, 0)
    x = "x"
    for n in range(links):
        y = maker.node("MatMul", [maker.norm(f"norm{n}", x), maker.weight(f"a{n}", (HIDDEN, inner))])
        x = maker.node("Add", [x, maker.node("MatMul", [y, maker.weight(f"b{n}", (inner, HIDDEN))])],
                       "y" if n == links - 1 else "")
    maker.save_as(["x"], "y", [1, rows, HIDDEN])


class _Maker:
    def __init__(self, path: Path, batch: int, seq: int, past: int) -> None:
        self.path, self.batch, self.seq, self.past = path, batch, seq, past
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.data = path.with_suffix(".bin").open("wb")
        self.block = np.random.default_rng(1).standard_normal(1 << 22, np.float32)
        angles = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(0, DIM, 2) / DIM))
        at = np.tile(np.arange(past, past + seq), (batch, 1))
        for name, values in (("cos", np.cos(angles)), ("sin", np.sin(angles)), ("at", at)):
            self.weights.append(onnx.numpy_helper.from_array(
                values if name == "at" else values.astype(np.float16), name))

    def node(self, kind: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        output = output or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def weight(self, name: str, shape: tuple[int, ...], deviation: float = 0.0) -> str:
        """Random numbers, of which there are only so many."""
        count, begin = math.prod(shape), self.data.tell()
        block = (self.block * (deviation or 0.7 / math.sqrt(shape[0]))).astype(np.float16)
        for _ in range(count // block.size):
            block.tofile(self.data)
        block[:count % block.size].tofile(self.data)
        tensor = TensorProto(name=name, data_type=HALF, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self.path.with_suffix(".bin").name), ("offset", begin), ("length", 2 * count)):
            tensor.external_data.add(key=key, value=str(value))
        self.weights.append(tensor)
        return name

    def norm(self, name: str, x: str) -> str:
        self.weights.append(onnx.numpy_helper.from_array(np.ones(HIDDEN, np.float16), name))
        return self.node("RMSNormalization", [x, name], epsilon=1e-5)

    def layer(self, n: int, x: str) -> str:
        y = self.norm(f"norm1.{n}", x)
        q, k, v = (self.node("MatMul", [y, self.weight(f"w{name}.{n}", (HIDDEN, HIDDEN))]) for name in "qkv")
        q, k = (self.node("RotaryEmbedding", [t, "cos", "sin", "at"], num_heads=HEADS) for t in (q, k))
        given = [q, k, v, "", f"k{n}", f"v{n}"] if self.past else [q, k, v]
        y = self.node("Attention", given, q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=0 if self.past else 1)
        x = self.node("Add", [x, self.node("MatMul", [y, self.weight(f"wo.{n}", (HIDDEN, HIDDEN))])])
        y = self.norm(f"norm2.{n}", x)
        gate, up = (self.node("MatMul", [y, self.weight(f"{name}.{n}", (HIDDEN, INNER))]) for name in ("gate", "up"))
        y = self.node("Mul", [self.node("Mul", [gate, self.node("Sigmoid", [gate])]), up])
        return self.node("Add", [x, self.node("MatMul", [y, self.weight(f"down.{n}", (INNER, HIDDEN))])])

    def save(self) -> None:
        self.data.close()
        info = helper.make_tensor_value_info
        cache = [self.batch, HEADS, self.past, DIM]
        inputs = [info("ids", TensorProto.INT64, [self.batch, self.seq]), *(
            info(f"{kind}{n}", HALF, cache) for n in range(LAYERS) for kind in "kv" if self.past)]
        self._write(inputs, [info("logits", HALF, [self.batch, self.seq, VOCAB])])

    def save_as(self, inputs: list[str], output: str, shape: list[int]) -> None:
        """A model of f16 arrays of one shape."""
        self.data.close()
        infos = [helper.make_tensor_value_info(name, HALF, shape) for name in (*inputs, output)]
        self._write(infos[:-1], infos[-1:])

    def _write(self, inputs: list[Any], outputs: list[Any]) -> None:
        graph = helper.make_graph(self.nodes, self.path.stem, inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        self.path.write_bytes(model.SerializeToString())
