"""Conversions of ONNX against its own, on the numbers at the edges of a type."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from xcc import onnx_backend

EDGES = np.array([0.0, 1e-45, 2.0**-127, 2.0**-126, 0.3, 0.75, 1.0, 1.5, 3.0, 6.1, 2.0**126, 2.0**127, 2.5e38, 3.4e38,
                  np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("engine", ["interpret", "compile"])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two(saturate: int, mode: str, engine: str) -> None:
    """float8e8m0 has no infinity: it becomes NaN, saturated or not."""
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode)
    graph = helper.make_graph([cast], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [len(EDGES)])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT8E8M0, [len(EDGES)])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    options = {} if engine == "interpret" else {"cache": False, "isolate": False}
    got, = onnx_backend.prepare(model, engine=engine, **options).run([EDGES])
    want = numpy_helper.to_float8e8m0(EDGES, saturate=bool(saturate), round_mode=mode)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
