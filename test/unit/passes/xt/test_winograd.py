"""Convolutions in Winograd's form: the identity, where it is chosen, and numbers in xt and in compiled code."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from kernel_cases import module_of, reference
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc.dialects import xt
from xcc.dialects.xt.winograd import POINTS, winograd_matrices
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.linalg.kernel.kernel import Kernel, Tensor
from xcc.passes.linalg.schedule.neighbours import neighbours
from xcc.passes.linalg.schedule.schedule import CpuPart, Kept, Schedule
from xcc.passes.xt.winograd import Form, Shape, Winograd, affordable, best_chunks, direct_seconds
from xcc.symbolic import sym
from xcc.targets.cpu.chip import CHIPS
from xcc.weights import WeightStore

RNG = np.random.default_rng(0)
ZEN5 = replace(CHIPS["znver5"], cores=2)


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("tile", POINTS)
def test_matrices_convolve(tile):
    output, weight, image = winograd_matrices(tile)
    w, x = RNG.standard_normal(3), RNG.standard_normal(tile + 2)
    got = output @ ((weight @ w) * (image @ x))
    np.testing.assert_allclose(got, np.correlate(x, w, "valid"), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tile", POINTS)
@pytest.mark.parametrize("image, low, high", [
    ((8, 8), (1, 1), (1, 1)), ((9, 6), (0, 0), (0, 0)), ((3, 7), (1, 0), (2, 1))])
def test_numbers_stay(tile, image, low, high):
    store = WeightStore()
    store.add("w", data(3, 3, 5, 6))
    n = sym("n")
    module = module_of(lambda x: xt.convolution(x, xt.weight("w", (3, 3, 5, 6), "f32"), layout="NHWC", filter="HWIO",
                                                low=low, high=high), xt.TensorType((n, *image, 5), "f32"))
    x = data(2, *image, 5)
    want = reference(module, [x], {"w": store["w"]})
    Winograd(tile=tile).run(module, PassContext(weights=store, chip=ZEN5))
    xt.verify(module)
    assert "xt.convolution" not in str(module)
    np.testing.assert_allclose(reference(module, [x], {k: store[k] for k in store})[0], want[0], rtol=1e-4, atol=2e-5)


def rewritten(w=(3, 3, 64, 64), dtype="f32", options=None, **attributes):
    """Whether the pass changes a convolution of a 56 x 56 image."""
    store = WeightStore()
    attributes = {"low": (1, 1), "high": (1, 1), "filter": "HWIO", **attributes}
    module = module_of(lambda x: xt.convolution(x, xt.weight("w", w, dtype), layout="NHWC", **attributes),
                       xt.TensorType((1, 56, 56, w[2] * attributes.get("groups", 1)), dtype))
    Winograd().run(module, PassContext(weights=store, chip=ZEN5, options=options))
    return "winograd_convolution" in str(module)


def test_what_is_left_alone():
    assert rewritten()
    assert not rewritten(strides=(2, 2))
    assert not rewritten(rhs_dilation=(2, 2))
    assert not rewritten(groups=2)
    assert not rewritten((5, 5, 64, 64))
    assert not rewritten(dtype="f16")
    assert not rewritten(low=(-1, -1))
    assert not rewritten(options=CompileOptions(winograd=False))
    assert not rewritten((3, 3, 2048, 64))      # a row of tiles is more than a thread's stack holds


def test_choice():
    """Large images take tiles of 4; larger filters that have to come from memory for a few tiles do not pay."""
    def best(size, channels):
        form = Shape(1, size, size, channels, channels, 32)
        times = {1: direct_seconds(form, ZEN5)} | {m: best_chunks(form, m, ZEN5).seconds for m in POINTS}
        return min(times, key=times.__getitem__)

    assert [best(56, 64), best(28, 128), best(14, 256), best(7, 512), best(3, 512)] == [4, 4, 4, 2, 1]


def test_bytes_of_filters():
    """What all filters may grow by goes to those that save most time for each byte; a step may be taken back for a
    larger one."""
    first, second = [Form(0, 9.0, 0), Form(2, 6.0, 10), Form(4, 5.0, 40)], [Form(0, 9.0, 0), Form(2, 4.0, 20)]
    assert [affordable([first, second], n) for n in (5, 15, 25, 35, 65)] == [[0, 0], [2, 0], [2, 0], [2, 2], [4, 2]]
    assert affordable([[Form(0, 1.0, 0), Form(2, 2.0, 0)]], 100) == [0]
    assert affordable([], 100) == []


def test_module_shares_the_bytes():
    """Of two equal convolutions one is rewritten where the bytes serve one."""
    module = module_of(lambda x: xt.convolution(
        xt.convolution(x, xt.weight("v", (3, 3, 64, 64), "f32"), layout="NHWC", low=(1, 1), high=(1, 1), filter="HWIO"),
        xt.weight("w", (3, 3, 64, 64), "f32"), layout="NHWC", low=(1, 1), high=(1, 1), filter="HWIO"),
        xt.TensorType((1, 56, 56, 64), "f32"))
    store = WeightStore()
    Winograd(added=4 * 64 * 64 * 7).run(module, PassContext(weights=store, chip=ZEN5, options=None))
    assert str(module).count("winograd_convolution") == 1 and str(module).count("xt.convolution") == 1


def conv_model(height, width, channels, outputs):
    """Two convolutions with biases; the first one's result is also added to the second's."""
    w = [data(outputs, channels, 3, 3), data(outputs, outputs, 3, 3)]
    bias = [data(outputs), data(outputs)]
    node = helper.make_node
    nodes = [node("Conv", ["x", "w0", "b0"], ["c"], pads=[1] * 4), node("Relu", ["c"], ["r"]),
             node("Conv", ["r", "w1", "b1"], ["d"], pads=[1] * 4), node("Add", ["d", "r"], ["s"]),
             node("Relu", ["s"], ["y"])]
    weights = {"w0": w[0], "w1": w[1], "b0": bias[0], "b1": bias[1]}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, height, width))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model), weights


def convolved(x, w):
    """In f64, zeros around."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64), optimize=True)


