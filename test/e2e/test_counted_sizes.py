"""Sizes that the graph computes from data, up to a limit that an option gives, against onnxruntime."""

from __future__ import annotations

import pytest
from small_graphs import check_runs, compiled, ints, model_of, node, numbers, scalar

from xcc.diagnostics import UserError


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_a_size_that_data_tell(chip: str) -> None:
    """The longest of any number of lengths is counted, up to the limit that is given."""
    nodes = [node("ReduceMax", "lengths", "longest", keepdims=0), node("Range", "zero longest one", "r"),
             node("Unsqueeze", "lengths last", "l"), node("Less", "r l", "m"), node("Cast", "m", "y", to=1),
             node("Unsqueeze", "longest zeros", "e"), node("Slice", "x zeros e last", "z")]
    constants = {"zero": scalar(0), "one": scalar(1), "last": ints(1), "zeros": ints(0)}
    runs = [{"lengths": ints(*lengths), "x": numbers(2, 9)} for lengths in ((3, 5), (9, 1, 2), (0,), (3, 5))]
    made = check_runs(nodes, runs, "y z", constants, chip, {"longest": (0, 9)}, dims={"lengths": ["n"]})
    for wrong in (10, -1):
        with pytest.raises(UserError, match="'longest' is not in 0..9"):
            made.run({"lengths": ints(wrong), "x": numbers(2, 9)})


def test_a_shape_that_data_tell() -> None:
    """Each element of a computed shape is counted; two nodes use it."""
    nodes = [node("ArgMax", "rows", "at", axis=1, keepdims=0), node("ConstantOfShape", "at", "z"),
             node("Expand", "x at", "w"), node("Add", "z w", "y")]
    check_runs(nodes, [{"rows": numbers(2, 6), "x": numbers(1)} for _ in range(4)], "y",
               limits={"at_0": (0, 5), "at_1": (0, 8)})


def test_a_size_without_a_limit() -> None:
    source = model_of([node("ReduceMax", "lengths", "longest", keepdims=1), node("Expand", "x longest", "y")],
                      {"lengths": ints(3, 5), "x": numbers(1)}, "y", dims={"lengths": ["n"]})
    with pytest.raises(UserError, match=r"that it may be \(--dim longest_0=0..100\), or fix the value of 'lengths'"):
        compiled(source)
