"""Sizes that are values of integer inputs: one compilation, several values, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from small_graphs import check_runs, compiled, ints, model_of, node, numbers, scalar

import xcc
from xcc.diagnostics import UserError


def with_values(name: str, values: Sequence[Any], **others: Any) -> list[dict[str, Any]]:
    return [{**others, name: v} for v in values]


SHAPES = [ints(2, 3), ints(5, 1), ints(0, 4), ints(2, 3)]


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
def test_shape_of_a_constant(chip: str) -> None:
    made = check_runs([node("ConstantOfShape", "shape", "z"), node("Add", "z x", "y")],
                      with_values("shape", SHAPES, x=numbers(1)), "y", chip=chip)
    assert made.outputs[0].shape == ("shape_0", "shape_1")


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_a_computed_shape(chip: str) -> None:
    """Arithmetic on an input's elements is arithmetic on sizes."""
    nodes = [node("Gather", "shape zero", "a", axis=0), node("Gather", "shape one", "b", axis=0),
             node("Add", "a b", "s"), node("Mul", "a two", "m"), node("Div", "s two", "d"),
             node("Cast", "b", "narrow", to=onnx.TensorProto.INT32), node("Max", "narrow three", "most"),
             node("Cast", "most", "c", to=onnx.TensorProto.INT64), node("Min", "c four", "e"),
             node("Concat", "m d e", "wanted", axis=0), node("Expand", "x wanted", "y")]
    constants = {"zero": ints(0), "one": ints(1), "two": ints(2), "three": np.array([3], np.int32), "four": ints(7)}
    check_runs(nodes, with_values("shape", [*SHAPES, ints(4, 9)], x=numbers(1)), "y", constants, chip)


@pytest.mark.parametrize("limits", [None, {"shape_0": (1, 64)}, {"shape_1": 6},
                                    {"shape_0": (-1, 64), "shape_1": (1, 24)}])
def test_reshape(limits: Any) -> None:
    """0 copies a dim, -1 is inferred where the bounds let it be."""
    wanted = [ints(4, 6), ints(0, 6)] if limits is None else [ints(4, 6)]
    if limits is None or "shape_1" not in limits:
        wanted += [ints(3, 8), ints(24, 1)]
    if limits and "shape_0" in limits and limits["shape_0"][0] < 0:
        wanted += [ints(-1, 3), ints(0, 6), ints(-1, 24)]
    check_runs([node("Reshape", "x shape", "z"), node("Relu", "z", "y")],
               with_values("shape", wanted, x=numbers(4, 6)), "y", limits=limits)


def test_conditions_on_values() -> None:
    """Where and what it compares stay arithmetic on sizes."""
    nodes = [node("Greater", "k five", "more"), node("Equal", "k two", "same"), node("Or", "more same", "either"),
             node("Not", "either", "neither"), node("Where", "neither k five", "a"),
             node("LessOrEqual", "k two", "few"), node("And", "few neither", "both"),
             node("Where", "both two k", "b"), node("Concat", "a b", "w", axis=0), node("Expand", "x w", "y"),
             node("Cast", "more", "flag", to=1), node("Mul", "y flag", "z")]
    check_runs(nodes, with_values("k", [ints(n) for n in (0, 1, 2, 3, 5, 6, 9)], x=numbers(1)), "y z",
               {"five": ints(5), "two": ints(2)})


def test_a_branch_on_a_value() -> None:
    def branch(name: str, *nodes: Any) -> Any:
        return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info("out_" + name, 1, [None, 3])])

    nodes = [node("Greater", "k five", "more"),
             node("If", "more", "y", then_branch=branch("some", node("Neg", "x", "out_some")),
                  else_branch=branch("most", node("Slice", "x zero e zero", "out_most"))),
             node("Unsqueeze", "k zero", "e")]
    check_runs([nodes[0], nodes[2], nodes[1]], with_values("k", [scalar(n) for n in (3, 9, 0, 5)], x=numbers(7, 3)),
               "y", {"five": scalar(5), "zero": ints(0)})


