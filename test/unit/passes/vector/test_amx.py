"""Products on AMX's tile registers: numbers, with the instructions emulated by amx_emulator.c, and their encoding."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from c_compiler import compile_c
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc import tile
from xcc.compiler import compile_model
from xcc.frontends.kernel.ahead import declared_program
from xcc.options import CompileOptions
from xcc.runtime import versions
from xcc.runtime.model import Model
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen, link, target

HOST = cpu_chip.host()
INSTRUCTIONS = re.compile(r"@llvm\.x86\.(tile\w+|tdp\w+|ldtilecfg)")
RNG = np.random.default_rng(0)

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang compiles the emulator"),
    pytest.mark.skipif(not {"vnni", "bf16"} <= set(HOST.matrix) or HOST.vector_bytes != 64,
                       reason="the code beside AMX's instructions is for AVX-512 with VNNI and BF16")]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("amx") / "emulator.o"
    compile_c(Path(__file__).with_name("amx_emulator.c"), out, "-O2", "-c", "-fno-sanitize=all")
    return out.read_bytes()


@pytest.fixture
def emulated(emulator: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Code for sapphirerapids is made for this machine, with calls of the emulator in place of AMX's instructions."""
    optimized, linked = codegen.optimized, link.link_shared

    def without_tiles(text: str, chip: Any, **options: Any) -> Any:
        return optimized(INSTRUCTIONS.sub(r"@emulated_\1", text).replace(" immarg", ""), HOST, **options)

    monkeypatch.setattr(codegen, "optimized", without_tiles)
    monkeypatch.setattr(codegen, "target_machine", lambda chip, real=codegen.target_machine: real(HOST))
    monkeypatch.setattr(link, "link_shared", lambda objects: linked([*objects, emulator]))
    monkeypatch.setattr(versions, "lacking", lambda facts: "")
    yield


def compiled(nodes: list[Any], x: np.ndarray, weights: dict[str, np.ndarray], shape: Any, out: int = TensorProto.FLOAT,
             others: dict[str, Any] | None = None, **options: Any) -> Model:
    """others: the shapes of inputs beside x."""
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(k, element, v) for k, v in ({"x": shape} | (others or {})).items()],
        [helper.make_tensor_value_info("y", out, None)], [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    made = compile_model(model, CompileOptions(chip="sapphirerapids", isolate=False, cache=False, threads=2, **options))
    assert made.artifact is not None
    return Model(made.artifact)


def run(model: Model, x: np.ndarray, **others: np.ndarray) -> np.ndarray:
    model.executor._library.emulated_count()
    y: np.ndarray = model.run({"x": x, **others})["y"]
    assert model.executor._library.emulated_count() > 0
    return y


def rounded(a: np.ndarray) -> np.ndarray:
    return a.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.parametrize("rows, depth, columns", [
    (128, 96, 64), (49, 64, 96), (17, 32, 40), (5, 64, 1000), (33, 128, 16), (784, 32, 48), (40, 48, 64),
    (35, 34, 64), (21, 10, 32)])
def test_products_of_bf16(emulated: None, rows: int, depth: int, columns: int) -> None:
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in ((rows, depth), (depth, columns)))
    b = RNG.standard_normal(columns).astype(np.float32)
    model = compiled([helper.make_node("Gemm", ["x", "w", "b"], ["t"]), helper.make_node("Relu", ["t"], ["y"])], x,
                     {"w": w, "b": b}, x.shape, precision="bf16")
    wanted = np.maximum(rounded(x).astype(np.float64) @ rounded(w) + b, 0)
    assert np.allclose(run(model, x), wanted, rtol=2e-2, atol=5e-2)


def test_rows_known_at_run_time(emulated: None) -> None:
    w = RNG.standard_normal((64, 96)).astype(np.float32)
    model = compiled([helper.make_node("MatMul", ["x", "w"], ["y"])], w, {"w": w}, ("n", 64), precision="bf16")
    for n in (32, 43, 101):
        x = RNG.standard_normal((n, 64)).astype(np.float32)
        assert np.allclose(run(model, x), rounded(x) @ rounded(w), rtol=2e-2, atol=5e-2)


