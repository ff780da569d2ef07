"""Transposed convolutions as products: the numbers stay."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.transposed_convolution import TransposedConvolution
from xcc.symbolic import sym

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("steps", "kernel", "low", "high"), [
    ((2,), (2,), (1,), (1,)), ((2, 2), (2, 2), (1, 1), (1, 1)), ((3, 2), (3, 2), (2, 1), (2, 1)),     # disjoint
    ((2,), (4,), (2,), (2,)), ((2, 2), (3, 3), (1, 1), (2, 2)), ((2, 1), (5, 3), (2, 1), (3, 1)),
    ((5,), (8,), (-1,), (4,)), ((3, 2), (1, 1), (0, 0), (0, 0)), ((4, 3), (2, 7), (1, 0), (3, 5))])
@pytest.mark.parametrize("known", [True, False])
def test_numbers_stay(steps, kernel, low, high, groups, known):
    spatial = (sym("h"), 5)[:len(steps)]
    sizes = (*kernel, 4 // groups, 6)
    filters = sizes if known else (*(sym(f"k{i}") for i in range(len(kernel))), *sizes[-2:])
    if not known:       # the padding of a transposed convolution is what is left of its filter
        low, high = (tuple(p - n + k for p, n, k in zip(side, kernel, filters, strict=False)) for side in (low, high))

    def build(x, w):
        return xt.convolution(x, w, layout="NHWC", filter="HWIO", lhs_dilation=steps, low=low, high=high, groups=groups)
    module = module_of(build, xt.TensorType((1, *spatial, 4), "f32"), xt.TensorType(filters, "f32"))
    inputs = [RNG.standard_normal(s).astype(np.float32) for s in ((1, *(4, 5)[:len(steps)], 4), sizes)]
    want = reference(module, inputs, {})
    TransposedConvolution().run(module, PassContext())
    xt.verify(module)
    assert f"lhs_dilation = {list(steps)}" not in str(module)
    np.testing.assert_allclose(reference(module, inputs, {})[0], want[0], rtol=1e-4, atol=1e-5)