@pytest.mark.parametrize("op", ["HannWindow", "BlackmanWindow"])
def test_windows(op: str) -> None:
    check_runs([node(op, "n", "y")], with_values("n", [scalar(8), scalar(5), scalar(33)]), "y")


def test_grid_of_a_size() -> None:
    check_runs([node("AffineGrid", "theta size", "g"), node("GridSample", "x g", "y")],
               with_values("size", [ints(2, 3, 5, 6), ints(2, 3, 4, 9)], theta=numbers(2, 2, 3), x=numbers(2, 3, 7, 8)),
               "y")


def test_scales_that_are_quotients() -> None:
    nodes = [node("Cast", "size", "f", to=1), node("Div", "f four", "s"), node("Concat", "ones s", "scales", axis=0),
             node("Resize", "x - scales", "y", mode="nearest")]
    check_runs(nodes, with_values("size", [ints(8, 8), ints(4, 12)], x=numbers(1, 2, 4, 4)), "y",
               {"ones": np.ones(2, np.float32), "four": np.float32(4)})


def test_reshape_beside_a_constant() -> None:
    check_runs([node("Concat", "k minus", "shape", axis=0), node("Reshape", "x shape", "y")],
               with_values("k", [ints(2), ints(3), ints(12), ints(0)], x=numbers(3, 4)), "y", {"minus": ints(-1)})


def test_expand_both_ways() -> None:
    """An element of 1 leaves a size as it is."""
    check_runs([node("Expand", "x shape", "z"), node("Neg", "z", "y")],
               with_values("shape", [ints(2, 3, 4), ints(1, 1, 1), ints(2, 1, 4), ints(0, 3, 1)], x=numbers(3, 1)), "y")
    check_runs([node("Expand", "x shape", "y")],
               with_values("shape", [ints(2, 3), ints(2, 1)], x=numbers(2, 3)), "y", dims={"x": ["n", "m"]})


def test_tile() -> None:
    check_runs([node("Tile", "x repeats", "y")],
               with_values("repeats", [ints(1, 2), ints(3, 1), ints(0, 2), ints(2, 2)], x=numbers(2, 3)), "y")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize(mode: str) -> None:
    check_runs([node("Resize", "x - - sizes", "y", mode=mode)],
               with_values("sizes", [ints(1, 2, 8, 10), ints(1, 2, 3, 5), ints(1, 2, 4, 9)], x=numbers(1, 2, 4, 5)),
               "y", limits={"sizes_0": 1, "sizes_1": 2})


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_top_k(chip: str) -> None:
    check_runs([node("TopK", "x k", "values places", axis=1)],
               with_values("k", [ints(3), ints(1), ints(0), ints(7)], x=numbers(4, 7)), "values places", chip=chip)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_range(dtype: Any) -> None:
    runs = [dict(zip("abc", (np.array(v, dtype) for v in values), strict=True))
            for values in ((0, 5, 1), (2, 11, 3), (7, 3, 1), (4, 4, 2), (0, 7, 7))]
    check_runs([node("Range", "a b c", "y")], runs, "y")


def test_range_downwards() -> None:
    runs = [{"start": scalar(a), "limit": scalar(b)} for a, b in ((5, 0), (7, -3), (0, 4), (-2, -9))]
    check_runs([node("Range", "start limit delta", "y")], runs, "y", {"delta": scalar(-2)},
               limits={"start": (-10, 10), "limit": (-10, 10)})


def test_range_of_floats() -> None:
    check_runs([node("Cast", "n", "limit", to=1), node("Range", "zero limit one", "z"), node("Mul", "z half", "y")],
               with_values("n", [scalar(4), scalar(0), scalar(9)]), "y",
               {"zero": np.float32(0), "one": np.float32(1), "half": np.float32(0.5)})


def test_slice() -> None:
    runs = [{"x": numbers(6, 5), "starts": ints(a, b), "ends": ints(c, d)}
            for a, b, c, d in ((1, 0, 4, 3), (0, 2, 6, 2 ** 62), (5, 4, 2, 1), (0, 0, 9, 9))]
    check_runs([node("Slice", "x starts ends", "y")], runs, "y")


