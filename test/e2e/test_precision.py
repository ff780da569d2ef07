"""Models computed in f16 and bf16 on the CPU against onnxruntime in f32.

Tolerances are shares of the reference's largest magnitude: 2e-3 in f16 and 1e-2 in bf16.
"""

from __future__ import annotations

import models
import numpy as np
import pytest

import xcc

BOUND = {"f16": 2e-3, "bf16": 1e-2}


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["bert_tiny", "gpt2_tiny", "llama_tiny", "resnet_tiny", "vit_tiny"])
def test_narrow_compute(name, precision):
    ort = pytest.importorskip("onnxruntime")
    model = models.MODELS[name]
    path, feeds = str(model.get()), model.feeds()
    compiled = xcc.compile(path, precision=precision)
    assert all(i.dtype in ("f32", "i64") for i in (*compiled.inputs, *compiled.outputs))
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    want = dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds), strict=True))
    got = compiled.run(feeds)
    for output, reference in want.items():
        error = np.abs(got[output] - reference).max() / np.abs(reference).max()
        assert 1e-6 < error < BOUND[precision]      # not exact: the compute was narrow
