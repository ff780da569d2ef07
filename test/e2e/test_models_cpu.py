"""Whole models compiled for the CPU against onnxruntime. One compilation serves all sizes of a model's free dims."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import MODELS, Model

import xcc
from xcc.tools.peers import onnxruntime_session

SLOW = ("bert", "gpt2", "llama2l", "minilm", "mobilenetv2", "resnet50", "vit")
"""Full-size exports: ``make test-models``."""

MORE_SIZES: dict[str, tuple[dict[str, int], ...]] = {
    "llama_tiny": ({"batch": 1, "seq": 2}, {"batch": 5, "seq": 127}),
    "ppocr_cls": ({"batch": 6, "h": 48, "w": 192}, {"batch": 1, "h": 17, "w": 33}, {"batch": 1, "h": 2, "w": 2}),
    "ppocr_det": ({"batch": 1, "h": 352, "w": 224}, {"batch": 3, "h": 96, "w": 32}),
    "ppocr_rec": ({"batch": 1, "h": 48, "w": 321}, {"batch": 7, "h": 48, "w": 40}),
}
DEMO = Path(__file__).resolve().parents[2] / "demo" / "detect_text.py"


def source_of(spec: Model) -> Any:
    try:
        return spec.get()
    except (FileNotFoundError, ImportError) as e:
        pytest.skip(str(e))


BOUND: dict[str, float] = {"ppocr_det": 1e-4, "ppocr_rec": 1e-4}
"""Where 1e-5 of the largest output is too little: real weights through 80 layers of batch norms that scale up, where
sums in another order, onnxruntime's own among them, differ by as much."""


def check(model: xcc.Model, session: Any, feeds: Mapping[str, Any], spec: Model) -> None:
    """Every output within 1e-5 of its largest magnitude, or what BOUND says."""
    wanted = session.run(None, feeds)
    got = model.run(feeds)
    for output, want in zip(session.get_outputs(), wanted, strict=True):
        value = got[output.name]
        assert value.dtype == want.dtype and value.shape == want.shape, output.name
        limit = BOUND.get(spec.name, 1e-5) * float(np.abs(want).max(initial=0))
        np.testing.assert_allclose(value, want, rtol=0, atol=limit, err_msg=output.name)


def names() -> list[Any]:
    plain = [n for n in MODELS if not n.startswith("silero")]     # those keep a state: test_silero.py
    return [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in plain]


@pytest.mark.parametrize("name", names())
def test_equals_onnxruntime(name: str) -> None:
    spec = MODELS[name]
    source = source_of(spec)
    model = xcc.compile(source, target="cpu", dims=dict(spec.dims) or None)
    session = onnxruntime_session(str(spec.get()))
    rng = np.random.default_rng(0)
    for sizes in (*spec.cases, *MORE_SIZES.get(name, ()), spec.cases[0]):     # the first again: nothing is left behind
        check(model, session, {k: v.draw(rng, sizes) for k, v in spec.inputs.items()}, spec)


@pytest.mark.parametrize("name", ["gpt2_tiny", "resnet_tiny"])
def test_narrower_vectors(name: str) -> None:
    """Code for a processor without AVX-512 runs on any x86-64 of the last ten years."""
    if platform.machine() != "x86_64":
        pytest.skip("x86-64 code")
    spec = MODELS[name]
    model = xcc.compile(source_of(spec), target="cpu", chip="x86-64-v3")
    check(model, onnxruntime_session(str(spec.get())), spec.feeds(), spec)


def demo() -> Any:
    spec = importlib.util.spec_from_file_location("detect_text", DEMO)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_detection_finds_the_text_of_a_picture() -> None:
    """Random inputs give probabilities near zero; a picture of text does not."""
    source = source_of(MODELS["ppocr_det"])
    detect_text = demo()
    x = detect_text.to_input(detect_text.draw_picture())
    model = xcc.compile(source, target="cpu")
    probability = model(x)
    want, = onnxruntime_session(str(source)).run(None, {model.inputs[0].name: x})
    assert want.max() > 0.9
    np.testing.assert_allclose(probability, want, rtol=0, atol=1e-3)
    assert len(detect_text.find_boxes(probability[0, 0])) == len(detect_text.LINES)
