"""Whole models compiled for AMD chips: host program, arena and kernels in the interpreter, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc.interpreter.executor import make_executor
from xcc.targets.amdgcn.code_object import code_object_chip, read_code_object


def classifier() -> onnx.ModelProto:
    """A convolution, pooling, a linear layer with softmax over a free batch."""
    rng = np.random.default_rng(1)

    def weight(name: str, *shape: int):
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.2, name)

    nodes = [helper.make_node("Conv", ["x", "w0", "b0"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("Gemm", ["f", "w1", "b1"], ["g"]),
             helper.make_node("Softmax", ["g"], ["y"], axis=-1)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])
    weights = [weight("w0", 16, 3, 3, 3), weight("b0", 16), weight("w1", 256, 10), weight("b1", 10)]
    graph = helper.make_graph(nodes, "classifier", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_classifier(chip, tmp_path):
    path = tmp_path / "classifier.onnx"
    onnx.save(classifier(), path)
    model = xcc.compile(str(path), target="amdgcn", chip=chip, keep_ir=True)
    a = model.artifact
    blobs = [bytes(data) for name, data in a.members.items() if name.endswith(".hsaco")]
    assert blobs and {code_object_chip(b) for b in blobs} == {chip}
    assert not any(k.scratch_bytes for b in blobs for k in read_code_object(b).values())
    model._executor = make_executor(a.program, a.members, a.weights, a.manifest)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for batch in (1, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 8, 8)).astype(np.float32)
        y = model.run({"x": x})["y"]
        np.testing.assert_allclose(y, session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-6)