@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_slice_from_the_end(step: int) -> None:
    runs = [{"x": numbers(7, 3), "starts": ints(a), "ends": ints(b)}
            for a in (-9, -7, -3, -1, 0, 2, 6, 8) for b in (-9, -5, -1, 0, 3, 9)]
    check_runs([node("Slice", "x starts ends axes steps", "y")], runs, "y", {"axes": ints(0), "steps": ints(step)},
               limits={"starts_0": (-9, 9), "ends_0": (-9, 9)})


def test_slice_by_a_length() -> None:
    """The first `length` rows of a batch of any size."""
    runs = [{"x": numbers(n, 6, 3), "length": scalar(k)} for n, k in ((2, 4), (3, 6), (3, 1), (1, 0))]
    check_runs([node("Unsqueeze", "length zero", "ends"), node("Slice", "x zero ends one", "z"),
                node("Softmax", "z", "y")], runs, "y", {"zero": ints(0), "one": ints(1)}, dims={"x": ["n", "m", 3]})


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode: str) -> None:
    check_runs([node("Pad", "x pads", "y", mode=mode)],
               with_values("pads", [ints(1, 2, 0, 1), ints(0, 0, 0, 0), ints(2, 3, 2, 0)], x=numbers(4, 5)), "y")


def test_pad_and_crop() -> None:
    check_runs([node("Pad", "x pads", "y")],
               with_values("pads", [ints(-1, 2, 0, -2), ints(1, -1, -1, 0), ints(0, 0, 0, 0)], x=numbers(4, 5)), "y",
               limits={f"pads_{i}": (-3, 8) for i in range(4)})


@pytest.mark.parametrize("dims", [{}, {"x": ["n", "m"]}])
def test_center_crop_pad(dims: Any) -> None:
    """Whether a dim is cropped or padded is known when the model runs."""
    shapes = [ints(*s) for s in ((7, 3), (4, 8), (7, 5), (10, 5), (1, 1), (9, 2), (8, 6))]
    check_runs([node("CenterCropPad", "x shape", "y")], with_values("shape", shapes, x=numbers(7, 5)), "y", dims=dims)
    check_runs([node("CenterCropPad", "x shape", "y", axes=[1])],
               with_values("shape", [ints(s) for s in (2, 3, 5, 8)], x=numbers(7, 5)), "y", dims=dims)


def test_center_crop_by_a_difference() -> None:
    """What is left of an odd difference is cut behind, whether the size itself is odd or not."""
    nodes = [node("Shape", "x", "s"), node("Sub", "s three", "t"), node("CenterCropPad", "x t", "y"),
             node("Add", "s three", "w"), node("CenterCropPad", "x w", "z")]
    check_runs(nodes, [{"x": numbers(n, m)} for n, m in ((8, 7), (5, 4), (6, 6))], "y z", {"three": ints(3)},
               dims={"x": ["n", "m"]})


def test_split() -> None:
    check_runs([node("Split", "x sizes", "a b", axis=1), node("Neg", "a", "c")],
               with_values("sizes", [ints(2, 5), ints(7, 0), ints(0, 7)], x=numbers(3, 7)), "b c")


def test_one_hot() -> None:
    check_runs([node("OneHot", "places depth values", "y")],
               with_values("depth", [ints(4), ints(3), ints(9)], places=ints(0, 2, 1)), "y",
               {"values": np.float32([0, 1])})


