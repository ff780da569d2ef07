"""Results do not depend on the number of threads, nor on which thread takes what: the same bits from 1, 2, 3 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import MODELS
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc.runtime.model import Model

Array = np.ndarray[Any, Any]
COUNTS = (1, 2, 3, 5)
RUNS = 3


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape, np.float32)


def graph(feeds: dict[str, Array], weights: dict[str, Array], *nodes: Any) -> Any:
    """A model of `nodes`, the last of which has the output y."""
    inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in feeds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)]
    made = helper.make_graph(list(nodes), "g", inputs, outputs,
                             [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def bits(model: Model, feeds: dict[str, Any]) -> list[bytes]:
    return [np.ascontiguousarray(v).tobytes() for v in model.run(feeds).values()]


def check(source: Any, feeds: dict[str, Any], **options: Any) -> None:
    artifact = xcc.compile(source, **options).artifact
    wanted = bits(Model(artifact, threads=1), feeds)
    for count in COUNTS:
        model = Model(artifact, threads=count)
        assert model.threads == count, "no kernel of it has work for several threads"
        for _ in range(RUNS):
            assert bits(model, feeds) == wanted, f"{count} threads"


@pytest.mark.parametrize("name", ["llama_tiny", "ppocr_cls", "ppocr_rec", "resnet_tiny"])
def test_whole_models(name: str) -> None:
    spec = MODELS[name]
    try:
        source = spec.get()
    except (FileNotFoundError, ImportError) as e:
        pytest.skip(str(e))
    check(source, spec.feeds(len(spec.cases) - 1))


@pytest.mark.parametrize("precision", ["", "bf16"])
def test_products_and_attention(precision: str) -> None:
    feeds = {"q": normal(1, 2, 3, 64), "k": normal(1, 2, 64, 8000), "v": normal(1, 2, 8000, 64)}
    check(graph(feeds, {"w": normal(64, 301)}, helper.make_node("MatMul", ["q", "k"], ["s"]),
                helper.make_node("Softmax", ["s"], ["p"]), helper.make_node("MatMul", ["p", "v"], ["o"]),
                helper.make_node("MatMul", ["o", "w"], ["y"])), feeds, precision=precision)


@pytest.mark.parametrize("shape", [(1, 3001, 2003), (301, 700, 703)], ids=["one row", "many rows"])
def test_weights(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    feeds = {"x": normal(m, k)}
    check(graph(feeds, {"w": normal(k, n)}, helper.make_node("MatMul", ["x", "w"], ["y"])), feeds)


@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization", "ReduceMean", "Softmax", "CumSum"])
def test_rows_and_columns(op: str) -> None:
    feeds = {"x": normal(2, 64, 1500)}
    weights: dict[str, Array] = {"w": normal(1500)}
    node = helper.make_node(op, ["x", "w", "w"], ["y"])
    if op == "InstanceNormalization":
        weights = {"w": normal(64)}
    elif op == "Softmax":
        node, weights = helper.make_node(op, ["x"], ["y"], axis=1), {}
    elif op != "LayerNormalization":
        weights = {"a": np.array([1] if op == "ReduceMean" else 2)}
        node = helper.make_node(op, ["x", "a"], ["y"])
    check(graph(feeds, weights, node), feeds)


def test_recurrent_cells() -> None:
    feeds = {"x": normal(20, 8, 48)}
    weights = {"w": normal(2, 256, 48) / 8, "r": normal(2, 256, 64) / 8}
    check(graph(feeds, weights, helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=64,
                                                 direction="bidirectional")), feeds)
