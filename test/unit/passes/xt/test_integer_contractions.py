"""Quantised contractions keep their numbers when they become contractions of bytes, whatever scales and zero points."""

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext, get_pass
from xcc.passes.xt.integer_contractions import IntegerContractions
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.cpu.chip import CHIPS as CPUS
from xcc.targets.nvptx.chip import chips
from xcc.weights import WeightStore

FEW = settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
LIMITS = {"ui8": (0, 255), "i8": (-128, 127)}
PACKED = {"unsigned left": CPUS["znver4"], "signed left": CPUS["neoverse-v1"]}
MATRIX = {"all signs": chips()["sm_90a"], "signed alone": CHIPS["gfx942"]}


def scalar(value, kind):
    return xt.constant(np.asarray(value), kind)


class Case:
    """Scales, zero points and bytes by a seed. `kinds`: types of left operand, weights and result."""

    def __init__(self, seed, kinds, channels, per_channel, symmetric=True):
        self.rng = np.random.default_rng(seed)
        self.kinds, self.channels, self.per_channel = kinds, channels, per_channel
        self.zx, self.zy = (int(self.rng.integers(*LIMITS[k])) for k in (kinds[0], kinds[2]))
        self.sx, self.sy = self.rng.uniform(0.01, 0.1), self.rng.uniform(0.5, 4)
        self.zw = (128 if kinds[1] == "ui8" else 0) + (0 if symmetric else int(self.rng.integers(-9, 9)))
        self.sw = self.rng.uniform(0.01, 0.1, channels if per_channel else ()).astype(np.float32)

    def bytes_of(self, kind, *shape):
        low, high = LIMITS[kind]
        return self.rng.integers(low, high + 1, shape).astype(np.uint8 if kind == "ui8" else np.int8)

    def input(self, x):
        return xt.dequantize(x, scalar(self.sx, "f32"), scalar(self.zx, self.kinds[0]), axis=0)

    def weight(self, name, shape, axis):
        zero = np.full(self.sw.shape, self.zw)
        return xt.dequantize(xt.weight(name, shape, self.kinds[1]), xt.constant(self.sw, "f32"),
                             xt.constant(zero, self.kinds[1]), axis=axis)

    def bias(self, integer, shape):
        values = self.rng.integers(-5000, 5000, self.channels).astype(np.int32)
        if not integer:
            return xt.reshape(xt.constant(values * np.float32(self.sx * 0.05), "f32"), shape=shape)
        scale = np.float32(self.sx) * self.sw
        return xt.reshape(xt.dequantize(xt.constant(values, "i32"), xt.constant(scale, "f32"), axis=0), shape=shape)

    def output(self, y, scale="f32", reciprocal=False):
        return xt.quantize(y, scalar(self.sy, scale), scalar(self.zy, self.kinds[2]), axis=0, dtype=self.kinds[2],
                           reciprocal=reciprocal)


def check(module, weights, x, sign="ui8", chip=None):
    """The pass leaves no contraction of floats, and results one step apart at most. x: one input, or a list."""
    inputs = x if isinstance(x, list) else [x]
    store = WeightStore()
    for name, value in weights.items():
        store.add(name, value)
    want = reference(module, inputs, weights)[0]
    context = PassContext(weights=store, chip=chip)
    for step in (IntegerContractions(activations=sign), get_pass("xt-fold")()):
        step.run(module, context)
    xt.verify(module)
    text = str(module)
    assert "dtype = i32" in text and "xt.quantize" not in text
    assert not [line for line in text.split("\n") if ("convolution" in line or "dot_general" in line) and "f32" in line]
    got = reference(module, inputs, {n: store[n] for n in store})[0]
    assert got.dtype == want.dtype
    assert np.abs(got.astype(int) - want.astype(int)).max(initial=0) <= 1
    assert (got == want).mean() > 0.98


kinds = st.tuples(*[st.sampled_from(["ui8", "i8"])] * 3)


@FEW
@given(st.integers(0, 1 << 16), kinds, st.integers(1, 7), st.integers(1, 5), st.booleans(), st.booleans(),
       st.integers(0, 2), st.integers(1, 2), st.booleans(), st.sampled_from(["ui8", "i8"]))
def test_convolutions(seed, kinds, inputs, outputs, per_channel, integer, pad, stride, relu, sign):
    case = Case(seed, kinds, outputs, per_channel)
    shape = (outputs, inputs, 3, 2)
    w = case.bytes_of(kinds[1], *shape)

    def build(x):
        y = xt.convolution(case.input(x), case.weight("w", shape, 0), low=(pad, 0), high=(pad, pad),
                           strides=(stride, 1))
        y = xt.add(y, case.bias(integer, (outputs, 1, 1)))
        return case.output(xt.maximum(y, scalar(0, "f32")) if relu else y)

    module = module_of(build, xt.TensorType((2, inputs, 6, 5), kinds[0]))
    check(module, {"w": w}, case.bytes_of(kinds[0], 2, inputs, 6, 5), sign)


@FEW
@given(st.integers(0, 1 << 16), kinds, st.integers(1, 17), st.integers(1, 9), st.booleans(), st.booleans(),
       st.booleans())
