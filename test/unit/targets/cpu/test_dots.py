"""Products of a few rows with columns along the sum: lanes along the sum, whatever is left over of each dim."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import xcc

SIZES = [(2, 300, 64), (5, 257, 33), (7, 1024, 3), (24, 259, 70), (13, 300, 1)]


def model(left: list[int | str], right: list[int | str], kind: int = TensorProto.FLOAT) -> object:
    axes = [*range(len(right) - 2), len(right) - 1, len(right) - 2]
    nodes = [helper.make_node("Transpose", ["b"], ["t"], perm=axes), helper.make_node("MatMul", ["a", "t"], ["p"]),
             helper.make_node("Relu", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("a", kind, left),
                                           helper.make_tensor_value_info("b", kind, right)],
                              [helper.make_tensor_value_info("y", kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def check(compiled: xcc.Model, *batch: int, rows: int, steps: int, columns: int, kind: type = np.float32) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (*batch, rows, steps)).astype(kind)       # whose sums are exact
    b = rng.integers(-4, 5, (*batch, columns, steps)).astype(kind)
    np.testing.assert_array_equal(compiled.run({"a": a, "b": b})["y"], np.maximum(a @ b.swapaxes(-1, -2), 0))


@pytest.mark.parametrize("chip", ["native", "x86-64-v3"])
@pytest.mark.parametrize("rows, steps, columns", SIZES)
def test_known(rows: int, steps: int, columns: int, chip: str) -> None:
    check(xcc.compile(model([rows, steps], [columns, steps]), threads=1, chip=chip), rows=rows, steps=steps,
          columns=columns)


@pytest.mark.parametrize("chip", ["native", "x86-64-v3"])
@pytest.mark.parametrize("rows, steps, columns", [(5, 257, 33), (300, 67, 1)])
def test_halves(rows: int, steps: int, columns: int, chip: str) -> None:
    """Columns of f16, and a vector of it, which is widened."""
    check(xcc.compile(model([rows, steps], [columns, steps], TensorProto.FLOAT16), threads=1, chip=chip), rows=rows,
          steps=steps, columns=columns, kind=np.float16)


def test_batch() -> None:
    check(xcc.compile(model([3, 4, 300], [3, 37, 300]), threads=2), 3, rows=4, steps=300, columns=37)


def test_free() -> None:
    """Sizes that the run gives, 1 and short sums among them."""
    compiled = xcc.compile(model(["m", "k"], ["n", "k"]), threads=1)
    for rows, steps, columns in (*SIZES, (1, 5, 7), (67, 300, 9)):
        check(compiled, rows=rows, steps=steps, columns=columns)
