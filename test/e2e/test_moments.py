"""Mean and variance of columns in one pass on GPUs: as near to f64 as sums of f32 are, wherever the mean lies."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled import behind_poison, build, compiled, on_chip

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.xt.decompose.build import convert, mean
from xcc.targets.nvptx.chip import chips

ROWS, COLUMNS = 2048, 16
KINDS = ("near", "far", "relu", "padded", "same")


def moments(x: Any, axes: tuple[int, ...] = (0,)) -> tuple[Any, Any]:
    wide = convert(x, "f32")
    center = mean(wide, axes)
    difference = xt.sub(wide, center)
    return center, mean(xt.mul(difference, difference), axes)


def drawn() -> Any:
    """Columns around 0; far from it; behind a ReLU; far, but for some rows of zeros; constant."""
    x = np.random.default_rng(5).standard_normal((ROWS, len(KINDS), COLUMNS))
    x[:, 1] = 1000 + 0.1 * x[:, 1]
    x[:, 2] = np.maximum(x[:, 2], 0)
    x[:, 3] = 1000 + 0.1 * x[:, 3]
    x[::ROWS // 4, 3] = 0
    x[:, 4] = 3.1
    return x.reshape(ROWS, -1)


@pytest.mark.parametrize(("chip", "dtype"), [("sm_90a", np.float32), ("sm_90a", np.float16),
                                             ("sm_90a", ml_dtypes.bfloat16), ("gfx942", np.float32)])
def test_near_double_precision(chip: str, dtype: Any) -> None:
    x = drawn().astype(dtype)
    with on_chip(chip):
        model = compiled(build(moments, [x]))
    launches = [step.kernel for step in model.artifact.program.body if hasattr(step, "kernel")]
    assert launches == ["reduce_0", "reduce_1"]
    center, variance = (v.astype(np.float64).reshape(-1) for v in model.run({"x0": behind_poison(x)}).values())
    wide = x.astype(np.float64)
    far = np.abs(center - wide.mean(0)) / np.abs(wide).max(0), np.abs(variance - wide.var(0)) / (wide.var(0) + 1e-9)
    for n, kind in enumerate(KINDS):
        at = slice(n * COLUMNS, (n + 1) * COLUMNS)
        assert far[0][at].max() < 1e-7, (kind, far[0][at].max())
        assert far[1][at].max() < 5e-5, (kind, far[1][at].max())


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("shape", [(3, 20, 19, 16), (2, 1, 300, 24), (2, 7, 7, 5)])
def test_images_with_the_channels_last(chip: str, shape: tuple[int, ...]) -> None:
    """Their rows and columns are one dim behind fusion, beside one of 1."""
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float16)
    with on_chip(chip):
        model = compiled(build(lambda v: mean(convert(v, "f32"), (1, 2)), [x]))
    (y,) = model.run({"x0": behind_poison(x)}).values()
    want = x.astype(np.float64).mean((1, 2))
    np.testing.assert_allclose(np.asarray(y).reshape(want.shape), want, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("shape", "axes"), [((4, 8, 32768), (0, 2)), ((2, 1024, 512), (1, 2)), ((1 << 20,), (0,))])
def test_rows_in_parts(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = (1000 + np.random.default_rng(7).standard_normal(shape)).astype(np.float32)
    module = build(lambda v: moments(v, axes), [x])
    with module.context:
        parse_pass("one-pass-moments").run(module, PassContext(chip=chips()["sm_90a"]))
    assert '"xt.slice"' in str(module)
    center, variance = interpret(module, [x])
    np.testing.assert_allclose(center, x.astype(np.float64).mean(axes, keepdims=True), rtol=1e-7)
    np.testing.assert_allclose(variance, x.astype(np.float64).var(axes, keepdims=True), rtol=2e-5)