@example(1983, ("i8", "ui8", "ui8"), 11, 1, True, True, False)      # scales by channel of one channel, turned
def test_products(seed, kinds, depth, columns, per_channel, transposed, symmetric):
    """Transposed weights lie so, or an op turns them and their scales; results are scaled as ONNX does, or PyTorch."""
    case = Case(seed, kinds, columns, per_channel, symmetric)
    shape = (columns, depth) if transposed else (depth, columns)
    w = case.bytes_of(kinds[1], *shape)

    def build(x):
        w, turned = case.weight("w", shape, 0 if transposed else 1), transposed and seed % 2
        y = xt.dot_general(case.input(x), xt.transpose(w, perm=(1, 0)) if turned else w, lhs_contract=(2,),
                           rhs_contract=(1 if transposed and not turned else 0,))
        return case.output(xt.add(y, case.bias(True, (columns,))), "f64" if seed % 3 else "f32", bool(seed % 5))

    module = module_of(build, xt.TensorType((2, 3, depth), kinds[0]))
    check(module, {"w": w}, case.bytes_of(kinds[0], 2, 3, depth))


def test_a_sum_of_two_layers():
    """conv + conv, quantised once more: integers until the sum, one rounding."""
    rng = np.random.default_rng(3)
    weights = {n: rng.integers(-128, 128, (4, 3, 1, 1)).astype(np.int8) for n in "ab"}
    case = Case(5, ("i8", "i8", "i8"), 4, True)

    def layer(x, name):
        q = case.output(xt.convolution(case.input(x), case.weight(name, (4, 3, 1, 1), 0)))
        return xt.dequantize(q, scalar(case.sy, "f32"), scalar(case.zy, "i8"), axis=0)

    def build(x):
        total = xt.maximum(xt.add(layer(x, "a"), layer(x, "b")), scalar(0, "f32"))
        return xt.quantize(total, scalar(case.sy * 1.5, "f32"), scalar(-128, "i8"), axis=0, dtype="i8")

    module = module_of(build, xt.TensorType((1, 3, 5, 5), "i8"))
    check(module, weights, rng.integers(-128, 128, (1, 3, 5, 5)).astype(np.int8))
    assert str(module).count("xt.requantize") == 3


@pytest.mark.parametrize("zero", [0, 77, 255])
def test_integer_products_are_exact(zero):
    rng = np.random.default_rng(zero)
    w = rng.integers(0, 256, (21, 6)).astype(np.uint8)

    def build(x, z):
        a = xt.sub(xt.convert(x, dtype="i32"), xt.convert(z, dtype="i32"))
        b = xt.sub(xt.convert(xt.weight("w", (21, 6), "ui8"), dtype="i32"), scalar(119, "i32"))
        return xt.dot_general(a, b, lhs_contract=(1,), rhs_contract=(0,))

    module = module_of(build, xt.TensorType((5, 21), "ui8"), xt.TensorType((), "ui8"))
    store = WeightStore()
    store.add("w", w)
    arguments = [rng.integers(0, 256, (5, 21)).astype(np.uint8), np.asarray(zero, np.uint8)]
    want = reference(module, arguments, {"w": w})[0]
    IntegerContractions(activations="ui8").run(module, PassContext(weights=store))
    assert "tensor<21x6xi8>) -> tensor<5x6xi32>" in str(module)
    np.testing.assert_array_equal(reference(module, arguments, {"w": w})[0], want)


@pytest.mark.parametrize("chip", MATRIX)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kinds", [("ui8", "ui8", "ui8"), ("i8", "i8", "i8"), ("i8", "ui8", "ui8")], ids="".join)
def test_weights_with_zero_points(chip, kinds, groups):
    """Matrix instructions: convolutions whose weights have zero points, and sums of windows for them."""
    case = Case(1, kinds, 6, True, symmetric=False)
    shape = (6, 3 // groups, 3, 2)
    w = case.bytes_of(kinds[1], *shape)

    def build(x):
        y = xt.convolution(case.input(x), case.weight("w", shape, 0), low=(1, 0), high=(1, 1), groups=groups)
        return case.output(xt.add(y, case.bias(True, (6, 1, 1))))

    module = module_of(build, xt.TensorType((2, 3, 6, 5), kinds[0]))
    check(module, {"w": w}, case.bytes_of(kinds[0], 2, 3, 6, 5), "", MATRIX[chip])


@pytest.mark.parametrize("chip", [*MATRIX, *PACKED])
@pytest.mark.parametrize("kinds", [("ui8", "ui8", "ui8"), ("i8", "i8", "i8"), ("ui8", "i8", "i8")], ids="".join)
def test_products_of_activations(chip, kinds):
    """Neither side is a weight; several matrices at once."""
    case, other = Case(2, kinds, 1, False), Case(3, kinds[1:] + kinds[:1], 1, False)

    def build(x, y):
        product = xt.dot_general(case.input(x), other.input(y), lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,),
                                 rhs_contract=(2,))
        return case.output(product)

    module = module_of(build, xt.TensorType((2, 9, 20), kinds[0]), xt.TensorType((2, 4, 20), kinds[1]))
    inputs = [case.bytes_of(kinds[0], 2, 9, 20), case.bytes_of(kinds[1], 2, 4, 20)]
    check(module, {}, inputs, "", (MATRIX | PACKED)[chip])
