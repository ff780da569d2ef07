"""The smallest graphs that were once compiled wrongly or not at all, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from compiled import compare
from onnx import helper, numpy_helper

import xcc
from xcc.diagnostics import UserError
from xcc.interpreter.executor import make_executor as interpreting

RNG = np.random.default_rng(0)


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def numbers(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def check(nodes: Sequence[Any], inputs: dict[str, Any], outputs: str, constants: dict[str, Any] | None = None,
          chip: str = "", dims: dict[str, Sequence[int | str]] | None = None, opset: int = 21,
          limits: dict[str, Any] | None = None) -> None:
    """Compiles the graph for this CPU, or a GPU's chip and the interpreter.

    `dims` are symbolic shapes of inputs, `limits` bounds of symbolic dims.
    """
    def model(results: Sequence[Any]) -> Any:
        arguments = [_info(n, a, (dims or {}).get(n, a.shape)) for n, a in inputs.items()]
        weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
        return helper.make_model(helper.make_graph(nodes, "g", arguments, results, weights),
                                 opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    names = outputs.split()
    session = onnxruntime.InferenceSession(model([onnx.ValueInfoProto(name=n) for n in names]).SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected = session.run(None, inputs)
    typed = model([_info(n, a, [None] * a.ndim) for n, a in zip(names, expected, strict=True)])
    for got, want in zip(run(typed, inputs, chip, limits), expected, strict=True):
        compare(got, want, 4)


def _info(name: str, array: Any, shape: Sequence[Any]) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def run(model: Any, inputs: dict[str, Any], chip: str, dims: dict[str, Any] | None = None) -> list[Any]:
    options: dict[str, Any] = {"dims": dims, "cache": False, "isolate": False}
    if not chip:
        return list(xcc.compile(model, **options).run(inputs).values())
    target = "nvptx,code=ptx" if chip.startswith("sm_") else "amdgcn"
    compiled = xcc.compile(model, target=target, chip=chip, keep_ir=True, **options)
    a = compiled.artifact
    compiled._executor = interpreting(a.program, a.members, a.weights, a.manifest)
    return list(compiled.run(inputs).values())


def test_norm_of_a_concatenation() -> None:
    """Mean and variance read the same places along axes of their own."""
    check([node("Concat", "x y", "c", axis=1), node("LayerNormalization", "c s", "z", axis=1)],
          {"x": numbers(12, 17), "y": numbers(12, 8)}, "z", {"s": numbers(25)})


def test_padding_of_a_dim_of_one() -> None:
    """Rows beside a border between them are no one row, though the padded dim is in no loop."""
    check([node("Conv", "x w", "y", group=3, kernel_shape=[2], pads=[2, 0])], {"x": numbers(5, 3, 1)}, "y",
          {"w": numbers(3, 1, 2)})


def test_padded_channel() -> None:
    """The only channel of an image is stored among those that a Pad adds."""
    check([node("Pad", "x p", "a"), node("Conv", "a w", "y", kernel_shape=[3, 3])], {"x": numbers(2, 1, 8, 19)}, "y",
          {"w": numbers(4, 3, 3, 3), "p": np.array([0, 1, 1, 1, 0, 1, 0, 1])})


def test_kernels_beside_each_other_with_one_input_in_two_shapes() -> None:
    """One walks rows of its input, the other all of it as one dim."""
    for chip in ("sm_80", "gfx942"):
        check([node("Softmax", "x", "y", axis=-1), node("Tanh", "x", "t"), node("Softmax", "t", "z", axis=-2)],
              {"x": numbers(8, 8)}, "y z", chip=chip)
        check([node("Softmax", "x", "y", axis=-1), node("Tanh", "x", "t"), node("Softmax", "t", "z", axis=-2)],
              {"x": numbers(3, 8)}, "y z", chip=chip, dims={"x": ["n", 8]})


def test_a_count_that_only_a_size_needs() -> None:
    """What nonzero finds is used by nothing; how many it finds is the size of an empty result."""
    check([node("NonZero", "x", "i"), node("Shape", "i", "s"), node("ConstantOfShape", "s", "c"),
           node("Slice", "c one many zero", "y")], {"x": np.array([0, 1, 1, 0, 1], np.float32)}, "y",
          {"one": np.array([1]), "many": np.array([9]), "zero": np.array([0])})


def test_values_used_twice_in_a_long_chain() -> None:
    """Two to the power of 30 ways lead from the result to the input."""
    nodes, x = [], "x"
    for i in range(30):
        nodes += [node("Tanh", x, f"t{i}"), node("Sub", f"{x} t{i}", f"x{i}")]
        x = f"x{i}"
    inputs = {"x": numbers(8, 8)}
    check([*nodes, node("Softmax", x, "y")], inputs, "y")
    check([*nodes, node("MatMul", f"{x} {x}", "y")], inputs, "y", chip="gfx942")


def test_places_in_a_long_chain() -> None:
    """A concatenation with itself is evaluated at two places: a kernel takes few of them."""
    nodes, x = [], "x"
    for i in range(20):
        nodes += [node("Concat", f"{x} {x}", f"c{i}", axis=1), node("Slice", f"c{i} from to axes", f"x{i}")]
        x = f"x{i}"
    check([*nodes, node("Tanh", x, "y")], {"x": numbers(3, 5)}, "y",
          {"from": np.array([1]), "to": np.array([6]), "axes": np.array([1])})


def test_a_loop_that_is_tried_before_it_is_unrolled() -> None:
    """Its condition is a constant of the graph, made for the try and used again behind the loop."""
    body = helper.make_graph(
        [node("Add", "i one", "j"), node("Reshape", "j vector", "size"), node("Expand", "a size", "wide"),
         node("ReduceSum", "wide", "sum", keepdims=0), node("Add", "sum x", "b"), node("Less", "j three", "more")],
        "body", [_info("i", np.array(0), []), _info("c", np.array(True), []), _info("a", np.float32(0), [])],
        [_info("more", np.array(True), []), _info("b", np.float32(0), [])])
    check([helper.make_node("Loop", ["", "on", "zero"], ["y"], body=body), node("And", "on q", "z")],
          {"x": np.array(2, np.float32), "q": np.array(True)}, "y z",
          {"one": np.array(1), "three": np.array(3), "vector": np.array([1]), "on": np.array(True),
           "zero": np.float32(0)})


def test_backward_slices_that_start_before_the_first_element() -> None:
    """ONNX clamps their start to the first element, where numpy finds nothing."""
    constants = {"from": np.array([-3]), "to": np.array([-(1 << 62)]), "axes": np.array([0]), "steps": np.array([-1])}
    check([node("Slice", "x from to axes steps", "y")], {"x": numbers(2, 3)}, "y", constants)
    check([node("Shape", "x", "s"), node("Slice", "s from to axes steps", "y")], {"x": numbers(2, 3)}, "y", constants,
          dims={"x": ["n", 3]})


def test_remainders_of_known_sizes() -> None:
    """fmod's have the sign of what is divided."""
    check([node("Shape", "x", "s"), node("Neg", "s", "t"), node("Mod", "t seven", "y", fmod=1),
           node("Mod", "t seven", "z"), node("Div", "t seven", "d")], {"x": numbers(9, 3)}, "y z d",
          {"seven": np.array(7)}, dims={"x": ["n", 3]})


