"""Transposed convolutions as products: the numbers stay."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.transposed_convolution import TransposedConvolution
from xcc.symbolic import sym

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("steps", [(2,), (2, 2), (3, 2)])
def test_numbers_stay(steps):
    rank = len(steps)
    spatial = (sym("h"), 5)[:rank]
    pads = tuple(s - 1 for s in steps)

    def build(x, w):
        return xt.convolution(x, w, layout="NHWC", filter="HWIO", lhs_dilation=steps, low=pads, high=pads)
    module = module_of(build, xt.TensorType((1, *spatial, 4), "f32"), xt.TensorType((*steps, 4, 3), "f32"))
    inputs = [RNG.standard_normal(s).astype(np.float32) for s in ((1, *(4, 5)[:rank], 4), (*steps, 4, 3))]
    want = reference(module, inputs, {})
    TransposedConvolution().run(module, PassContext())
    xt.verify(module)
    assert "xt.convolution" not in str(module)
    np.testing.assert_allclose(reference(module, inputs, {})[0], want[0], rtol=1e-4, atol=1e-5)
