"""``model.run(..., out=...)``: outputs in arrays that the caller has; streams are for GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import xcc
from xcc.runtime.given_outputs import stream_of


def graph(*nodes: Any, outputs: Any) -> Any:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    return helper.make_model(helper.make_graph(list(nodes), "g", [x], outputs),
                             opset_imports=[helper.make_opsetid("", 18)])


@pytest.fixture(scope="module")
def model() -> Any:
    """y = x + x, and z, the shape of x."""
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4]),
               helper.make_tensor_value_info("z", TensorProto.INT64, [2])]
    return xcc.compile(graph(helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Shape", ["x"], ["z"]),
                             outputs=outputs))


@pytest.fixture(scope="module")
def chosen() -> Any:
    """The places of what is not 0: how many there are is only known at the end."""
    return xcc.compile(graph(helper.make_node("NonZero", ["x"], ["y"]),
                             outputs=[helper.make_tensor_value_info("y", TensorProto.INT64, [2, "m"])]))


@pytest.mark.parametrize("n", [3, 0, 500])
def test_outputs_are_written_to_the_callers_arrays(model: Any, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
    y, z = np.full((n, 4), np.nan, np.float32), np.zeros(2, np.int64)
    got = model.run({"x": x}, out={"y": y, "z": z})
    assert got["y"] is y and got["z"] is z
    np.testing.assert_array_equal(y, x + x)
    np.testing.assert_array_equal(z, x.shape)
    np.testing.assert_array_equal(model.run({"x": x}, out={"z": z})["y"], x + x)      # the other is new memory


def test_one_of_a_size_that_the_run_tells(chosen: Any) -> None:
    x = np.eye(4, dtype=np.float32)
    y = np.zeros((2, 4), np.int64)
    assert chosen.run({"x": x}, out={"y": y})["y"] is y
    np.testing.assert_array_equal(y, np.nonzero(x))
    with pytest.raises(xcc.UserError, match=r"'y' is \[2, 4\] in this run, the array for it \[2, 5\]"):
        chosen.run({"x": x}, out={"y": np.zeros((2, 5), np.int64)})


X = np.zeros((3, 4), np.float32)
READ_ONLY = np.zeros((3, 4), np.float32)
READ_ONLY.setflags(write=False)


@pytest.mark.parametrize(("out", "message"), [
    ({"w": X}, "no output 'w'; it has y, z"), ({"y": np.zeros((3, 4))}, r"out: 'y': element type is f64"),
    ({"y": np.zeros(12, np.float32)}, r"out: 'y': shape is"), ({"y": np.zeros((4, 3), np.float32).T}, "not contiguous"),
    ({"y": np.zeros((5, 4), np.float32)}, r"'y' is \[3, 4\] in this run"), ({"y": READ_ONLY}, "read-only"),
    ({"y": [0.0]}, "a list: give an array"), ({"y": X}, "'y' shares memory with input 'x'")])
def test_what_no_output_can_be_written_to_is_refused(model: Any, out: Any, message: str) -> None:
    with pytest.raises(xcc.UserError, match=message):
        model.run({"x": X}, out=out)


def test_streams_are_for_gpus(model: Any) -> None:
    with pytest.raises(xcc.UserError, match="stream is for models on GPUs, this one is for 'cpu'"):
        model.run({"x": X}, stream=3)
    with pytest.raises(xcc.UserError, match="borrow is for models on GPUs"):
        model.run({"x": X}, borrow=True)
    with pytest.raises(xcc.UserError, match="stream is a str"):
        model.run({"x": X}, stream="default")


@pytest.mark.parametrize("stream", [9, SimpleNamespace(cuda_stream=9), SimpleNamespace(ptr=9),
                                    SimpleNamespace(__cuda_stream__=lambda: (0, 9))])
def test_streams_of_other_libraries(stream: Any) -> None:
    assert stream_of(stream) == 9
