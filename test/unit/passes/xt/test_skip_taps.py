"""Dilated convolutions as products of their taps: the numbers stay, whatever the image's size."""

from typing import Any

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.skip_taps import SkipTaps
from xcc.symbolic import sym

RNG = np.random.default_rng(0)
CHANNELS = 192, 192


@pytest.mark.parametrize(("taps", "dilations", "low", "dtype"), [
    ((3, 3), (40, 60), (40, 60), "f32"),
    ((3, 2), (50, 80), (33, 0), "f32"),         # more on one side; an even number of taps
    ((3,), (70,), (140,), "f32"),               # nothing of what comes
    ((5,), (50,), (100,), "f16"),
])
def test_numbers_stay(taps: tuple[int, ...], dilations: tuple[int, ...], low: tuple[int, ...], dtype: str) -> None:
    sizes = tuple(sym(f"h{d}") for d in range(len(taps)))
    high = tuple((n - 1) * d - before for n, d, before in zip(taps, dilations, low, strict=True))

    def build(x: Any, w: Any) -> Any:
        return xt.convolution(x, w, layout="NHWC", filter="HWIO", rhs_dilation=dilations, low=low, high=high)

    before, after = (module_of(build, xt.TensorType((2, *sizes, CHANNELS[0]), dtype),
                               xt.TensorType((*taps, *CHANNELS), dtype)) for _ in range(2))
    SkipTaps().run(after, PassContext())
    xt.verify(after)
    assert "xt.convolution" not in str(after)
    w = RNG.standard_normal((*taps, *CHANNELS)).astype(xt.numpy_dtype(dtype))
    for size in ((5, 31), (0, 3), (41, 1), (2, 61)):
        shape = size[:len(taps)]
        x = RNG.standard_normal((2, *shape, CHANNELS[0])).astype(xt.numpy_dtype(dtype))
        env = {f"h{d}": n for d, n in enumerate(shape)}
        want, got = (reference(m, [x, w], env)[0] for m in (before, after))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 if dtype == "f32" else 0.1)
