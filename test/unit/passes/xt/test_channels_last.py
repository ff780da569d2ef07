"""Channels last: where transposes are left, and that numbers stay."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.channels_last import ChannelsLast
from xcc.symbolic import sym
from xcc.weights import WeightStore

RNG = np.random.default_rng(0)
N = sym("n")


def f32(*shape):
    return xt.TensorType(shape, "f32")


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def conv(x, name, o, i, k=3, rank=4, **kwargs):
    w = xt.weight(name, (o, i, *[k] * (rank - 2)), "f32")
    return xt.convolution(x, w, low=[k // 2] * (rank - 2), high=[k // 2] * (rank - 2), **kwargs)


def check(build, types, inputs, weights, **options):
    """Runs the pass, compares numbers, returns the names of the ops left."""
    store = WeightStore()
    for name, value in weights.items():
        store.add(name, value)
    module = module_of(build, *types)
    want = reference(module, inputs, weights)
    ChannelsLast(**options).run(module, PassContext(weights=store))
    xt.verify(module)
    got = reference(module, inputs, {n: store[n] for n in store})
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    ops = module.body.operations[0].regions[0].blocks[0].operations
    names = [o.operation.name.partition(".")[2] for o in ops]
    return [n for n in names if n not in ("weight", "return", "constant")]


def block(x, name, o, i, **kwargs):
    y = conv(x, name, o, i, **kwargs)
    bias = xt.weight(name + "b", (o, 1, 1), "f32")
    return xt.maximum(xt.add(y, bias), xt.scalar(0.0, "f32"))


@pytest.mark.parametrize("packed", [0, 4])
def test_transposes_meet(packed):
    def build(x):
        y = block(x, "a", 8, 3)
        z = xt.add(block(block(y, "b", 8, 8), "c", 8, 8), y)
        p = xt.reduce_window(z, kind="max", window=(1, 1, 3, 3), strides=(1, 1, 2, 2), low=(0, 0, 1, 1),
                             high=(0, 0, 1, 1))
        return xt.reduce(p, kind="sum", axes=(2, 3))
    weights = {"a": data(8, 3, 3, 3), "b": data(8, 8, 3, 3), "c": data(8, 8, 3, 3)}
    weights |= {n + "b": data(8, 1, 1) for n in "abc"}
    names = check(build, [f32(N, 3, 9, 7)], [data(2, 3, 9, 7)], weights, block=packed)
    assert names.count("transpose") == 1
    assert names.count("convolution") == 3


def test_pointwise_convolution_is_a_matmul():
    names = check(lambda x: conv(x, "a", 5, 3, k=1), [f32(N, 3, 4, 5)], [data(2, 3, 4, 5)], {"a": data(5, 3, 1, 1)})
    assert names == ["transpose", "reshape", "dot_general", "transpose"]


@pytest.mark.parametrize("rank", [3, 5])
def test_other_ranks(rank):
    size = (4, 5, 6)[:rank - 2]
    names = check(lambda x: xt.exp(conv(x, "a", 5, 3, rank=rank)), [f32(N, 3, *size)], [data(2, 3, *size)],
                  {"a": data(5, 3, *[3] * (rank - 2))})
    assert names == ["transpose", "convolution", "exp", "transpose"]


def test_depthwise_concatenate_pad_and_slice():
    def build(x):
        y = conv(x, "a", 4, 1, groups=4, strides=(2, 2))
        z = xt.concatenate(y, xt.exp(y), axis=1)
        z = xt.pad(z, low=(0, 0, 1, 0), high=(0, 0, 0, 2))
        return conv(xt.slice(z, starts=(0, 2, 0, 1), limits=(N, 8, 4, 5)), "b", 2, 6)
    names = check(build, [f32(N, 4, 6, 8)], [data(2, 4, 6, 8)], {"a": data(4, 1, 3, 3), "b": data(2, 6, 3, 3)})
    assert names.count("transpose") == 2


def test_resize():
    def build(x):
        y = xt.resize(conv(x, "a", 4, 3), shape=(N, 4, 8, 10), mode="linear", scales=(1.0, 1.0, 2.0, 2.0))
        return conv(y, "b", 2, 4)
    names = check(build, [f32(N, 3, 4, 5)], [data(2, 3, 4, 5)], {"a": data(4, 3, 3, 3), "b": data(2, 4, 3, 3)})
    assert names == ["transpose", "convolution", "resize", "convolution", "transpose"]


def test_a_large_stranger_keeps_the_layout():
    def build(x, r, s):
        return xt.select(xt.compare(r, s, direction="lt"), conv(x, "a", 4, 3), r)
    names = check(build, [f32(2, 3, 4, 4), f32(2, 4, 4, 4), f32(2, 4, 4, 4)],
                  [data(2, 3, 4, 4), data(2, 4, 4, 4), data(2, 4, 4, 4)], {"a": data(4, 3, 3, 3)})
    assert names == ["compare", "transpose", "convolution", "transpose", "select"]


def test_filters_that_are_no_weights():
    def build(x, w):
        return xt.convolution(x, w)
    for packed in (0, 2):
        names = check(build, [f32(2, 3, 4, 4), f32(4, 3, 3, 3)], [data(2, 3, 4, 4), data(4, 3, 3, 3)], {}, block=packed)
        assert names.count("transpose") == 3
