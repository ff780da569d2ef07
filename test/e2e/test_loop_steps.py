"""Loops of no steps, and loops whose carried values change from step to step, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper
from small_graphs import check, compiled, node, numbers, with_outputs

import xcc
from xcc.diagnostics import UserError


def loop(shape: list[Any], after: list[Any], *nodes: Any, row: Sequence[Any] = (), number: Sequence[int] = (),
         condition: Sequence[int] = ()) -> Any:
    """A Loop of `most` steps over x; `nodes` make `next` and `row`, of this shape, of the carried `old`.

    `number` and `condition` are the shapes that the body declares for `i` and `on`, true unless nodes make `goes`.
    """
    def value(name: str, kind: int, shape: list[Any]) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    ends = any("goes" in n.output for n in nodes)
    body = helper.make_graph(
        [*([] if ends else [node("Identity", "on", "goes")]), *nodes], "body",
        [value("i", 7, list(number)), value("on", 9, list(condition)), value("old", 1, shape)],
        [value("goes", 9, list(condition)), value("next", 1, after), value("row", 1, list(row))])
    return helper.make_node("Loop", ["most", "", "x"], ["y", "rows"], body=body)


ADD = node("Add", "old old", "next"), node("ReduceSum", "next", "row", keepdims=0)
GROW = node("Concat", "old one", "next", axis=0), node("ReduceSum", "next", "row", keepdims=0)
ONE = {"one": np.ones(1, np.float32)}


@pytest.mark.parametrize("steps", [-1, 0, 2])
def test_a_count_below_zero_is_no_step(steps: int) -> None:
    check([loop([3], [3], *ADD)], {"x": numbers(3)}, "y rows", {"most": np.array(steps)})


@pytest.mark.parametrize("condition", [[], [1]])
@pytest.mark.parametrize("kind", ["counted", "while", "unrolled"])
def test_a_step_has_the_number_that_its_body_declares(kind: str, condition: list[int]) -> None:
    """A vector of one, where a TorchScript export has `torch.tensor_split`; it starts a Slice there."""
    nodes = [node("Squeeze", "i first", "at"), node("Gather", "x at", "row"), node("Shape", "on", "s"),
             node("Size", "s", "rank"), node("Cast", "rank", "term", to=1), node("Add", "old term", "sum")]
    if kind == "while":
        nodes += [node("ReduceSum", "sum", "total", keepdims=len(condition)), node("Less", "total limit", "goes")]
    ending = node("Concat", "sum one", "next", axis=0) if kind == "unrolled" else node("Identity", "sum", "next")
    constants = {"most": np.array(3), "first": np.array([0]), "limit": np.array(9, np.float32), **ONE}
    check([loop(["a"], ["b"], *nodes, ending, number=[1], condition=condition)], {"x": numbers(3)}, "y rows", constants)


@pytest.mark.parametrize("again", ["mixed", "old"])
def test_a_state_that_is_a_row_too(again: str) -> None:
    """Written to both places, over the state before where nothing reads that any more."""
    nodes = (node("MatMul", "old w", "mixed"), node("Add", f"mixed {again}", "sum"), node("Tanh", "sum", "next"),
             node("Identity", "next", "row"))
    check([loop([3, 8], [3, 8], *nodes, row=[3, 8])], {"x": numbers(3, 8)}, "y rows",
          {"most": np.array(4), "w": numbers(8, 8)})


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_count_of_sizes_that_is_below_zero(size: int) -> None:
    check([node("Shape", "q", "all", end=1), node("Sub", "all three", "left"), node("Squeeze", "left", "most"),
           loop([3], [3], *ADD)], {"x": numbers(3), "q": numbers(size, 2)}, "y rows", {"three": np.array([3])},
          dims={"q": ["n", 2]})


@pytest.mark.parametrize("shape", [[3], ["n"]])
def test_a_carried_value_grows(shape: list[Any]) -> None:
    check([loop(["a"], ["b"], *GROW)], {"x": numbers(3)}, "y rows", {"most": np.array(4), **ONE}, dims={"x": shape})


def test_a_carried_value_grows_as_often_as_the_data_say() -> None:
    with pytest.raises(UserError, match=r"steps must be known, since a step makes a carried f32\[3\] a f32\[4\]"):
        check([loop(["a"], ["b"], *GROW)], {"x": numbers(3), "most": np.array(4)}, "y rows", ONE)
    with pytest.raises(UserError, match="may have 256 steps at most, since a step makes a carried"):
        check([loop(["a"], ["b"], *GROW)], {"x": numbers(3)}, "y rows", {"most": np.array(300), **ONE})


def test_a_step_of_a_scan_keeps_types() -> None:
    """onnxruntime refuses such models, too."""
    body = helper.make_graph([node("Concat", "old e", "next", axis=0), node("Neg", "e", "row")], "body",
                             [helper.make_tensor_value_info(n, 1, [s]) for n, s in (("old", "a"), ("e", 3))],
                             [helper.make_tensor_value_info(n, 1, [s]) for n, s in (("next", "b"), ("row", 3))])
    graph = helper.make_graph(
        [node("Scan", "x xs", "y rows", body=body, num_scan_inputs=1)], "g",
        [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [3]), ("xs", [4, 3]))],
        [helper.make_tensor_value_info(n, 1, None) for n in ("y", "rows")])
    with pytest.raises(UserError, match=r"\(Scan\): a step makes a carried f32\[3\] a f32\[6\]"):
        xcc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), cache=False, isolate=False)


@pytest.mark.parametrize("known", [True, False])
def test_rows_of_sizes_that_steps_count(known: bool) -> None:
    """They are stacked where a run finds them alike, step by step."""
    common = [node("Add", "old one", "next"), node("Cast", "i", "at", to=1)]
    feeds, constants = {"x": np.arange(5, dtype=np.float32)}, {"limit": np.float32(2.5), **ONE}
    (constants if known else feeds)["most"] = np.array(3)
    alike = [*common, node("Less", "x limit", "mask"), node("Compress", "next mask", "row", axis=0)]
    check([loop([5], [5], *alike, row=[None])], feeds, "y rows", constants)
    growing = loop([5], [5], *common, node("LessOrEqual", "x at", "mask"),
                   node("Compress", "next mask", "row", axis=0), row=[None])
    results = [helper.make_tensor_value_info(n, 1, s) for n, s in (("y", [5]), ("rows", [None, None]))]
    model = compiled(with_outputs([growing], feeds, results, constants))
    with pytest.raises(UserError, match=r"\(Loop\): the steps stack values whose sizes differ"):
        model.run(feeds)
