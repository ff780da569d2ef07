"""Small models quantised by onnxruntime, with fixed seeds: what the tests of quantised models compile."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
IMAGE = (1, 3, 20, 20)


def convolutional(seed: int = 0) -> Any:
    """Strided, padded, depthwise, pointwise and residual layers, a pool, a classifier; odd channels."""
    rng = np.random.default_rng(seed)
    weights: dict[str, Array] = {}

    def conv(x: str, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1, group: int = 1) -> list[Any]:
        depth = inputs // group * kernel * kernel
        weights[f"{name}_w"] = rng.normal(0, depth ** -0.5, (outputs, inputs // group, kernel, kernel))
        weights[f"{name}_b"] = rng.normal(0, 0.2, outputs)
        return [helper.make_node("Conv", [x, f"{name}_w", f"{name}_b"], [name], strides=[stride] * 2, group=group,
                                 pads=[kernel // 2] * 4, kernel_shape=[kernel] * 2)]

    weights["fc_w"], weights["fc_b"] = rng.normal(0, 0.2, (36, 10)), rng.normal(0, 0.2, 10)
    nodes = [
        *conv("x", "c0", 3, 20, 3, 2), helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("MaxPool", ["r0"], ["p"], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4),
        *conv("p", "c1", 20, 36, 1), *conv("c1", "c2", 36, 36, 3, 1, 36), helper.make_node("Relu", ["c2"], ["r2"]),
        *conv("r2", "c3", 36, 36, 3), helper.make_node("Add", ["c3", "c1"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["r3"]), helper.make_node("GlobalAveragePool", ["r3"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]), helper.make_node("Gemm", ["f", "fc_w", "fc_b"], ["y"])]
    return _model(nodes, weights, IMAGE)


def dense(seed: int = 0) -> Any:
    """Two matrix products with an activation between them, 3 rows."""
    rng = np.random.default_rng(seed)
    weights = {"a": rng.normal(0, 0.2, (37, 64)), "b": rng.normal(0, 0.2, (64, 19)), "c": rng.normal(0, 0.2, 64)}
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Add", ["h", "c"], ["i"]),
             helper.make_node("Tanh", ["i"], ["t"]), helper.make_node("MatMul", ["t", "b"], ["y"])]
    return _model(nodes, weights, (3, 37))


def _model(nodes: list[Any], weights: dict[str, Array], shape: tuple[int, ...]) -> Any:
    graph = helper.make_graph(nodes, "model", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


def inputs_of(model: Any, seed: int) -> dict[str, Array]:
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return {model.graph.input[0].name: np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


def static(model: Any, *, activations: str = "QUInt8", weights: str = "QInt8", per_channel: bool = True,
           form: str = "QDQ") -> Any:
    """The model by onnxruntime's static quantiser, calibrated on 4 random inputs."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.feeds = iter([inputs_of(model, s) for s in range(4)])

        def get_next(self) -> Any:
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "model.onnx"), Path(folder, "quantised.onnx")
        onnx.save(model, str(path))
        quantize_static(str(path), str(out), Reader(), quant_format=QuantFormat[form], per_channel=per_channel,
                        activation_type=QuantType[activations], weight_type=QuantType[weights])
        return onnx.load(str(out))


def dynamic(model: Any, *, weights: str = "QInt8", per_channel: bool = False) -> Any:
    """The model by onnxruntime's dynamic quantiser."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "model.onnx"), Path(folder, "quantised.onnx")
        onnx.save(model, str(path))
        quantize_dynamic(str(path), str(out), per_channel=per_channel, weight_type=QuantType[weights])
        return onnx.load(str(out))
