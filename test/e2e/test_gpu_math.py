"""Functions of 16-bit types that a GPU computes by its approximate instructions: every f16 and bf16 value."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xcc
from xcc.runtime.cuda_api import find_gpu

TEXT = """func.func @main(%x: tensor<65536x{t}> {{xt.name = "x"}})
    -> (tensor<65536x{t}> {{xt.name = "exp"}}, tensor<65536x{t}> {{xt.name = "sigmoid"}},
        tensor<65536x{t}> {{xt.name = "tanh"}}) {{
  %0 = "xt.exp"(%x) : (tensor<65536x{t}>) -> tensor<65536x{t}>
  %1 = "xt.sigmoid"(%x) : (tensor<65536x{t}>) -> tensor<65536x{t}>
  %2 = "xt.tanh"(%x) : (tensor<65536x{t}>) -> tensor<65536x{t}>
  return %0, %1, %2 : tensor<65536x{t}>, tensor<65536x{t}>, tensor<65536x{t}>
}}
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_value_is_within_half_a_unit_in_the_last_place(name, dtype, tmp_path):
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    path = tmp_path / "m.mlir"
    path.write_text(TEXT.format(t=name))
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    got = xcc.compile(str(path), target="nvptx").run({"x": x})
    with np.errstate(over="ignore", invalid="ignore"):
        wide = x.astype(np.float64)
        exact = {"exp": np.exp(wide), "sigmoid": 1 / (1 + np.exp(-wide)), "tanh": np.tanh(wide)}
        for op, want in exact.items():
            near = want.astype(dtype)
            value = got[op].view(dtype) if got[op].dtype != dtype else got[op]
            np.testing.assert_array_equal(np.isnan(value), np.isnan(near))
            finite = np.isfinite(near) & np.isfinite(value)
            np.testing.assert_array_equal(value[~finite & ~np.isnan(near)], near[~finite & ~np.isnan(near)])
            outwards = np.nextafter(near, np.copysign(dtype(np.inf), near))
            step = np.abs(outwards.astype(np.float64) - near.astype(np.float64))[finite]
            step = np.maximum(step, 2.0 ** -126)        # 1 / (1 + exp(89)) is 0: f32 has no exp(89)
            off = np.abs(value.astype(np.float64) - want)[finite] / step
            assert off.max() < 0.51, (op, off.max(), x[finite][off.argmax()])
