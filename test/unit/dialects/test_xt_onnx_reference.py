"""Ops with long definitions against the ONNX reference implementation or onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession

from xcc.dialects.xt.fields import check_attributes
from xcc.dialects.xt.op import OPS, Attrs
from xcc.dialects.xt.types import TensorType, dtype_name

RNG = np.random.default_rng(7)


def evaluate(name, *arrays, **attributes):
    cls = OPS[name]
    types = [None if x is None else TensorType(x.shape, dtype_name(x.dtype)) for x in arrays]
    a = check_attributes(name, cls.attribute_fields, attributes)
    cls.normalize(a, *types)
    cls.inferred(a, *types)
    assert isinstance(a, Attrs)
    return cls.evaluate(a, *arrays)


def reference(op, arrays, outputs=1, opset=19, runtime=False, **attributes):
    """What ONNX's reference implementation gives, or onnxruntime where that one is wrong."""
    names = ["" if x is None else f"i{n}" for n, x in enumerate(arrays)]
    feeds = {n: x for n, x in zip(names, arrays, strict=True) if n}
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
             np.dtype(np.int32): TensorProto.INT32}
    graph = helper.make_graph(
        [helper.make_node(op, names, [f"o{i}" for i in range(outputs)], **attributes)], "g",
        [helper.make_tensor_value_info(n, kinds[x.dtype], x.shape) for n, x in feeds.items()],
        [helper.make_tensor_value_info(f"o{i}", TensorProto.FLOAT, None) for i in range(outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    if runtime:
        return InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    return ReferenceEvaluator(model).run(None, feeds)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinate", COORDINATES)
@pytest.mark.parametrize("sizes", [(7, 4), (2, 9), (1, 5)])
def test_resize(mode, coordinate, sizes):
    x = normal(1, 1, 4, 5)
    want, = reference("Resize", [x, None, None, np.array([1, 1, *sizes])], mode=mode,
                      coordinate_transformation_mode=coordinate)
    if coordinate == "pytorch_half_pixel" and sizes[0] == 1:    # at 0 says the operator's text, at -0.5 its reference
        want = reference("Resize", [x[:, :, :1], None, None, np.array([1, 1, *sizes])], mode=mode)[0]
    have = evaluate("resize", x, shape=(1, 1, *sizes), mode=mode, coordinate=coordinate)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_nearest_modes(nearest_mode):
    x = normal(1, 1, 4, 5)
    want, = reference("Resize", [x, None, None, np.array([1, 1, 8, 3])], mode="nearest", nearest_mode=nearest_mode)
    np.testing.assert_array_equal(evaluate("resize", x, shape=(1, 1, 8, 3), nearest_mode=nearest_mode), want)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("options", [{"antialias": 1}, {"exclude_outside": 1}])
def test_resize_filters(mode, options):
    x = normal(1, 1, 6, 8)
    scales = (1.0, 1.0, 0.6, 0.5)
    want, = reference("Resize", [x, None, np.array(scales, np.float32)], mode=mode, **options)
    have = evaluate("resize", x, shape=want.shape, scales=scales, mode=mode,
                    **{k: bool(v) for k, v in options.items()})
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


def test_resize_crop():
    x = normal(1, 1, 6, 8)
    roi = (0.0, 0.0, 0.4, 0.6, 1.0, 1.0, 1.2, 1.7)
    want, = reference("Resize", [x, np.array(roi, np.float32), None, np.array([1, 1, 3, 3])], mode="linear",
                      coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.0)
    have = evaluate("resize", x, shape=(1, 1, 3, 3), mode="linear", coordinate="tf_crop_and_resize", roi=roi,
                    extrapolation=10.0)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_resize_crop_of_taps_that_are_all_outside():
    with np.errstate(all="raise"):
        have = evaluate("resize", normal(1, 1, 4, 4), shape=(1, 1, 5, 5), mode="cubic", exclude_outside=True,
                        coordinate="tf_crop_and_resize", roi=(0, 0, -1.5, -1.5, 1, 1, 2.5, 2.5), extrapolation=9.0)
    assert (have[..., 0, :] == 9).all() and not np.isnan(have).any()


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(mode, padding, align):
    x, grid = normal(1, 2, 4, 5), (normal(1, 3, 3, 2) * 0.9)
    # ONNX's reference clamps the position, onnxruntime and torch each tap; they differ for cubic alone.
    want, = reference("GridSample", [x, grid], opset=20, mode=mode, padding_mode=padding, align_corners=align,
                      runtime=(mode, padding) == ("cubic", "border"))
    have = evaluate("grid_sample", x, grid, mode=mode, padding=padding, align_corners=bool(align))
    np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 2])
def test_roi_align(mode, samples):
    x = normal(2, 3, 10, 10)
    rois = np.array([[0, 0, 9, 9], [1.5, 2.5, 6, 7], [5, 5, 12, 12]], np.float32)
    batch = np.array([0, 1, 0])
    want, = reference("RoiAlign", [x, rois, batch], opset=16, mode=mode, output_height=3, output_width=4,
                      sampling_ratio=samples, spatial_scale=0.9)
    have = evaluate("roi_align", x, rois, batch, size=(3, 4), samples=samples, mode=mode, spatial_scale=0.9)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_deform_conv():
    x, w, offset, b, mask = normal(1, 4, 5, 6), normal(6, 2, 3, 3), normal(1, 36, 3, 4), normal(6), normal(1, 18, 3, 4)
    want, = reference("DeformConv", [x, w, offset, b, mask], group=2, offset_group=2, kernel_shape=[3, 3])
    have = evaluate("deform_conv", x, w, offset, b, mask, groups=2, offset_groups=2)
    np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-4)


