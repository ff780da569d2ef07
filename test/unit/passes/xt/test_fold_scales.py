"""Factors and terms that are weights go into filters and biases."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.pipeline import Pipeline
from xcc.passes.xt.fold_scales import FoldScales
from xcc.passes.xt.xt_fold import XtFold
from xcc.symbolic import sym
from xcc.targets.front import front_stages
from xcc.weights import WeightStore

RNG = np.random.default_rng(0)
N = sym("n")


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(build, shape, inputs, weights):
    store = WeightStore()
    for name, value in weights.items():
        store.add(name, value)
    module = module_of(build, xt.TensorType(shape, "f32"))
    want = reference(module, inputs, weights)
    for p in (FoldScales(), XtFold()):
        p.run(module, PassContext(weights=store))
    xt.verify(module)
    got = reference(module, inputs, {n: store[n] for n in store})
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    ops = module.body.operations[0].regions[0].blocks[0].operations
    names = [o.operation.name.partition(".")[2] for o in ops]
    return [n for n in names if n not in ("weight", "return", "constant")]


def batch_norm(y, shape):
    scale, bias, mean, var = (xt.reshape(xt.weight(n, (4,), "f32"), shape=shape) for n in ("s", "b", "m", "v"))
    factor = xt.mul(scale, xt.rsqrt(xt.add(var, xt.scalar(1e-3, "f32"))))
    return xt.add(xt.mul(y, factor), xt.sub(bias, xt.mul(mean, factor)))


NORM = {"s": data(4), "b": data(4), "m": data(4), "v": np.abs(data(4))}


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(("layout", "filter"), [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_batch_norm_behind_convolution(layout, filter, with_bias):
    channel = (4, 1, 1) if layout == "NCHW" else (4,)
    w = (4, 3, 3, 3) if filter == "OIHW" else (3, 3, 3, 4)

    def build(x):
        y = xt.convolution(x, xt.weight("w", w, "f32"), layout=layout, filter=filter)
        if with_bias:
            y = xt.add(y, xt.reshape(xt.weight("c", (4,), "f32"), shape=channel))
        return batch_norm(y, channel)
    shape = (3, 5, 5) if layout == "NCHW" else (5, 5, 3)
    names = check(build, (N, *shape), [data(2, *shape)], {"w": data(*w), "c": data(4)} | NORM)
    assert names == ["convolution", "add"]


def test_batch_norm_behind_matmul():
    def build(x):
        y = xt.dot_general(x, xt.weight("w", (3, 4), "f32"), lhs_contract=(1,), rhs_contract=(0,))
        return batch_norm(y, (4,))
    assert check(build, (N, 3), [data(2, 3)], {"w": data(3, 4)} | NORM) == ["dot_general", "add"]


def test_a_shared_result_is_not_scaled():
    def build(x):
        y = xt.dot_general(x, xt.weight("w", (3, 4), "f32"), lhs_contract=(1,), rhs_contract=(0,))
        return xt.mul(y, xt.weight("s", (4,), "f32")), y
    assert check(build, (N, 3), [data(2, 3)], {"w": data(3, 4)} | NORM) == ["dot_general", "mul"]


def test_scaled_filters_are_rounded_once():
    """In f16 the filter is the f32 product of filter and scale, rounded; not the product of rounded factors."""
    def build(x):
        return batch_norm(xt.convolution(x, xt.weight("w", (4, 3, 3, 3), "f32")), (4, 1, 1))

    store, values = WeightStore(), {"w": data(4, 3, 3, 3)} | NORM
    for name, value in values.items():
        store.add(name, value)
    module = module_of(build, xt.TensorType((1, 3, 5, 5), "f32"))
    Pipeline(front_stages()).upto("xt").run(module, PassContext(
        weights=store, options=CompileOptions(target="cpu", precision="f16")))
    found = next(o.operation for o in module.body.operations[0].regions[0].blocks[0].operations
                 if o.operation.name.endswith(".convolution"))
    filter_ = np.asarray(xt.attrs_of(found.operands[1].owner.operation).value)
    factor = NORM["s"] / np.sqrt(NORM["v"].astype(np.float64) + 1e-3)
    exact = values["w"].astype(np.float64) * factor[:, None, None, None]
    assert filter_.dtype == np.float16 and xt.attrs_of(found).filter == "HWIO"
    error = np.abs(filter_.astype(np.float64).transpose(3, 2, 0, 1) / exact - 1).max()
    assert error < 2.0 ** -11 * 1.001       # one rounding; two rounded factors give up to three times that
