"""Packed weights: the numbers stay, in xt and in compiled code."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.shared.packing import tile_groups, tile_step
from xcc.passes.xt.pack_weights import PackWeights
from xcc.passes.xt.products.panels import pack_columns, panel_width
from xcc.passes.xt.widen_products import WidenProducts
from xcc.symbolic import sym
from xcc.targets.cpu.chip import CHIPS
from xcc.weights import WeightStore

RNG = np.random.default_rng(0)
N, M = sym("n"), sym("m")


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_pack_columns():
    w = np.arange(10.0).reshape(2, 5)
    np.testing.assert_array_equal(pack_columns(w, 3), [[[0, 1, 2], [5, 6, 7]], [[3, 4, 0], [8, 9, 0]]])


CASES = {
    "matrix": ((N, 6), (6, 11), lambda x, w: xt.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))),
    "transposed": ((2, N, 6), (11, 6), lambda x, w: xt.dot_general(x, w, lhs_contract=(2,), rhs_contract=(1,))),
    "filter": ((N, 7, 7, 3), (3, 3, 3, 8), lambda x, w: xt.convolution(x, w, layout="NHWC", filter="HWIO",
                                                                         strides=(2, 2))),
}


@pytest.mark.parametrize("case", CASES)
def test_numbers_stay(case):
    shape, weight, make = CASES[case]
    store = WeightStore()
    w = data(*weight)
    store.add("w", w)
    module = module_of(lambda x: make(x, xt.weight("w", weight, "f32")), xt.TensorType(shape, "f32"))
    x = data(*(5 if d is N else d for d in shape))
    want = reference(module, [x], {"w": w})
    PackWeights(width=4).run(module, PassContext(weights=store))
    xt.verify(module)
    text = str(module)
    assert "OHWIo" in text or "packed_matmul" in text
    got = reference(module, [x], {n: store[n] for n in store})
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("k", [0, 1])
def test_what_a_loop_multiplies_with_is_packed_before_it(k):
    """Once, however it lies, and the last panel filled up."""
    def body(x, w, _):
        w = xt.mul(w, w)
        return xt.scan([x], [], lambda carried, _: ([xt.dot_general(carried[0], w, lhs_contract=(1,),
                                                                    rhs_contract=(k,))], []), length=N)[0]

    module = module_of(body, xt.TensorType((3, 6), "f32"), xt.TensorType((6, 6), "f32"), xt.TensorType((N,), "f32"))
    inputs = [data(3, 6), data(6, 6) / 3, data(4)]
    want = reference(module, inputs)
    PackWeights(width=4).run(module, PassContext())
    xt.verify(module)
    loop = str(module).index("xtv.scan")
    assert str(module).index("xt.transpose") < loop < str(module).index("xt.packed_matmul")
    np.testing.assert_allclose(reference(module, inputs)[0], want[0], rtol=1e-4, atol=1e-5)


def bytes_of(kind, *shape):
    low, high = (0, 256) if kind == "ui8" else (-128, 128)
    return RNG.integers(low, high, shape).astype(np.uint8 if kind == "ui8" else np.int8)


def drawn(kind, *shape):
    return bytes_of(kind, *shape) if "i8" in kind else data(*shape).astype(xt.numpy_dtype(kind))


GROUPED = {
    "matrix": ((N, 6), (6, 11), lambda x, w, t: xt.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,), dtype=t)),
    "transposed": ((2, N, 7), (3, 7), lambda x, w, t: xt.dot_general(x, w, lhs_contract=(2,), rhs_contract=(1,),
                                                                     dtype=t)),
    "filter": ((N, 7, 7, 3), (3, 3, 3, 8), lambda x, w, t: xt.convolution(x, w, layout="NHWC", filter="HWIO", dtype=t,
                                                                          strides=(2, 2))),
    "filter of seven": ((N, 7, 7, 4), (3, 3, 4, 7), lambda x, w, t: xt.convolution(x, w, layout="NHWC", filter="HWIO",
                                                                                   dtype=t)),
    "long sums": ((N, 67), (67, 5), lambda x, w, t: xt.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,),
                                                                    dtype=t)),
    "wide filter": ((1, 4, 4, 8), (1, 2, 8, 2), lambda x, w, t: xt.convolution(x, w, layout="NHWC", filter="HWIO",
                                                                               dtype=t, rhs_dilation=(1, 2))),
}


@pytest.mark.parametrize("case", GROUPED)
@pytest.mark.parametrize("chip", ["znver4", "sapphirerapids"])
@pytest.mark.parametrize("kinds", [("ui8", "i8", "i32"), ("i8", "i8", "i32"), ("bf16", "bf16", "bf16")])
@pytest.mark.parametrize("computed", [False, True])
def test_numbers_stay_in_groups(case, kinds, chip, computed):
    """Groups of bytes (of either sign on the left) and pairs of bf16, filled with zeros where a dim is no multiple."""
    shape, weight, make = GROUPED[case]
    store = WeightStore()
    w = drawn(kinds[1], *weight)
    store.add("w", w)
    types = [xt.TensorType(shape, kinds[0]), *[xt.TensorType(weight, kinds[1])] * computed]
    module = module_of(lambda x, *y: make(x, *(y or (xt.weight("w", weight, kinds[1]),)), kinds[2]), *types)
    arguments = [drawn(kinds[0], *(5 if d is N else d for d in shape)), *[w] * computed]
    want = reference(module, arguments, {"w": w})
    PackWeights(width=4, dot=("vnni", "sdot", "bf16")).run(module, PassContext(weights=store, chip=CHIPS[chip]))
    xt.verify(module)
    assert "OHWIoi" in str(module) or "packed_matmul" in str(module) or computed and chip == "znver4"
    got = reference(module, arguments, {n: store[n] for n in store})
    np.testing.assert_allclose(got[0].astype(np.float64), want[0].astype(np.float64), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("case", ["matrix", "transposed", "filter"])
def test_halves_that_are_decoded(case):
    """Weights of f16 that many rows multiply: they stay so, in panels where these take few columns more."""
    shape, (*dims, _), make = CASES["filter" if case == "filter" else "matrix"]
    weight, store = (*dims, 40), WeightStore()
    w = drawn("f16", *weight[::-1] if case == "transposed" else weight)
    store.add("w", w)

    def build(x):
        y = xt.weight("w", w.shape, "f16")
        return xt.dot_general(x, y, lhs_contract=(1,), rhs_contract=(1,)) if case == "transposed" else make(x, y)

    module = module_of(build, xt.TensorType(shape, "f16"))
    x = drawn("f16", *(9 if d is N else d for d in shape))
    want = reference(module, [x], {"w": w})
    for p in (WidenProducts(), PackWeights(width=16)):
        p.run(module, PassContext(weights=store, chip=CHIPS["x86-64-v3"]))
    xt.verify(module)
    assert ("OHWIo" if case == "filter" else "packed_matmul") in str(module) and "x8xf16>" in str(module)
    got = reference(module, [x], {n: store[n] for n in store})
    np.testing.assert_allclose(got[0].astype(np.float64), want[0].astype(np.float64), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("groups, filled, step", [
    (1, 1, 1), (11, 11, 11), (16, 16, 16), (17, 18, 9), (24, 24, 12), (125, 128, 16), (195, 195, 15), (389, 400, 16)])
def test_groups_that_fill_tile_registers(groups, filled, step):
    assert (tile_groups(groups), tile_step(filled)) == (filled, step)


@pytest.mark.parametrize("groups, columns, filled", [
    (250, 1000, 256), (250, 100, 250), (256, 1000, 256), (24, 1000, 24)])
def test_groups_are_filled_for_many_columns(groups, columns, filled):
    """A step less for each row and column is worth a copy of the rows."""
    assert tile_groups(groups, columns) == filled


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 2, 3, 1)])
@pytest.mark.parametrize("columns, depth, summed", [(5, 6, 3), (5, 7, 3), (5, 6, 2), (M, 6, 3), (5, M, 3), (M, M, 2)])
@pytest.mark.parametrize("chip", ["znver4", "sapphirerapids"])
def test_computed_operands_are_grouped(order, columns, depth, summed, chip):
    """The right of two activations goes into groups, in blocks where the sum's length is not known, for tile registers
    in panels, and where neither size is known; a transpose before it becomes part of its own. The left one is summed
    along its last dims."""
    store, contract = WeightStore(), 3 if order == (0, 2, 1, 3) else 2
    left = [2, 3, N, N]
    left[summed] = depth

    def build(x, y):
        return xt.dot_general(x, xt.transpose(y, perm=order), lhs_batch=(0, 1), rhs_batch=(0, 1),
                              lhs_contract=(summed,), rhs_contract=(contract,))

    module = module_of(build, xt.TensorType(tuple(left), "bf16"), xt.TensorType((2, columns, 3, depth), "bf16"))
    sizes = {N: 4, M: 5}
    arguments = [drawn("bf16", *(sizes.get(d, d) for d in dims)) for dims in (left, (2, columns, 3, depth))]
    want = reference(module, arguments, {})
    PackWeights(width=32, dot=("bf16",)).run(module, PassContext(weights=store, chip=CHIPS[chip]))
    xt.verify(module)
    panels, blocks = ("1x", "16x") if columns == 5 else ("?x", "32x"), "?x16x" if depth is M else f"{-(-depth // 2)}x"
    if chip == "znver4" and not columns is depth is M:
        panels = ("", "5x" if columns == 5 else "?x")
    assert f"tensor<2x3x{panels[0]}{blocks}{panels[1]}2xbf16" in str(module)
    in_parts = chip == "sapphirerapids" and columns == 5 and depth is M and summed == 3
    assert str(module).count("xt.transpose") == 1 + (summed == 2) + in_parts
    got = reference(module, arguments, {})
    np.testing.assert_allclose(got[0].astype(np.float64), want[0].astype(np.float64), rtol=1e-2, atol=1e-2)


SIDES = [((N, 64), (100, 64), 0, 1), ((5, 64), (100, 64), 1, 1), ((5, 71), (100, 71), 1, 2),
         ((2, 3, 71), (M, 71), 1, 2), ((100, 64), (5, 64), 0, 1), ((100, 71), (5, 71), 0, 2), ((5, M), (N, M), 1, 2),
         ((100, 71), (90, 71), 0, 1), ((100, 500), (64, 500), 0, 1)]
"""The shapes of two inputs whose rows are multiplied, whether their sides are exchanged, and the products there are."""


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("left, right, exchanged, products", SIDES)
@pytest.mark.parametrize("chip", ["znver4", "sapphirerapids"])
def test_the_smaller_side_goes_into_panels(left, right, exchanged, products, chip, batch):
    """Of two inputs that lie along the sum, for tile registers; rows of the other one are not filled up with zeros
    where they are long."""
    left, right, b = (*batch, *left), (*batch, *right), len(batch)
    module = module_of(lambda x, y: xt.dot_general(
        x, y, lhs_batch=(0,) * b, rhs_batch=(0,) * b, lhs_contract=(len(left) - 1,), rhs_contract=(b + 1,)),
        xt.TensorType(left, "bf16"), xt.TensorType(right, "bf16"))
    arguments = [drawn("bf16", *({N: 4, M: 67}.get(d, d) for d in dims)) for dims in (left, right)]
    want = reference(module, arguments, {})
    PackWeights(width=32, dot=("bf16",)).run(module, PassContext(weights=WeightStore(), chip=CHIPS[chip]))
    xt.verify(module)
    if chip == "sapphirerapids":
        lines = [line for line in str(module).splitlines() if "xt.packed_matmul" in line]
        columns = {tuple(line.split("columns = [")[1].split("]")[0].split()) for line in lines}
        assert len(lines) == products and len(columns) == 1
        first = lines[0].split(" : (tensor<")[1].split("x")[b]      # rows of the left side
        assert (first == ("?" if right[b] in (N, M) else str(right[b]))) == bool(exchanged)
    got = reference(module, arguments, {})
    np.testing.assert_allclose(got[0].astype(np.float64), want[0].astype(np.float64), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("columns, most, width", [
    (16, 32, 16), (24, 32, 32), (48, 32, 48), (80, 32, 32), (96, 32, 32), (144, 32, 48), (768, 32, 32), (1000, 32, 32)])
def test_panels_leave_few_columns_unused(columns, most, width):
    assert panel_width(columns, most) == width
    assert panel_width(columns, most, thirds=False) in (16, 32)


@pytest.mark.parametrize("batch", [1, N])
@pytest.mark.parametrize("image, reader, packed", [
    ((6, 7), None, True), ((6, 7), "tanh", True), ((6, 7), "softmax", False), ((2, 2), None, False)])
def test_scales_of_channels_go_into_fewer_weights(batch, image, reader, packed):
    """Squeeze and excite: an image times a scale of each channel, then a product, and maybe another reader."""
    store = WeightStore()
    store.add("w", data(5, 11))

    def build(x, s):
        y = xt.mul(x, s)
        p = xt.dot_general(y, xt.weight("w", (5, 11), "f32"), lhs_contract=(3,), rhs_contract=(0,))
        return (p, getattr(xt, reader)(y, **({"axis": 3} if reader == "softmax" else {}))) if reader else p

    module = module_of(build, xt.TensorType((batch, *image, 5), "f32"), xt.TensorType((batch, 1, 1, 5), "f32"))
    n = 1 if batch == 1 else 3
    arguments = [data(n, *image, 5), data(n, 1, 1, 5)]
    want = reference(module, arguments, {"w": store["w"]})
    PackWeights(width=4).run(module, PassContext(weights=store))
    xt.verify(module)
    products = [line for line in str(module).splitlines() if "xt.mul" in line]
    assert any("x3x5x4xf32" in line for line in products) == packed and len(products) == 1 + (reader == "tanh")
    assert ("batch = 1" in str(module)) == (packed and n > 1)
    got = reference(module, arguments, {k: store[k] for k in store})
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)


KEYS = {"stored": lambda k: k, "transposed": lambda k: xt.transpose(k, perm=(0, 2, 1, 3))}


@pytest.mark.parametrize("made", KEYS)
@pytest.mark.parametrize("rows", [N, 5])
def test_queries_times_keys(made, rows):
    """The keys get to lie row by row: by the transpose that makes them, or by one more where many rows pay for it."""
    shape = (2, 3, 7, 6) if made == "stored" else (2, 7, 3, 6)
    module = module_of(lambda q, k: xt.dot_general(q, KEYS[made](k), lhs_batch=(0, 1), rhs_batch=(0, 1),
                                                   lhs_contract=(3,), rhs_contract=(3,)),
                       xt.TensorType((2, 3, rows, 6), "f32"), xt.TensorType(shape, "f32"))
    q, k = data(2, 3, 5, 6), data(*shape)
    want = reference(module, [q, k])
    PackWeights(width=4).run(module, PassContext(weights=WeightStore()))
    xt.verify(module)
    assert str(module).count("xt.transpose") == (0 if made == "stored" and rows == 5 else 1)
    assert ("rhs_contract = [2]" in str(module)) == (made == "transposed" or rows == N)
    np.testing.assert_allclose(reference(module, [q, k])[0], want[0], rtol=1e-5, atol=1e-5)
