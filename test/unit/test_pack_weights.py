"""Packed weights: the numbers stay, in xt and in compiled code."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.pack import PackWeights, pack_columns
from xcc.symbolic import sym
from xcc.weights import WeightStore

RNG = np.random.default_rng(0)
N = sym("n")


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
