"""Imported models on the xt interpreter against onnxruntime: the importer alone, apart from any code generation."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from models import MODELS

QUICK = ("bert_tiny", "gpt2_tiny", "llama_tiny", "ppocr_cls", "ppocr_det", "ppocr_rec", "resnet_tiny", "silero_vad",
         "silero_vad_16k_op15", "silero_vad_16k_sequence", "silero_vad_8k", "silero_vad_half", "silero_vad_op18_ifless",
         "silero_vad_openvino_16k", "vit_tiny")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in MODELS])
def test_equals_onnxruntime(name: str) -> None:
    """One import serves all sizes. Tolerance: 1e-4 of the largest output, f32 sums of up to some thousand terms."""
    spec = MODELS[name]
    try:
        path = spec.get()
    except (FileNotFoundError, ImportError) as e:
        pytest.skip(str(e))
    module, weights = load(path, dims=dict(spec.dims))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options)
    for case in range(len(spec.cases)):
        feeds = spec.feeds(case)
        want = session.run(None, feeds)
        for got, expected in zip(interpret(module, feeds, weights), want, strict=True):
            assert got.dtype == expected.dtype and got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 * max(1.0, float(np.abs(expected).max())))
