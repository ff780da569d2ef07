"""Quantised models compiled for this CPU, and for GPUs, whose code the interpreter runs, against onnxruntime: within
one step of the output's quantisation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import quantised
from onnx import helper, numpy_helper

import xcc
from xcc.interpreter.executor import make_executor as interpreting
from xcc.runtime.cuda_api import find_gpu

onnxruntime = pytest.importorskip("onnxruntime")

STATIC = {
    "u8 by channel": {}, "u8 by tensor": {"per_channel": False}, "s8 by channel": {"activations": "QInt8"},
    "u8 weights": {"weights": "QUInt8", "per_channel": False}, "qoperator": {"form": "QOperator"},
    "qoperator s8": {"form": "QOperator", "activations": "QInt8", "per_channel": False}}
MODELS = {"convolutional": quantised.convolutional, "dense": quantised.dense}


def step_of(model):
    """The largest scale in the model that can be the output's: that of the last quantisation."""
    scales = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    last = next(n for n in reversed(model.graph.node) if n.op_type in ("DequantizeLinear", "QuantizeLinear"))
    return float(np.max(scales[last.input[1]]))


def both(model, seed, **options):
    feeds = quantised.inputs_of(model, seed)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    compiled = xcc.compile(model, target="cpu", **options)
    return compiled, next(iter(compiled.run(feeds).values())), session.run(None, feeds)[0]


@pytest.mark.parametrize("variant", STATIC)
@pytest.mark.parametrize("name", MODELS)
def test_static(name, variant):
    model = quantised.static(MODELS[name](), **STATIC[variant])
    _, got, want = both(model, 7)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=1.01 * step_of(model))
    assert np.mean(np.abs(got - want) < 1e-5) >= 0.7


@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
def test_dynamic(weights):
    """Scales and zero points from the numbers themselves: the same sums of integers, so nearly the same results."""
    model = quantised.dynamic(quantised.dense(), weights=weights)
    assert any(n.op_type == "MatMulInteger" for n in model.graph.node)
    _, got, want = both(model, 3)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-2 * np.abs(want).max())
    assert np.mean(np.abs(got - want) < 1e-5) >= 0.7


@pytest.mark.parametrize("rows, depth", [(17, 20), (3, 20), (17, 21)])
def test_products_of_activations(rows, depth):
    """Queries times keys, in bytes with zero points: by dot product instructions where there are enough rows, of sums
    that are filled up to whole groups, else in floats."""
    nodes = []
    for name, point in (("a", "za"), ("b", "zb")):
        nodes += [helper.make_node("QuantizeLinear", [name, "s", point], [name + "q"]),
                  helper.make_node("DequantizeLinear", [name + "q", "s", point], [name + "d"])]
    nodes += [helper.make_node("Transpose", ["bd"], ["t"], perm=[0, 2, 1]),
              helper.make_node("MatMul", ["ad", "t"], ["y"])]
    shapes = {"a": (2, rows, depth), "b": (2, 13, depth)}
    constants = {"s": np.float32(0.03), "za": np.uint8(100), "zb": np.uint8(137)}
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, 1, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info("y", 1, (2, rows, 13))],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]),
        opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    feeds = {n: np.random.default_rng(0).standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(xcc.compile(model, target="cpu").run(feeds)["y"], session.run(None, feeds)[0], rtol=1e-5,
                               atol=1e-5)


ON_GPUS = [("sm_80", "convolutional", {}), ("sm_90a", "convolutional", {"weights": "QUInt8", "per_channel": False}),
           ("gfx942", "convolutional", {"form": "QOperator"}), ("gfx1100", "dense", {"activations": "QInt8"}),
           ("sm_90a", "dense", None)]
"""A chip, a model, and how it is quantised: None for dynamically."""


def quantised_model(name, options):
    return quantised.dynamic(MODELS[name](), weights="QUInt8") if options is None \
        else quantised.static(MODELS[name](), **options)


@pytest.mark.parametrize("chip, name, options", ON_GPUS, ids=lambda v: v if isinstance(v, str) else "")
def test_on_chips(tmp_path, chip, name, options):
    """Right, and no product of floats is left."""
    model = quantised_model(name, options)
    target = "nvptx,code=ptx" if chip.startswith("sm_") else "amdgcn"
    compiled = xcc.compile(model, target=target, chip=chip, cache=False, keep_ir=True, dump_stages=str(tmp_path))
    a = compiled.artifact
    compiled._executor = interpreting(a.program, a.members, a.weights, a.manifest)
    compare_with_onnxruntime(compiled, model)
    text = next(tmp_path.glob("*kernels.mlir")).read_text()
    products = [line for line in text.split("\n") if '"xt.convolution"' in line or '"xt.dot_general"' in line]
    assert products and all("xi32>" in line.split("->")[1] for line in products)


@pytest.mark.gpu
@pytest.mark.skipif(find_gpu() is None, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name, options", [*product(MODELS, STATIC.values()), ("dense", None)])
def test_on_gpu(name, options):
    model = quantised_model(name, options)
    compare_with_onnxruntime(xcc.compile(model, target="nvptx"), model)


def compare_with_onnxruntime(compiled, model):
    feeds = quantised.inputs_of(model, 7)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got, want = np.asarray(next(iter(compiled.run(feeds).values()))), session.run(None, feeds)[0]
    step = 2e-2 * np.abs(want).max() if "DynamicQuantizeLinear" in {n.op_type for n in model.graph.node} \
        else 1.01 * step_of(model)
    np.testing.assert_allclose(got, want, rtol=0, atol=step)
    assert np.mean(np.abs(got - want) < 1e-5) >= 0.7


def test_chain_keeps_bytes(tmp_path):
    """Every contraction sums bytes to i32; what its kernel stores are bytes."""
    model = quantised.static(quantised.convolutional())
    xcc.compile(model, target="cpu", dump_stages=str(tmp_path))
    text = next(tmp_path.glob("*kernels.mlir")).read_text()
    contractions = ('"xt.convolution"', '"xt.dot_general"', '"xt.packed_matmul"')
    functions = [f for f in text.split("func.func private")[1:] if any(c in f for c in contractions)]
    assert len(functions) == 5
    for f in functions:
        assert all("xi32>" in line.split("->")[1] for line in f.split("\n") if any(c in line for c in contractions))
        assert "i8>" in f.split("->")[1].split("attributes")[0] or "1x10xf32" in f
