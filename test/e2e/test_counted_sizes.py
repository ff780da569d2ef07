"""Sizes that the graph computes from data, up to a limit that an option gives, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import RNG, check_runs, compiled, ints, model_of, node, numbers, scalar

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


def flags(*shape: int, share: float = 0.5) -> Any:
    return RNG.uniform(0, 1, shape) < share


def masked(*shape: int) -> list[dict[str, Any]]:
    """Runs of none, some and all flags set, at two sizes."""
    return [{"x": numbers(*dims, 4), "mask": flags(*dims, share=share)}
            for dims in (shape, tuple(d + 2 for d in shape)) for share in (-1, 0.5, 2)]


ASSIGNED = [node("Transpose", "at", "places", perm=[1, 0]), node("Cast", "flat", "wide", to=7),
            node("ReduceSum", "wide", "set", keepdims=1), node("Unsqueeze", "set zero", "column"),
            node("Squeeze", "column zero", "sizes"), node("Concat", "sizes four", "all", axis=0),
            node("Expand", "v all", "rows"), node("ScatterND", "x places rows", "y")]
CONSTANTS = {"zero": ints(0), "four": ints(4), "flatten": ints(-1), "v": numbers(1)}


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_the_flags_that_are_set(chip: str) -> None:
    """``x[~mask] = v``: the shape of what is written is the count that NonZero gives."""
    nodes = [node("Not", "mask", "m"), node("NonZero", "m", "at"), node("Not", "mask", "again"),
             node("Reshape", "again flatten", "flat"), *ASSIGNED]
    runs = masked(2, 5)
    check_runs(nodes, runs if not chip else runs[:4], "y", CONSTANTS, chip,
               dims={"x": ["b", "n", 4], "mask": ["b", "n"]})


def test_the_flags_of_an_integer_mask() -> None:
    """What is not 0 counts, whatever its value."""
    nodes = [node("NonZero", "mask", "at"), node("Cast", "mask", "flat", to=9), *ASSIGNED]
    runs = [{**run, "mask": run["mask"] * np.int64(3)} for run in masked(3)]
    check_runs(nodes, runs, "y", CONSTANTS, dims={"x": ["n", 4], "mask": ["n"]})


def test_flags_that_are_counted_before_their_places() -> None:
    """The count has a symbol of its own, or is compared with that of the places."""
    nodes = [node("Cast", "mask", "wide", to=6), node("ReduceSum", "wide", "some", keepdims=0),
             node("Cast", "some", "count", to=7), node("Range", "start count step", "r"),
             node("Cast", "r", "f", to=1), node("Unsqueeze", "f one", "rows"), node("Expand", "rows wide4", "v"),
             node("NonZero", "mask", "at"), node("Transpose", "at", "places", perm=[1, 0]),
             node("ScatterND", "x places v", "y")]
    constants = {"start": scalar(0), "step": scalar(1), "one": ints(1), "wide4": ints(1, 4)}
    check_runs(nodes, masked(3, 2), "y r", constants, dims={"x": ["b", "n", 4], "mask": ["b", "n"]})


def test_the_flags_of_another_mask() -> None:
    nodes = [node("NonZero", "mask", "at"), node("Identity", "other", "flat"), *ASSIGNED]
    run = {"x": numbers(3, 4), "mask": np.array([True, False, True]), "other": np.array([True, True, False])}
    made = check_runs(nodes, [run], "y", CONSTANTS, dims={"x": ["n", 4], "mask": ["n"], "other": ["n"]})
    with pytest.raises(UserError, match="ScatterND"):
        made.run({**run, "other": np.array([True, True, True])})


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_rows_that_flags_choose_go_back_by_their_elements(chip: str) -> None:
    """``x[mask] = tanh(x[mask])`` by an index of rows, then by one of elements: two counts, and what relates them."""
    nodes = [node("NonZero", "mask", "at"), node("Transpose", "at", "places", perm=[1, 0]),
             node("GatherND", "x places", "chosen"), node("Tanh", "chosen", "rows"),
             node("Unsqueeze", "mask one", "column"), node("Shape", "x", "all"), node("Expand", "column all", "each"),
             node("NonZero", "each", "at_each"), node("Transpose", "at_each", "elements", perm=[1, 0]),
             node("Reshape", "rows flatten", "flat"), node("ScatterND", "x elements flat", "y")]
    runs = [{"x": numbers(n, 4), "mask": flags(n)} for n in (6, 9)]
    check_runs(nodes, runs, "y", {"one": ints(1), "flatten": ints(-1)}, chip, dims={"x": ["n", 4], "mask": ["n"]})
