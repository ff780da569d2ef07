"""Small models for the importer's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: Sequence[NodeProto], inputs: Sequence[Any], outputs: Sequence[Any], opset: int = 20,
          initializers: dict[str, np.ndarray[Any, Any]] | None = None, **kwargs: Any) -> ModelProto:
    tensors = [numpy_helper.from_array(v, k) for k, v in (initializers or {}).items()]
    graph = helper.make_graph(list(nodes), "test", list(inputs), list(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **kwargs)


def i64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)
