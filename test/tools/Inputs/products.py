"""Writes an ONNX model with a f32 product and a product of bytes to the path that it is given."""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

RNG = np.random.default_rng(0)
GRAPH = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("MatMulInteger", ["a", "b"], ["z"])], "products",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, (32, 64)),
     helper.make_tensor_value_info("a", TensorProto.UINT8, (32, 64))],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, (32, 96)),
     helper.make_tensor_value_info("z", TensorProto.INT32, (32, 96))],
    [numpy_helper.from_array(RNG.standard_normal((64, 96), np.float32), "w"),
     numpy_helper.from_array(RNG.integers(-128, 128, (64, 96)).astype(np.int8), "b")])
save(helper.make_model(GRAPH, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), sys.argv[1])
