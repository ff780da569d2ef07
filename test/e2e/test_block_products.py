"""MatMulNBits of accuracy_level 4: rows are rounded to bytes by block, and dot products sum up each block."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import xcc

CASES = ((4, 32, False, 128, 96), (4, 16, True, 72, 50), (8, 64, True, 100, 40), (8, 32, False, 64, 33),
         (2, 128, True, 256, 17), (4, 256, False, 300, 8))      # bits, block, zero points, K, N
CHIP = "x86-64-v3"      # has products of bytes


def drawn(bits: int, size: int, zeros: bool, depth: int, columns: int, level: int) -> tuple[Any, dict[str, Any]]:
    """A model of one MatMulNBits of any number of rows, and its constants."""
    rng, blocks = np.random.default_rng(bits * size + depth), -(-depth // size)
    constants = {"w": rng.integers(0, 256, (columns, blocks, size * bits // 8), np.uint8),
                 "scales": rng.uniform(0.01, 0.02, (columns, blocks)).astype(np.float32)}
    if zeros:
        constants["zeros"] = rng.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8)
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=depth, N=columns,
                            bits=bits, block_size=size, accuracy_level=level)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in
            (("x", ["b", "rows", depth]), ("y", ["b", "rows", columns]))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:],
                              [onnx.numpy_helper.from_array(v, n) for n, v in constants.items()])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), constants


def unpacked(x: Any, bits: int, columns: int) -> Any:
    parts = [x >> (bits * i) & (1 << bits) - 1 for i in range(8 // bits)]
    return np.stack(parts, -1).reshape(columns, -1).astype(np.int64)


def product(x: Any, constants: dict[str, Any], bits: int, size: int, columns: int, rounded: bool) -> Any:
    """x * dequantised(w)', x rounded to a 127th of the largest number of its block where that is wanted."""
    blocks = constants["scales"].shape[1]
    whole = np.pad(x, ((0, 0),) * 2 + ((0, blocks * size - x.shape[-1]),)).reshape(*x.shape[:2], blocks, size)
    most = np.abs(whole).max(-1, keepdims=True)
    if rounded:
        whole = np.rint(whole * (np.float32(127) / np.where(most == 0, 1, most)))
    zeros = unpacked(constants["zeros"], bits, columns)[:, :blocks] if "zeros" in constants else 1 << (bits - 1)
    zeros = np.broadcast_to(zeros, (columns, blocks))[..., None]
    w = unpacked(constants["w"], bits, columns).reshape(columns, blocks, size) - zeros
    sums = np.einsum("xmbs,nbs->xmbn", whole.astype(np.float64), w)
    steps = most / 127 if rounded else np.ones_like(most)
    return (sums * steps * constants["scales"].T).sum(2)


def rows(count: int, depth: int) -> Any:
    x = np.random.default_rng(count).standard_normal((2, count, depth)).astype(np.float32)
    x[0, 0, :depth // 2] = 0        # blocks of zeros
    return x


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rounded_rows(case: tuple[int, int, bool, int, int]) -> None:
    bits, size, _, depth, columns = case
    model, constants = drawn(*case, level=4)
    compiled = xcc.compile(model, chip=CHIP, threads=1)
    for count in (1, 9):
        x = rows(count, depth)
        want = product(x, constants, bits, size, columns, rounded=True)
        got = compiled.run({"x": x})["y"]
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("level", [0, 4])
def test_beside_onnxruntime(level: int) -> None:
    """At level 4 each rounds as it likes: a number of a block at most by half a 127th of its largest."""
    case = CASES[0]
    bits, size, _, depth, columns = case
    model, constants = drawn(*case, level=level)
    x = rows(3, depth)
    exact = product(x, constants, bits, size, columns, rounded=False)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got in (xcc.compile(model).run({"x": x})["y"], session.run(None, {"x": x})[0]):
        np.testing.assert_allclose(got, exact, rtol=0, atol=(1e-2 if level else 2e-6) * np.abs(exact).max())


def test_dot_products_make_the_sums() -> None:
    model, _ = drawn(*CASES[0], level=4)
    code = "".join(bytes(v).decode() for n, v in xcc.compile(
        model, chip="sapphirerapids", keep_ir=True).artifact.members.items() if n.startswith("ir/"))
    assert "vpdpbusd" in code