def test_col2im():
    x = normal(1, 5 * 4, 12)
    want, = reference("Col2Im", [x, np.array([4, 5]), np.array([2, 2])], opset=18)
    np.testing.assert_allclose(evaluate("col2im", x, image=(4, 5), block=(2, 2)), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op, name, gates", [("LSTM", "lstm", 4), ("GRU", "gru", 3), ("RNN", "rnn", 1)])
def test_recurrent(op, name, gates):
    x, w, r, b = normal(5, 2, 3), normal(1, 4 * gates, 3), normal(1, 4 * gates, 4), normal(1, 8 * gates)
    outputs = 3 if op == "LSTM" else 2
    want = reference(op, [x, w, r, b], outputs, opset=14, hidden_size=4)
    for have, expected in zip(evaluate(name, x, w, r, b, *[None] * (4 if op == "LSTM" else 2)), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution(groups):
    x, w = normal(1, 4, 5, 5), normal(4, 3, 3, 3)
    want, = reference("ConvTranspose", [x, w], group=groups, strides=[2, 2], pads=[1, 1, 1, 1], opset=11, runtime=True)
    flipped = np.flip(w, (2, 3)).reshape(groups, 4 // groups, 3, 3, 3).swapaxes(1, 2).reshape(-1, 4 // groups, 3, 3)
    have = evaluate("convolution", x, flipped, low=(1, 1), high=(1, 1), lhs_dilation=(2, 2), groups=groups)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("layout", "order"), [("NCHW", (0, 1, 2, 3)), ("NHWC", (0, 2, 3, 1)), ("CHWN", (1, 2, 3, 0))])
def test_convolution(layout, order):
    x, w = normal(2, 4, 7, 6), normal(6, 2, 3, 2)
    want, = reference("Conv", [x, w], group=2, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], opset=11)
    filters = {"NCHW": ("OIHW", w), "NHWC": ("HWIO", w.transpose(2, 3, 1, 0)),
               "CHWN": ("GIHWO", w.reshape(2, 3, 2, 3, 2).transpose(0, 2, 3, 4, 1).reshape(4, 3, 2, 3))}
    name, rearranged = filters[layout]
    have = evaluate("convolution", x.transpose(order), rearranged, groups=2, strides=(2, 1), low=(1, 0), high=(2, 1),
                    rhs_dilation=(1, 2), layout=layout, filter=name)
    np.testing.assert_allclose(have.transpose(np.argsort(order)), want, rtol=1e-4, atol=1e-5)


def test_max_pool_indices():
    x = normal(1, 2, 5, 6)
    want = reference("MaxPool", [x], 2, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0], opset=12)
    have = evaluate("max_pool_with_indices", x, window=(3, 2), strides=(2, 2), low=(1, 0), high=(1, 0))
    np.testing.assert_array_equal(have[0], want[0])
    np.testing.assert_array_equal(np.take(x, have[1]), want[0])


def test_dft_and_lrn():
    x = normal(2, 8, 2)
    np.testing.assert_allclose(evaluate("dft", x, axis=1), reference("DFT", [x], axis=1, opset=17)[0], rtol=1e-4,
                               atol=1e-4)
    y = normal(1, 7, 3, 3)
    want, = reference("LRN", [y], size=5, alpha=0.2, opset=13, runtime=True)
    np.testing.assert_allclose(evaluate("lrn", y, size=5, alpha=0.2), want, rtol=1e-5, atol=1e-6)
