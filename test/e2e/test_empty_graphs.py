"""Graphs whose values may have no element, since their sizes are 0 or data decide them, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from small_graphs import check, compiled, info, ints, model_of, node, numbers, scalar, with_outputs

from xcc.diagnostics import UserError


def test_a_count_that_only_a_size_needs() -> None:
    """What nonzero finds is used by nothing; how many it finds is the size of an empty result."""
    check([node("NonZero", "x", "i"), node("Shape", "i", "s"), node("ConstantOfShape", "s", "c"),
           node("Slice", "c one many zero", "y")], {"x": np.array([0, 1, 1, 0, 1], np.float32)}, "y",
          {"one": np.array([1]), "many": np.array([9]), "zero": np.array([0])})


def test_the_determinant_of_no_rows_is_one() -> None:
    check([node("Slice", "x zero zero axes", "none"), node("Det", "none", "y")], {"x": numbers(2, 3, 3)}, "y",
          {"zero": np.array([0, 0]), "axes": np.array([1, 2])}, dims={"x": ["n", 3, 3]})


@pytest.mark.parametrize("axis", [None, 0])
def test_compress_by_a_condition_of_another_length(axis: int | None) -> None:
    """What is longer than the data counts as far as there is data."""
    attrs = {} if axis is None else {"axis": axis}
    for rows, length in ((3, 8), (3, 2), (0, 4)):
        feeds = {"x": numbers(rows, 2), "c": np.arange(length) % 3 != 1}
        for dims in ({"x": ["n", 2], "c": ["k"]}, {}):
            check([node("Compress", "x c", "y", **attrs)], feeds, "y", dims=dims)


@pytest.mark.parametrize("op", ["Equal", "Greater", "Less", "GreaterOrEqual"])
def test_a_count_that_may_be_nothing_is_compared_when_run(op: str) -> None:
    """A size that the data decides may be 0, unlike an input's: the branch was taken at import."""
    def branch(name: str, value: float) -> Any:
        constant = helper.make_node("Constant", [], [name], value_float=value)
        return helper.make_graph([constant], name, [], [info(name, np.float32(0), [])])

    nodes = [node("NonZero", "x", "places"), node("Shape", "places", "shape", start=1), node(op, "shape limit", "yes"),
             node("If", "yes", "y", then_branch=branch("then", 1.0), else_branch=branch("else", 0.0))]
    for x in (np.zeros(3), np.ones(3)):
        check(nodes, {"x": x.astype(np.float32)}, "y", {"limit": np.array([op == "GreaterOrEqual"], np.int64)})


END, NAMES = 2**62, ("from", "to", "by")
SLICES = {"first": (0, 1, 1), "tail": (1, END, 1), "head": (0, -1, 1), "last": (-1, END, 1), "last_two": (-2, 9, 1),
          "backward": (-1, -END, -1), "from_two": (2, -99, -1), "inner": (-2, 0, -1)}


@pytest.mark.parametrize("found", [0, 1, 4])
def test_slices_of_what_may_be_nothing(found: int) -> None:
    x = np.arange(6, dtype=np.float32) < found
    constants = {"axes": np.array([1], np.int64), "five": np.arange(5)}
    nodes = [node("NonZero", "x", "places")]
    for n, (name, bounds) in enumerate(SLICES.items()):
        constants |= {f"{what}{n}": np.array([v], np.int64) for what, v in zip(NAMES, bounds, strict=True)}
        nodes.append(node("Slice", f"places from{n} to{n} axes by{n}", name))
    outputs = " ".join(SLICES)
    nodes += [node("Sub", "tail head", "steps"), node("Concat", "first last", "both", axis=1),
              node("Sub", "places first", "relative")]      # the one that is there is stretched
    if found:
        nodes += [node("Squeeze", "last", "only"), node("Add", "first five", "wide")]
        outputs += " only wide"
    check(nodes, {"x": x.astype(np.float32)}, f"{outputs} steps both relative", constants)