def test_rows_and_their_sums_as_results() -> None:
    """A workgroup has room for a tile of rows, not for one as long as it is wide: code grew with its square."""
    nodes = [node("ReduceMean", "x last", "m"), node("Sub", "x m", "d"), node("Mul", "d d", "q"),
             node("ReduceMean", "q last", "v"), node("Add", "v little", "w"), node("Sqrt", "w", "s"),
             node("Div", "d s", "y")]
    check(nodes, {"x": numbers(2, 3, 300)}, "y s", {"last": np.array([-1]), "little": np.float32(0.1)}, chip="sm_90a",
          dims={"x": [2, "n", "m"]})


def test_a_size_that_weights_tell() -> None:
    """The slice's size is an expression of n, the scale says that it is 2: so does the type of the result then."""
    check([node("Slice", "x from to axes steps", "s"), node("LayerNormalization", "s scale", "y", axis=1)],
          {"x": numbers(5, 2, 5)}, "y",
          {"from": np.array([-3]), "to": np.array([100]), "axes": np.array([2]), "steps": np.array([2]),
           "scale": numbers(2, 2)}, dims={"x": ["n", 2, "n"]})


def test_a_size_that_is_always_one() -> None:
    """Every third of at most three rows is one row, whatever m is: it broadcasts as one."""
    check([node("Slice", "x zero three zero three", "s"), node("Mul", "s y", "z")],
          {"x": numbers(5, 4), "y": numbers(2, 4)}, "z", {"zero": np.array([0]), "three": np.array([3])},
          dims={"x": ["m", 4]})


