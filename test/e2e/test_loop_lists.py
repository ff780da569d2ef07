"""Loops of unknown length that append to sequences, and loops that count themselves, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_graphs import check_runs, compiled, info, ints, model_of, node, numbers, scalar

from xcc.diagnostics import UserError

CONSTANTS = {"zero": ints(0), "none": scalar(0), "one": scalar(1), "two": scalar(2), "true": np.array(True),
             "most": scalar((1 << 63) - 1)}
SIZE = [node("Shape", "x", "s"), node("Gather", "s none", "n"), node("SequenceEmpty", "", "list")]
RUNS = [{"x": numbers(t, 3)} for t in (4, 7, 1)]
FREE = {"x": ["t", 3]}
FLAG, INTEGER = np.array(True), scalar(0)


def loop(steps: list[Any], inputs: str, outputs: str, carried: list[tuple[str, str, Any]], stacked: str = "") -> Any:
    """A Loop. `carried` are (name in a step, name behind it, array of the type), None for a sequence of floats."""
    def value(name: str, array: Any) -> Any:
        if array is None:
            return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)
        return info(name, array, array.shape)
    body = helper.make_graph(
        steps, "body", [value("i", INTEGER), value("on", FLAG), *(value(b, a) for b, _, a in carried)],
        [value("goes", FLAG), *(value(b, a) for _, b, a in carried),
                         *(info(n, numbers(1), None) for n in stacked.split())])
    return helper.make_node("Loop", [n if n != "-" else "" for n in inputs.split()], outputs.split(), body=body)


ROW = [node("Gather", "x i", "row"), node("Tanh", "row", "y"), node("Unsqueeze", "y zero", "e"),
       node("SequenceInsert", "before e", "after")]
LISTED = loop([*ROW, node("Identity", "on", "goes")], "n - list", "all", [("before", "after", None)])


@pytest.mark.parametrize(("axis", "new"), [(0, 0), (1, 0), (0, 1), (-1, 1)])
def test_a_list_that_grows(axis: int, new: int) -> None:
    nodes = [*SIZE, LISTED, node("ConcatFromSequence", "all", "z", axis=axis, new_axis=new),
             node("SequenceLength", "all", "size")]
    check_runs(nodes, RUNS, "z size", CONSTANTS, dims=FREE)


def test_a_list_beside_other_values() -> None:
    """Carried values and stacked ones keep their places; a list of what is carried."""
    steps = [*ROW, node("Add", "h y", "h2"), node("SequenceInsert", "b h2", "b2"), node("Identity", "on", "goes"),
             node("Mul", "h2 y", "stack")]
    carried = [("before", "after", None), ("h", "h2", numbers(3)), ("b", "b2", None)]
    nodes = [*SIZE, node("ReduceMax", "x zero", "h0", keepdims=0), node("SequenceEmpty", "", "other"),
             loop(steps, "n true list h0 other", "all last sums w", carried, "stack"),
             node("ConcatFromSequence", "all", "z", axis=0),
             node("ConcatFromSequence", "sums", "v", axis=1, new_axis=1)]
    check_runs(nodes, RUNS, "z last v w", CONSTANTS, dims=FREE)


def test_a_list_of_which_more_is_asked() -> None:
    nodes = [*SIZE, LISTED, node("SequenceAt", "all none", "z")]
    with pytest.raises(UserError, match=r"'all' has as many elements as a loop has steps.* it can be concatenated"):
        compiled(model_of(nodes, RUNS[0], "z", CONSTANTS, dims=FREE))


def counting(compare: str, operands: str) -> list[Any]:
    """A loop that steps by two from 0 and appends the row at the counter."""
    steps = [node("Unsqueeze", "at zero", "a"), node("Add", "at one", "b0"), node("Unsqueeze", "b0 zero", "b"),
             node("Slice", "x a b zero", "row"), node("Tanh", "row", "e"), node("SequenceInsert", "before e", "after"),
             node("Add", "at two", "next"), node(compare, operands, "goes")]
    carried = [("at", "next", INTEGER), ("before", "after", None)]
    return [*SIZE, loop(steps, "most true none list", "last all", carried),
            node("ConcatFromSequence", "all", "z", axis=0)]


@pytest.mark.parametrize(("compare", "operands"), [("Less", "next n"), ("Greater", "n next")])
def test_a_loop_that_counts_itself(compare: str, operands: str) -> None:
    """``while at < n: outs.append(f(x[at:at + 1])); at += 2``"""
    runs = [{"x": numbers(t, 3)} for t in (5, 4, 3)]
    check_runs(counting(compare, operands), runs, "z last", CONSTANTS, dims=FREE)


def test_elements_of_several_sizes() -> None:
    """The last step reads behind x where the counter may be n: its slice is empty, so that steps differ."""
    with pytest.raises(UserError, match="a tensor to a sequence whose size only it can tell"):
        compiled(model_of(counting("LessOrEqual", "next n"), {"x": numbers(5, 3)}, "z", CONSTANTS, dims=FREE))