def test_columns_and_sums_known_at_run_time(emulated: None) -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["s"]),
             helper.make_node("Tanh", ["s"], ["u"]), helper.make_node("MatMul", ["u", "x"], ["y"])]
    model = compiled(nodes, np.zeros((1, 64), np.float32), {}, ("n", 64), precision="bf16")
    for n in (1, 32, 43, 101):
        x = RNG.standard_normal((n, 64)).astype(np.float32) / 8
        wanted = rounded(np.tanh(rounded(x) @ rounded(x).T)) @ rounded(x)
        got = run(model, x) if n > 31 else model.run({"x": x})["y"]
        assert np.allclose(got, wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("inputs, size, stride, window, outputs", [
    (32, 14, 1, 3, 64), (32, 7, 1, 3, 32), (32, 28, 2, 3, 64), (32, 20, 1, 1, 96), (3, 12, 2, 3, 32),
    (37, 9, 1, 3, 42)])
def test_convolutions_of_bf16(emulated: None, inputs: int, size: int, stride: int, window: int, outputs: int) -> None:
    import onnxruntime

    x = rounded(RNG.standard_normal((1, inputs, size, size)))
    w = rounded(RNG.standard_normal((outputs, inputs, window, window)))
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[window // 2] * 4)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(w, "w")])
    reference = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    wanted, = onnxruntime.InferenceSession(reference.SerializeToString()).run(None, {"x": x})
    model = compiled(nodes, x, {"w": w}, x.shape, precision="bf16")
    assert np.allclose(run(model, x), wanted, rtol=2e-2, atol=2e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("rows, depth, columns", [
    (64, 128, 64), (37, 128, 80), (14, 128, 32), (37, 40, 64), (20, 67, 64), (19, 500, 77)])
def test_products_of_bytes_are_exact(emulated: None, rows: int, depth: int, columns: int) -> None:
    x = RNG.integers(0, 255, (rows, depth)).astype(np.uint8)
    w = RNG.integers(-128, 127, (depth, columns)).astype(np.int8)
    model = compiled([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], x, {"w": w}, x.shape, TensorProto.INT32)
    assert (run(model, x) == x.astype(np.int64) @ w.astype(np.int64)).all()


@pytest.mark.parametrize("rows, columns, depth, sizes", [
    (9, 77, 64, (9, 77, 64)), (9, 77, 99, (9, 77, 99)), (70, 33, 210, (70, 33, 210)), (9, "n", "k", (9, 77, 99)),
    (9, "n", "k", (9, 40, 9)), ("m", 200, 300, (3, 200, 300))])
def test_products_of_rows_of_two_inputs(emulated: None, rows: Any, columns: Any, depth: Any, sizes: Any) -> None:
    """The smaller side goes into panels, long rows of the other are read in two parts."""
    x, w = (RNG.standard_normal((n, sizes[2])).astype(ml_dtypes.bfloat16) for n in sizes[:2])
    nodes = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    model = compiled(nodes, x, {}, (rows, depth), TensorProto.BFLOAT16, {"w": (columns, depth)})
    wanted = x.astype(np.float32) @ w.astype(np.float32).T
    assert np.allclose(run(model, x, w=w).astype(np.float32), wanted, rtol=2e-2, atol=2e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("rows, depth", [(64, 64), (37, 43), (18, 7)])
def test_products_of_computed_operands(emulated: None, rows: int, depth: int) -> None:
    x = RNG.standard_normal((3, rows, depth)).astype(np.float32)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["x", "t"], ["s"]),
             helper.make_node("Tanh", ["s"], ["u"]), helper.make_node("MatMul", ["u", "v"], ["y"])]
    v = RNG.standard_normal((3, rows, 45)).astype(np.float32)
    model = compiled(nodes, x, {"v": v}, x.shape, precision="bf16")
    wanted = rounded(np.tanh(rounded(x) @ rounded(x).transpose(0, 2, 1))) @ rounded(v)
    assert np.allclose(run(model, x), wanted, rtol=2e-2, atol=0.3)


@xcc.kernel
def written_product(a, b, c, M: xcc.constexpr, N: xcc.constexpr, K: xcc.constexpr, SUMS: xcc.constexpr):
    """c = a @ b: whole sums go on in place, floats by way of a product of halves, and one that begins with zeros."""
    row, column = xcc.program_id(0) * M, xcc.program_id(1) * N
    acc = xcc.zeros((M, N), SUMS)
    for k in range(0, a.shape[1], K):
        x, y = a.tile((row, k), (M, K), other=0), b.tile((k, column), (K, N), other=0)
        acc = xcc.dot(x, y, acc) if SUMS == "i32" else 2 * xcc.dot(x, y, acc * 0.5) - xcc.dot(x, y)
    c.store((row, column), acc)


@pytest.mark.parametrize("element, sums, blocks, sizes", [
    ("bf16", "f32", (64, 64, 32), (70, 75, 45)), ("bf16", "f32", (16, 16, 8), (21, 13, 19)),
    ("i8", "i32", (32, 64, 64), (45, 150, 70)), ("ui8", "i32", (4, 32, 128), (9, 130, 33))])
def test_written_products(emulated: None, element: str, sums: str, blocks: Any, sizes: Any) -> None:
    rows, depth, columns = sizes
    low, high = {"bf16": (-8, 8), "i8": (-128, 128), "ui8": (0, 256)}[element]
    kind = {"bf16": ml_dtypes.bfloat16, "i8": np.int8, "ui8": np.uint8}[element]
    a, b = (RNG.integers(low, high, s).astype(kind) for s in ((rows, depth), (depth, columns)))
    types = {"a": f"{element}[m, k]", "b": f"{element}[k, n]", "c": f"{sums}[m, n]"}
    grid = (-(-rows // blocks[0]), -(-columns // blocks[1]))
    kernel = xcc.kernel(types=types, grid=lambda _: grid)(written_product.function)
    program = declared_program(kernel, dict(zip("MNK", blocks, strict=True)) | {"SUMS": sums})
    c = np.zeros((rows, columns), np.int32 if sums == "i32" else np.float32)
    compiled = tile.compile(program, "cpu", "sapphirerapids")
    compiled.launch([a, b, c])
    assert compiled._library.emulated_count() > 0
    assert (c == a.astype(np.int64) @ b.astype(np.int64)).all()


def test_what_the_code_requires() -> None:
    assert {"amx_tile", "amx_int8", "amx_bf16"} <= set(target.required_flags(cpu_chip.CHIPS["sapphirerapids"]))


@pytest.mark.parametrize("allowed", [True, False])
def test_a_system_that_does_not_give_tiles(monkeypatch: pytest.MonkeyPatch, allowed: bool) -> None:
    features = llvm.get_host_cpu_features()
    features.update({"amx-tile": True, "amx-bf16": True, "amx-int8": True})
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(cpu_chip, "allow_tiles", lambda: allowed)
    chip = cpu_chip._chip(cpu_chip._seen.__wrapped__())
    assert ("amx" in chip.matrix) == ("+amx-tile" in chip.features) == allowed
    assert ("amx_tile" in target.required_flags(chip)) == allowed or chip.cpu in cpu_chip.CHIPS