def loop_body(name: str = "body") -> Any:
    def value(name: str, kind: int, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    return helper.make_graph(
        [node("Identity", "go", "on"), node("Add", "state step", "next"), node("Mul", "next next", "row")], name,
        [value("i", 7), value("go", 9), value("state", 1, 3)],
        [value("on", 9), value("next", 1, 3), value("row", 1, 3)])


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_a_loop_stacks_values_of_as_many_steps(chip: str) -> None:
    check_runs([node("Loop", "max_length go x", "last rows", body=loop_body())],
               with_values("max_length", [scalar(3), scalar(1), scalar(6), scalar(0)], x=numbers(3)), "last rows",
               {"go": np.array(True), "step": numbers(3)}, chip)


def test_values_are_data_too() -> None:
    """What is read as a size is still the input where its elements are data."""
    check_runs([node("ConstantOfShape", "shape", "z"), node("Cast", "shape", "s", to=1), node("Sqrt", "s", "r"),
                node("Gather", "table shape", "g", axis=0), node("Mul", "r g", "y")],
               with_values("shape", SHAPES), "z y", {"table": numbers(8)})


def test_a_mask_of_a_length() -> None:
    """Range(length) is compared with lengths of rows, as models mask sequences."""
    runs = [{"length": scalar(n), "rows": ints(*rows)} for n, rows in ((4, (1, 3)), (7, (7, 2)), (1, (0, 1)))]
    check_runs([node("Range", "zero length one", "r"), node("Unsqueeze", "rows last", "l"), node("Less", "r l", "m"),
                node("Cast", "m", "f", to=1), node("ReduceSum", "f last", "y", keepdims=0)],
               runs, "f y", {"zero": scalar(0), "one": scalar(1), "last": ints(1)})


def test_values_that_do_not_fit() -> None:
    nodes = [node("ConstantOfShape", "shape", "y")]
    source = model_of(nodes, {"shape": ints(2, 3)}, "y")
    made = compiled(source, dims={"shape_0": (1, 64)})
    for shape, what in ((ints(65, 1), "element 0 of input 'shape': 'shape_0' is 65, the model was compiled for 1..64"),
                        (ints(0, 1), "'shape_0' is 0, the model was compiled for 1..64"),
                        (ints(2, -4), "element 1 of input 'shape' is -4, and is read as a size"),
                        (ints(64, 2 ** 61), "the memory does not suffice")):
        with pytest.raises(UserError, match=what):
            made.run({"shape": shape})
    assert made.run({"shape": ints(64, 2)})["y"].shape == (64, 2)


@pytest.mark.parametrize(("nodes", "constants", "runs", "what"), [
    ([node("Reshape", "x k", "y")], {}, {"k": ints(7)}, "sizes do not fit"),
    ([node("TopK", "x k", "y i")], {}, {"k": ints(7)}, "too small: 7 of 6 = 6 are read"),
    ([node("Expand", "x k", "y")], {}, {"k": ints(5)}, "node 'Expand#0': sizes do not fit: 6 and"),
    ([node("Split", "x k", "y")], {}, {"k": ints(5)}, "node 'Split#0': sizes do not fit"),
    ([node("Div", "six k", "q"), node("Expand", "one q", "y")], {"six": ints(6), "one": np.float32(1)}, {"k": ints(0)},
     "division by zero")])
def test_sizes_that_do_not_fit(nodes: Any, constants: Any, runs: Any, what: str) -> None:
    source = model_of(nodes, {"x": numbers(6), "k": ints(6)}, "y", constants)
    made = compiled(source)
    made.run({"x": numbers(6), "k": ints(6)})
    with pytest.raises(UserError, match=what):
        made.run({"x": numbers(6), **runs})


def test_fixed_values_stay() -> None:
    source = model_of([node("Expand", "x shape", "y")], {"x": numbers(1), "shape": ints(2, 3)}, "y")
    made = compiled(source, fix={"shape": [4, 2]})
    assert [i.name for i in made.inputs] == ["x"] and made.outputs[0].shape == (4, 2)


def test_a_saved_model_reads_values(tmp_path: Any) -> None:
    made = compiled(model_of([node("Expand", "x shape", "y")], {"x": numbers(1), "shape": ints(2, 3)}, "y"),
                    dims={"shape_0": (4, 64)})
    made.save(tmp_path / "m.xcm")
    loaded = xcc.load(tmp_path / "m.xcm", dims={"shape_0": 8, "shape_1": 2})
    assert loaded.run({"x": numbers(1), "shape": ints(5, 3)})["y"].shape == (5, 3)
