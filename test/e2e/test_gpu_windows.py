"""Depthwise convolutions and images with the channels last on GPUs against torch: channels, kernels, strides and sides
that tiles do not divide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as functional
from torch.fx.experimental.proxy_tensor import make_fx

from xcc.facade import compile_to_artifact
from xcc.frontends.torch.capture import capture_fx
from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.layout import inverse
from xcc.interpreter.executor import make_executor
from xcc.options import CompileOptions
from xcc.runtime.model import Model

CASES = [(2, 24, 9, 7, 7, 1), (2, 40, 11, 13, 5, 2), (1, 16, 14, 14, 3, 1), (2, 64, 8, 8, 3, 2), (2, 12, 9, 9, 3, 1)]


IMAGES = {
    "max_pool": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "average_pool": lambda x: functional.avg_pool2d(x.relu(), 2),
    "resize": lambda x: functional.interpolate(x, scale_factor=2.0, mode="bilinear") + 1,
    "group_norm": lambda x: functional.group_norm(x, 4).sigmoid(),
    "mean": lambda x: x.mean((2, 3))}


def ran(function: Callable[..., torch.Tensor], given: tuple[torch.Tensor, ...], chip: str) -> np.ndarray:
    """What the code for `chip` gives, run by the interpreter of instructions."""
    program = capture_fx(make_fx(lambda *given: (function(*given),), tracing_mode="fake")(*given))
    options = CompileOptions.make("nvptx" if chip.startswith("sm") else "amdgcn", chip=chip, isolate=False, cache=False,
                                  keep_ir=True)
    artifact = compile_to_artifact(program, options)
    model = Model(artifact)
    model._executor = make_executor(artifact.program, artifact.members, artifact.weights, artifact.manifest)
    arrays = {i.name: to_numpy(t.contiguous()).transpose(i.order or range(t.dim()))
              for i, t in zip(program.graph.inputs, given, strict=True)}
    (got,), (output,) = model.run(arrays).values(), program.graph.outputs
    return got.transpose(inverse(output.order)) if output.order else got


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float16, 2e-3), (torch.float32, 1e-5)])
@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_depthwise(case: tuple[int, ...], chip: str, dtype: torch.dtype, limit: float) -> None:
    batch, channels, height, width, side, stride = case
    torch.manual_seed(0)
    x = torch.randn(batch, channels, height, width).to(dtype).to(memory_format=torch.channels_last)
    w, b = torch.randn(channels, 1, side, side).to(dtype), torch.randn(channels).to(dtype)

    def convolved(*given: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(*given, stride=stride, padding=side // 2, groups=channels)

    want = convolved(x.float(), w.float(), b.float()).numpy()
    assert np.abs(ran(convolved, (x, w, b), chip).astype(np.float64) - want).max() <= limit * np.abs(want).max()


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("name", IMAGES)
def test_images_with_the_channels_last(name: str, chip: str) -> None:
    """Without a convolution: they are read and written as they lie."""
    torch.manual_seed(0)
    x = torch.randn(2, 24, 10, 14).half().to(memory_format=torch.channels_last)
    want = IMAGES[name](x.float()).numpy()
    assert np.abs(ran(IMAGES[name], (x,), chip).astype(np.float64) - want).max() <= 2e-3 * np.abs(want).max()