@pytest.mark.parametrize("tile", POINTS)
@pytest.mark.parametrize("height, width, channels, outputs", [(8, 12, 16, 40), (7, 9, 5, 24)])
def test_compiled_error(tmp_path, tile, height, width, channels, outputs):
    """Against f64, relative to the largest result: at most 1e-5 with random weights."""
    model, weights = conv_model(height, width, channels, outputs)
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    pipeline = xcc.targets.get("cpu").pipeline().replace("winograd", Winograd(tile=tile))
    x = data(1, channels, height, width)
    got = xcc.compile(path, pipeline=pipeline, isolate=False)(x)
    got = got[0] if isinstance(got, (tuple, list)) else got
    b = [weights[k].astype(np.float64).reshape(1, -1, 1, 1) for k in ("b0", "b1")]
    first = np.maximum(convolved(x, weights["w0"]) + b[0], 0)
    want = np.maximum(convolved(first, weights["w1"]) + b[1] + first, 0)
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("tile", POINTS)
def test_images_of_any_size(tmp_path, tile):
    """One artifact for all heights and widths: fewer than a tile, tiles that are not filled, several chunks."""
    model, weights = conv_model("h", "w", 6, 20)
    onnx.save(model, str(tmp_path / "m.onnx"))
    pipeline = xcc.targets.get("cpu").pipeline().replace("winograd", Winograd(tile=tile))
    compiled = xcc.compile(tmp_path / "m.onnx", pipeline=pipeline, isolate=False)
    assert any("winograd" in t.kernel for t in compiled.profile({"x": data(1, 6, 4, 4)}))
    b = [weights[k].astype(np.float64).reshape(1, -1, 1, 1) for k in ("b0", "b1")]
    for height, width in ((1, 1), (5, 2), (8, 30), (19, 63)):
        x = data(1, 6, height, width)
        first = np.maximum(convolved(x, weights["w0"]) + b[0], 0)
        want = np.maximum(convolved(first, weights["w1"]) + b[1] + first, 0)
        assert np.abs(compiled(x) - want).max() <= 1e-5 * np.abs(want).max()


def test_tuning_keeps_tiles_whole():
    """Another number of rows in a tile would read the constant matrices at places that are not known."""
    base = Schedule((8, 0, 0), (4, 4, 16), (0, 1, 2), cpu=CpuPart(kept=(Kept(1, (6, 6, 1, 1, 16), (2, 3, 0, 1, 4)),)))
    kernel = Kernel("k", [], [Tensor(None, (56, 56, 64), None)], [], {}, None)
    found = neighbours(kernel, base, ZEN5)
    assert found and all(s.vector[:2] == (4, 4) and s.block[0] % 4 == 0 and s.cpu == base.cpu for s in found)


def test_filters_grow_when_loaded(tmp_path):
    """The artifact holds each filter once, as it is; a kernel of the setup makes the larger one, once."""
    model, weights = conv_model(8, 8, 64, 64)
    onnx.save(model, str(tmp_path / "m.onnx"))
    pipeline = xcc.targets.get("cpu").pipeline().replace("winograd", Winograd(tile=4))
    compiled = xcc.compile(tmp_path / "m.onnx", pipeline=pipeline, isolate=False)
    program = compiled.artifact.program
    assert len(program.setup) == 2
    kept = [i for i, b in enumerate(program.buffers) if b.kind == "kept"]
    assert sum(map(program.nbytes, kept)) == 2 * 4 * 36 * 64 * 64
    assert sum(w.nbytes for w in compiled.artifact.weights.values()) <= sum(w.nbytes for w in weights.values()) + 8192
    assert not any(t.kernel in {s.kernel for s in program.setup} for t in compiled.profile({"x": data(1, 64, 8, 8)}))
