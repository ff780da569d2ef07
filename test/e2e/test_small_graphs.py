"""The smallest graphs that were once compiled wrongly or not at all, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_graphs import check, compiled, info, model_of, node, numbers, reference, with_outputs

from xcc.diagnostics import UserError


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
        "body", [info("i", np.array(0), []), info("c", np.array(True), []), info("a", np.float32(0), [])],
        [info("more", np.array(True), []), info("b", np.float32(0), [])])
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


@pytest.mark.parametrize(("batch", "size"), [(1, (2, 3)), (2, (3, 1)), (3, (2, 3, 4))])
def test_affine_grid(batch: int, size: tuple[int, ...]) -> None:
    """Of one box too, which the schema's body does not take, and without the attribute."""
    feeds = {"theta": numbers(batch, len(size), len(size) + 1)}
    check([node("AffineGrid", "theta size", "grid")], feeds, "grid", {"size": np.array([batch, 1, *size])},
          dims={"theta": ["n", len(size), len(size) + 1]})


@pytest.mark.parametrize("precision", ["", "f16", "bf16"])
def test_a_product_of_an_image_with_scaled_channels(precision: str) -> None:
    """Scales go into f32 weights, not into narrow ones."""
    nodes = [node("GlobalAveragePool", "x", "p"), node("Conv", "p v", "q"), node("Sigmoid", "q", "s"),
             node("Mul", "x s", "z"), node("Conv", "z w", "y")]
    x, v, w = numbers(1, 96, 20, 20), numbers(96, 96, 1, 1), numbers(48, 96, 1, 1)
    model = model_of(nodes, {"x": x}, "y", {"w": w, "v": v})
    want, = reference(model, {"x": x})
    got = compiled(model, precision=precision).run({"x": x})["y"]
    bound = {"": 1e-5, "f16": 5e-3, "bf16": 4e-2}[precision]
    np.testing.assert_allclose(got, want, rtol=0, atol=bound * np.abs(want).max())


def unpool(shape: tuple[int, ...]) -> tuple[list[Any], dict[str, Any]]:
    """A MaxUnpool by 2 of 2x2 images into `shape`, and its inputs: places in images of 4x4."""
    places = np.array([0, 3, 9, 14]).reshape(1, 1, 2, 2) + 16 * np.arange(6).reshape(2, 3, 1, 1)
    return ([node("MaxUnpool", "x places shape", "y", kernel_shape=[2, 2], strides=[2, 2])],
            {"x": numbers(2, 3, 2, 2), "places": places, "shape": np.array(shape)})


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 3, 5, 5), (2, 3, 4, 7), (3, 3, 5, 4)])
def test_max_unpool_into_a_larger_shape(shape: tuple[int, ...], known: bool) -> None:
    """Places count in the shape of the attributes, zeros lie behind it: as in ONNX's reference, not in onnxruntime."""
    nodes, inputs = unpool(shape)
    results = [info("y", inputs["x"], [None] * 4)]
    constants = {"shape": inputs.pop("shape")} if known else {}
    want, = ReferenceEvaluator(with_outputs(nodes, inputs, results, constants)).run(None, inputs)
    assert np.count_nonzero(want) == 24
    dims = {n: ["n", "c", "h", "w"] for n in ("x", "places")}
    for source in (with_outputs(nodes, inputs, results, constants),
                   with_outputs(nodes, inputs, results, constants, dims)):
        np.testing.assert_array_equal(compiled(source).run(inputs)["y"], want)


def test_max_unpool_into_a_smaller_shape() -> None:
    nodes, inputs = unpool((2, 3, 3, 5))
    constants = {"shape": inputs.pop("shape")}
    with pytest.raises(UserError, match="output_shape .*'3', '5'.* is smaller than .*'4', '4'"):
        compiled(with_outputs(nodes, inputs, [info("y", inputs["x"], [None] * 4)], constants))