@pytest.mark.parametrize(("found", "others"), [(0, 0), (3, 0), (3, 4), (0, 4)])
def test_one_beside_nothing_is_nothing(found: int, others: int) -> None:
    feeds = {k: (np.arange(6) < n).astype(np.float32) for k, n in {"x": found, "z": others}.items()}
    nodes = [node("NonZero", "x", "places"), node("NonZero", "z", "others"),
             node("Slice", "places zero one one", "first"), node("Mul", "others first", "y")]
    constants = {"zero": np.array([0]), "one": np.array([1])}
    if (found, others) == (0, 4):
        with pytest.raises(UserError, match="'Mul#3': sizes do not fit"):
            compiled(with_outputs(nodes, feeds, [info("y", np.array(0), [1, "n"])], constants)).run(feeds)
        return
    for chip in ("", "gfx942"):
        check(nodes, feeds, "y", constants, chip)


@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax_of_nothing(opset: int) -> None:
    nodes = [node("NonZero", "x", "places"), node("Cast", "places", "c", to=1), node("Hardmax", "c", "y", axis=1)]
    for shape in ((0,), (3,), (2, 3)):
        check(nodes, {"x": np.zeros(shape, np.float32)}, "y", opset=opset)
    check(nodes, {"x": np.ones((2, 3), np.float32)}, "y", opset=opset)
    check([node("Hardmax", "x", "y", axis=1)], {"x": np.zeros((2, 0), np.float32)}, "y", opset=opset)


def stacking(limit: int, outputs: str, steps: int, chip: str = "") -> None:
    """A loop of max(n) steps that stacks a sum, of at most `limit`."""
    body = helper.make_graph(
        [node("Add", "sum x", "next"), node("Mul", "next next", "row")], "body",
        [info("i", np.array(0), []), info("c", np.array(True), []), info("sum", np.zeros(1, np.float32), [3])],
        [info("c", np.array(True), []), info("next", np.zeros(1, np.float32), [3]),
         info("row", np.zeros(1, np.float32), [3])])
    check([node("ReduceMax", "n", "most", keepdims=0),
           helper.make_node("Loop", ["most", "", "x"], ["last", "rows"], body=body), node("Shape", "rows", "shape")],
          {"n": np.array([-2, steps, -5]), "x": numbers(3)}, outputs, chip=chip, limits={"rows_count": (0, limit)})


@pytest.mark.parametrize("chip", ["", "sm_80"])
def test_a_loop_stacks_values_of_as_many_steps_as_the_data_say(chip: str) -> None:
    for steps in (0, 4, -1):
        stacking(4, "last rows shape", steps, chip)
    with pytest.raises(UserError, match="'Loop#1' .*the loop has more than 4 steps"):
        stacking(4, "rows", 5, chip)
    with pytest.raises(UserError, match="more than 4 steps"):
        stacking(4, "last", 6, chip)


@pytest.mark.parametrize(("op", "kind"), [("MatMul", np.float32), ("MatMulInteger", np.int8)])
def test_products_of_no_steps(op: str, kind: Any) -> None:
    """Zeros, also where there are more rows than columns; onnxruntime leaves those of integers as memory was."""
    inputs = {"x": np.zeros((5, 0), kind), "w": np.zeros((0, 3), kind)}
    result = np.zeros((5, 3), np.float32 if op == "MatMul" else np.int32)
    source = with_outputs([node(op, "x w", "y")], inputs, [info("y", result, result.shape)])
    np.testing.assert_array_equal(compiled(source).run(inputs)["y"], result)