@pytest.mark.parametrize("axis", [None, 0])
def test_compress_by_a_condition_of_another_length(axis: int | None) -> None:
    """What is longer than the data counts as far as there is data."""
    attrs = {} if axis is None else {"axis": axis}
    for rows, length in ((3, 8), (3, 2), (0, 4)):
        feeds = {"x": numbers(rows, 2), "c": np.arange(length) % 3 != 1}
        for dims in ({"x": ["n", 2], "c": ["k"]}, {}):
            check([node("Compress", "x c", "y", **attrs)], feeds, "y", dims=dims)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align_of_boxes_of_any_size(mode: str) -> None:
    boxes = np.array([[0, 0, 2e5, 2], [-300, -200, 300, 500], [1, 1, 3, 4], [3, 3, 1, 1], [2, 2, 2, 2]], np.float32)
    check([node("RoiAlign", "x boxes images", "y", output_height=2, output_width=2, mode=mode)],
          {"x": numbers(1, 2, 5, 4), "boxes": boxes, "images": np.zeros(5, np.int64)}, "y")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample_outside_of_infinite_borders(mode: str) -> None:
    """What is outside counts as 0: the border's element, which is read in its place, may be infinite."""
    image = np.full((1, 1, 3, 4), np.inf, np.float32)
    grid = np.array([-4, 5, 3, 0.2, 9, 9, -2.5, -7], np.float32).reshape(1, 2, 2, 2)
    check([node("GridSample", "x grid", "y", mode=mode)], {"x": image, "grid": grid}, "y")


@pytest.mark.parametrize("op", ["Equal", "Greater", "Less", "GreaterOrEqual"])
def test_a_count_that_may_be_nothing_is_compared_when_run(op: str) -> None:
    """A size that the data decides may be 0, unlike an input's: the branch was taken at import."""
    def branch(name: str, value: float) -> Any:
        constant = helper.make_node("Constant", [], [name], value_float=value)
        return helper.make_graph([constant], name, [], [_info(name, np.float32(0), [])])

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
        arguments, results = [_info(n, a, a.shape) for n, a in feeds.items()], [_info("y", np.array(0), [1, "n"])]
        weights = [numpy_helper.from_array(a, n) for n, a in constants.items()]
        graph = helper.make_graph(nodes, "g", arguments, results, weights)
        with pytest.raises(UserError, match="'Mul#3': sizes do not fit"):
            run(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), feeds, "")
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
        [_info("i", np.array(0), []), _info("c", np.array(True), []), _info("sum", np.zeros(1, np.float32), [3])],
        [_info("c", np.array(True), []), _info("next", np.zeros(1, np.float32), [3]),
         _info("row", np.zeros(1, np.float32), [3])])
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


@pytest.mark.parametrize(("batch", "size"), [(1, (2, 3)), (2, (3, 1)), (3, (2, 3, 4))])
def test_affine_grid(batch: int, size: tuple[int, ...]) -> None:
    """Of one box too, which the schema's body does not take, and without the attribute."""
    feeds = {"theta": numbers(batch, len(size), len(size) + 1)}
    check([node("AffineGrid", "theta size", "grid")], feeds, "grid", {"size": np.array([batch, 1, *size])},
          dims={"theta": ["n", len(size), len(size) + 1]})


@pytest.mark.parametrize(("op", "kind"), [("MatMul", np.float32), ("MatMulInteger", np.int8)])
def test_products_of_no_steps(op: str, kind: Any) -> None:
    """Zeros, also where there are more rows than columns; onnxruntime leaves those of integers as memory was."""
    inputs = {"x": np.zeros((5, 0), kind), "w": np.zeros((0, 3), kind)}
    result = np.zeros((5, 3), np.float32 if op == "MatMul" else np.int32)
    graph = helper.make_graph([node(op, "x w", "y")], "g", [_info(n, a, a.shape) for n, a in inputs.items()],
                              [_info("y", result, result.shape)])
    got, = run(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), inputs, "")
    np.testing.assert_array_equal(got, result)


@pytest.mark.parametrize("precision", ["", "f16", "bf16"])
def test_a_product_of_an_image_with_scaled_channels(precision):
    """Scales go into f32 weights, not into narrow ones."""
    nodes = [node("GlobalAveragePool", "x", "p"), node("Conv", "p v", "q"), node("Sigmoid", "q", "s"),
             node("Mul", "x s", "z"), node("Conv", "z w", "y")]
    x, v, w = numbers(1, 96, 20, 20), numbers(96, 96, 1, 1), numbers(48, 96, 1, 1)
    graph = helper.make_graph(nodes, "g", [_info("x", x, x.shape)], [_info("y", x, (1, 48, 20, 20))],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})
    got = xcc.compile(model, cache=False, isolate=False, precision=precision).run({"x": x})["y"]
    bound = {"": 1e-5, "f16": 5e-3, "bf16": 4e-2}[precision]
    np.testing.assert_allclose(got, want[0], rtol=0, atol=bound * np.abs(want[0]).max())
