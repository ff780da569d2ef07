"""ONNX models whose weights have few bits: how they are stored, and what they mean in numpy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

TYPES = {"INT8": np.int8, "UINT8": np.uint8, "INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4,
         "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E5M2": ml_dtypes.float8_e5m2,
         "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}


@dataclass
class Narrow:
    """A model under construction: `want` has each output's value for `feeds`."""

    seed: int = 0
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    want: dict[str, Array] = field(default_factory=dict)
    symbols: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def drawn(self, kind: str, shape: tuple[int, ...]) -> Array:
        if "INT" not in kind:
            return self.rng.normal(size=shape).astype(TYPES[kind])
        bits = 4 if kind.endswith("4") else 8
        low = 0 if kind[0] == "U" else -(1 << (bits - 1))
        return self.rng.integers(low, low + (1 << bits), shape).astype(TYPES[kind])

    def weight(self, value: Array, kind: str = "") -> str:
        name = f"w{len(self.weights)}"
        if not kind:
            self.weights.append(numpy_helper.from_array(value, name))
            return name
        raw = value.reshape(-1).view(np.uint8)
        if kind.endswith(("4", "E2M1")):
            raw = np.append(raw & 15, np.zeros(raw.size % 2, np.uint8))
            raw = raw[0::2] | raw[1::2] << 4
        self.weights.append(helper.make_tensor(name, getattr(TensorProto, kind), value.shape, raw.tobytes(), raw=True))
        return name

    def input(self, shape: tuple[int, ...], dims: list[Any]) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.rng.normal(size=shape).astype(np.float32)
        self.symbols[name] = dims
        return name

    def dequantized(self, kind: str, shape: tuple[int, ...], axis: int, block: int) -> tuple[str, Array]:
        """DequantizeLinear of a weight, along `axis` in blocks where `block` is not 0, and what it gives."""
        w = self.drawn(kind, shape)
        counts = tuple(-(-n // block) if d == axis else n for d, n in enumerate(shape)) if block else (shape[axis],)
        scale = self.rng.uniform(0.05, 0.15, counts).astype(np.float32)
        zero = self.drawn(kind, counts) if "INT" in kind else np.zeros(counts, TYPES[kind])

        def spread(v: Array) -> Array:
            if block:
                return np.repeat(v, block, axis)[tuple(slice(0, n) for n in shape)]
            return v.reshape([-1 if d == axis else 1 for d in range(len(shape))])

        names = [self.weight(w, kind), self.weight(scale)] + ([self.weight(zero, kind)] if "INT" in kind else [])
        out = f"d{len(self.nodes)}"
        self.nodes.append(helper.make_node("DequantizeLinear", names, [out], axis=axis, block_size=block))
        return out, (w.astype(np.float32) - spread(zero.astype(np.float32))) * spread(scale)

    def emit(self, op: str, inputs: list[str], want: Array, **attributes: Any) -> None:
        out = f"y{len(self.want)}"
        self.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        self.want[out] = want

    def product(self, kind: str, x: str, columns: int, axis: int, block: int, transposed: bool) -> None:
        """A Gemm of `x` and a dequantised weight."""
        depth = self.feeds[x].shape[1]
        w, value = self.dequantized(kind, (columns, depth) if transposed else (depth, columns), axis, block)
        self.emit("Gemm", [x, w], self.feeds[x] @ (value.T if transposed else value), transB=int(transposed))

    def convolution(self, kind: str, x: str, channels: int, window: int, axis: int, block: int) -> None:
        """A Conv of `x` and a dequantised filter, without padding."""
        image = self.feeds[x]
        w, value = self.dequantized(kind, (channels, image.shape[1], window, window), axis, block)
        windows = np.lib.stride_tricks.sliding_window_view(image, (window, window), (2, 3))
        self.emit("Conv", [x, w], np.einsum("nchwij,ocij->nohw", windows, value))

    def bits(self, x: str, columns: int, bits: int, block: int, zeros: bool) -> None:
        """A MatMulNBits of `x`."""
        depth, count = self.feeds[x].shape[1], 8 // bits
        blocks = -(-depth // block)
        codes = self.rng.integers(0, 1 << bits, (columns, blocks * block)).astype(np.uint8)
        points = self.rng.integers(0, 1 << bits, (columns, blocks)).astype(np.uint8) if zeros else \
            np.full((columns, blocks), 1 << (bits - 1), np.uint8)
        scale = self.rng.uniform(0.05, 0.15, (columns, blocks)).astype(np.float32)

        def packed(v: Array) -> Array:
            v = np.pad(v, ((0, 0), (0, -v.shape[1] % count)))
            return np.bitwise_or.reduce([v[:, i::count] << bits * i for i in range(count)])

        names = [self.weight(packed(codes).reshape(columns, blocks, -1)), self.weight(scale)]
        names += [self.weight(packed(points))] if zeros else []
        wide = (codes.astype(np.float32) - np.repeat(points, block, 1)) * np.repeat(scale, block, 1)
        self.emit("MatMulNBits", [x, *names], self.feeds[x] @ wide[:, :depth].T, domain="com.microsoft", K=depth,
                  N=columns, bits=bits, block_size=block)

    def rows(self, kind: str, count: int, columns: int, block: int) -> None:
        """A Gather of rows of a dequantised table."""
        table, value = self.dequantized(kind, (count, columns), 1, block)
        at = self.rng.integers(0, count, 6).astype(np.int64)
        name = f"x{len(self.feeds)}"
        self.feeds[name], self.symbols[name] = at, [6]
        self.emit("Gather", [table, name], value[at])

    def model(self) -> ModelProto:
        kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
        inputs = [helper.make_tensor_value_info(n, kinds[a.dtype], self.symbols[n]) for n, a in self.feeds.items()]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in self.want]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, initializer=self.weights)
        sets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=11)

    def stored(self) -> int:
        """Bytes of the model's weights."""
        return sum(len(w.raw_data) for w in self.weights)