EMPTY = {       # a node, the shapes of its inputs, its constants
    "Conv": (node("Conv", "x w", "y", pads=[1] * 4), [(0, 3, 8, 8)], {"w": numbers(4, 3, 3, 3)}),
    "MaxPool": (node("MaxPool", "x", "y", kernel_shape=[2, 2]), [(0, 3, 8, 8)], {}),
    "GlobalAveragePool": (node("GlobalAveragePool", "x", "y"), [(0, 3, 8, 8)], {}),
    "BatchNormalization": (node("BatchNormalization", "x s s s v", "y"), [(2, 3, 0)],
                           {"s": numbers(3), "v": numbers(3) + 2}),
    "Softmax": (node("Softmax", "x", "y", axis=0), [(0, 3)], {}),
    "LayerNormalization": (node("LayerNormalization", "x s", "y"), [(0, 3)], {"s": numbers(3)}),
    "ReduceL1": (node("ReduceL1", "x", "y", keepdims=0), [(0, 3)], {}),
    "ReduceLogSumExp": (node("ReduceLogSumExp", "x", "y", keepdims=0), [(0, 3)], {}),
    "ReduceSum": (node("ReduceSum", "x axes", "y"), [(3, 0)], {"axes": ints(1)}),
    "ReduceMax": (node("ReduceMax", "x axes", "y", keepdims=0), [(3, 0)], {"axes": ints(1)}),
    "Concat": (node("Concat", "x z", "y", axis=0), [(0, 3), (2, 3)], {}),
    "Gather": (node("Gather", "x places", "y"), [(0, 3)], {"places": ints()}),
    "TopK": (node("TopK", "x k", "y i"), [(0, 3)], {"k": ints(2)}),
    "Slice": (node("Slice", "x zero one axes", "y"), [(0, 3)], {"zero": ints(0), "one": ints(2), "axes": ints(0)}),
    "Pad": (node("Pad", "x pads", "y"), [(0, 3)], {"pads": ints(1, 0, 2, 0)}),
    "Tile": (node("Tile", "x repeats", "y"), [(3, 2)], {"repeats": ints(0, 2)}),
    "CumSum": (node("CumSum", "x axis", "y"), [(3, 0)], {"axis": scalar(1)}),
    "Split": (node("Split", "x sizes", "y z"), [(4, 3)], {"sizes": ints(0, 4)}),
    "Gemm": (node("Gemm", "x w b", "y"), [(5, 0)], {"w": numbers(0, 4), "b": numbers(4)}),
    "MatMul": (node("MatMul", "p q", "y"), [], {"p": numbers(0), "q": numbers(0)}),
}


@pytest.mark.parametrize("op", EMPTY)
def test_operands_of_nothing(op: str) -> None:
    """With sizes that are known, and with symbols for the empty ones."""
    graph, shapes, constants = EMPTY[op]
    inputs = {name: numbers(*shape) for name, shape in zip("xz", shapes, strict=False)}
    outputs = " ".join(graph.output)
    check([graph], inputs, outputs, constants)
    check([graph], inputs, outputs, constants,
          dims={n: [f"{n}{i}" if not d else d for i, d in enumerate(a.shape)] for n, a in inputs.items()})


@pytest.mark.parametrize(("end", "by"), [(1, 1), (2, 1), (-1, 1), (-2, -1), (-9, -1)])
def test_slices_of_a_size_of_nothing(end: int, by: int) -> None:
    for start in (-1, 0, 1):
        check([node("Slice", "x from to axes by", "y")], {"x": numbers(0, 3)}, "y",
              {"from": ints(start), "to": ints(end), "axes": ints(0), "by": ints(by)})


@pytest.mark.parametrize("shape", [(4, 3), (0, 3)])
def test_quantised_zeros(shape: tuple[int, ...]) -> None:
    """The range of zeros counts as 1, as in ONNX's reference; onnxruntime takes a scale of 1."""
    x = np.zeros(shape, np.float32)
    source = model_of([node("DynamicQuantizeLinear", "x", "y scale zero")], {"x": x}, "y scale zero")
    y, scale, zero = compiled(source).run({"x": x}).values()
    assert not y.any() and y.shape == shape and scale == np.float32(1) / np.float32(255) and zero == 0


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("shape", [(0, 2, 5), (3, 0, 5)])
def test_sequences_of_nothing(op: str, gates: int, shape: tuple[int, int, int]) -> None:
    """The last state is the first one, of zeros; onnxruntime ends with the process at a batch of nothing."""
    inputs, steps, batch = {"x": numbers(*shape)}, *shape[:2]
    state = np.zeros((1, batch, 6), np.float32)
    results = [info("y", state, (steps, 1, batch, 6)), info("h", state, state.shape)]
    constants = {"w": numbers(1, 6 * gates, 5), "r": numbers(1, 6 * gates, 6)}
    for dims in (shape, ("t" if not steps else steps, "n" if not batch else batch, 5)):
        source = with_outputs([node(op, "x w r", "y h", hidden_size=6)], inputs, results, constants, {"x": dims})
        y, h = compiled(source).run(inputs).values()
        assert y.shape == (steps, 1, batch, 6)
        np.testing.assert_array_equal(h, state)
