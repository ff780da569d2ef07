"""Slices whose bounds only a run can tell, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from small_graphs import check_runs, compiled, info, ints, model_of, node, numbers, scalar

from xcc.diagnostics import UserError

LONGEST = node("ReduceMax", "lengths", "n", keepdims=1)
FREE = {"lengths": ["b"], "x": ["t", 4], "z": ["t", 4]}


def lengths(*sizes: int) -> list[dict[str, Any]]:
    """Runs whose longest length is each of `sizes`, of 7 rows."""
    return [{"lengths": ints(n, -30), "x": numbers(7, 4), "z": numbers(7, 4)} for n in sizes]


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
def test_the_first_rows(chip: str) -> None:
    """Ends behind the rows and counted from their back; two slices of the same rows are added."""
    nodes = [LONGEST, node("Slice", "x zero n zero", "a"), node("Slice", "z zero n zero", "c"), node("Add", "a c", "y"),
             node("Softmax", "a", "s", axis=0)]
    runs = lengths(3, 7, 0, 100, -2, -20)
    if chip.startswith("gfx"):
        compiled(model_of(nodes, runs[0], "y s", {"zero": ints(0)}, dims=FREE), chip)
    else:
        check_runs(nodes, runs[:3] if chip else runs, "y s", {"zero": ints(0)}, chip, dims=FREE)


def test_bounds_of_several_dims_with_steps() -> None:
    nodes = [LONGEST, node("Neg", "n", "m"), node("Concat", "m one", "starts", axis=0),
             node("Concat", "n n", "ends", axis=0), node("Slice", "x starts ends axes steps", "y")]
    constants = {"one": ints(1), "axes": ints(0, -1), "steps": ints(2, 1)}
    runs = [{"lengths": r["lengths"], "x": r["x"]} for r in lengths(2, 3, 5, 1, 0)]
    check_runs(nodes, runs, "y", constants, dims=FREE)


def test_a_step_back_must_be_known() -> None:
    nodes = [LONGEST, node("Slice", "x zero n zero back", "y")]
    with pytest.raises(UserError, match=r"operand 2 \('n'\) decides a shape"):
        compiled(model_of(nodes, lengths(2)[0], "y", {"zero": ints(0), "back": ints(-1)}, dims=FREE))


def bags(steps: str) -> list[Any]:
    """EmbeddingBag as torch.onnx.export writes it: a step of the loop sums the rows from one offset to the next."""
    body = helper.make_graph(
        [node("Identity", "c", "on"), node("Gather", "bounds i", "start"), node("Add", "i one", "next"),
         node("Gather", "bounds next", "end"), node("Unsqueeze", "start zero", "s"), node("Unsqueeze", "end zero", "e"),
         node("Slice", "rows s e zero", "bag"), node("Gather", "x bag", "found"),
         node("ReduceSum", "found zero", "sum", keepdims=0)],
        "body", [info("i", scalar(0), []), info("c", np.array(True), [])],
        [info("on", np.array(True), []), info("sum", numbers(4), [4])])
    return [node("Shape", "rows", "count"), node("Concat", "offsets count", "bounds", axis=0),
            node("Size", "offsets", "size"), helper.make_node("Loop", [steps, ""], ["y"], body=body)]


@pytest.mark.parametrize(("steps", "free"), [("size", True), ("three", False)])
def test_a_slice_in_a_loop(steps: str, free: bool) -> None:
    """A step that counts a size is no reason to unroll where the number of steps is not known."""
    runs = [{"offsets": ints(*offsets), "rows": np.arange(n) % 5, "x": numbers(5, 4)}
            for offsets, n in (((0, 2, 2), 9), ((0, 0, 4), 5), *([((0,), 3)] if free else []))]
    dims = {"offsets": ["bags"], "rows": ["n"]} if free else {"rows": ["n"]}
    check_runs(bags(steps), runs, "y", {"zero": ints(0), "one": scalar(1), "three": scalar(3)}, dims=dims)
