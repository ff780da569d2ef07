"""The voice detectors of the wheel silero-vad on the CPU: 50 calls with carried state against onnxruntime.

Each runtime carries its own state, so that errors may add up. Outputs are probabilities, cells of the state
grow to some tens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import MODELS

import xcc
from xcc.diagnostics import UserError
from xcc.tools.peers import onnxruntime_session

CALLS = 50
STATES = {"state": "stateN", "h": "hn", "c": "cn"}


def tone(call: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A window of a rising tone that swells and fades, with some noise."""
    rng = np.random.default_rng(call)
    t = np.arange(shape[-1]) / 16000 + call * 0.032
    wave = np.sin(2 * np.pi * (120 + 300 * t) * t) * np.sin(np.pi * call / CALLS)
    return (0.5 * wave + 0.05 * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("window", [512, 576])
def test_fixed_rate(window: int) -> None:
    """The sample rate decides which of two networks runs: with `fix` one is left, and the input `sr` is gone."""
    try:
        path = MODELS["silero_vad"].get()
    except FileNotFoundError as e:
        pytest.skip(str(e))
    model = xcc.compile(path, dims={"input_dim1": window}, fix={"sr": 16000})
    assert [i.name for i in model.inputs] == ["input", "state"]
    feeds = {"input": tone(20, (2, window)), "state": np.zeros((2, 2, 128), np.float32)}
    want = onnxruntime_session(str(path)).run(None, feeds | {"sr": np.array(16000)})
    for got, expected in zip(model.run(feeds).values(), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("dims", "rate", "window", "what"), [
    (None, 16000, 1152, "the sizes input_dim1 say which branch runs"),
    (None, 8000, 576, "the sizes input_dim1 say which branch runs"),
    ({"input_dim1": 576}, 8000, 576, "input 'sr' says which branch runs; --fix sr=... leaves one"),
])
def test_window_of_another_rate(dims: dict[str, int] | None, rate: int, window: int, what: str) -> None:
    """The network of a rate takes windows up to a length: a run with a longer one is refused, and the next works."""
    spec = MODELS["silero_vad"]
    try:
        model = xcc.compile(spec.get(), dims=dims)
    except FileNotFoundError as e:
        pytest.skip(str(e))
    feeds = spec.feeds()
    with pytest.raises(UserError, match=r"silero_vad.onnx: node '.*' \(If\): its .*_branch .* does not fit") as caught:
        model.run(feeds | {"input": np.zeros((1, window), np.float32), "sr": np.array(rate)})
    assert what in caught.value.message
    session = onnxruntime_session(str(spec.get()))
    np.testing.assert_allclose(model.run(feeds)["output"], session.run(None, feeds)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", sorted(n for n in MODELS if n.startswith("silero")))
def test_carried_state(name: str) -> None:
    spec = MODELS[name]
    try:
        source = spec.get()
    except FileNotFoundError as e:
        pytest.skip(str(e))
    model = xcc.compile(source, dims=dict(spec.dims) or None)
    session = onnxruntime_session(str(spec.get()))
    outputs = [o.name for o in session.get_outputs()]
    for sizes in spec.cases:
        ours = {k: v.draw(np.random.default_rng(0), sizes) for k, v in spec.inputs.items()}
        ours |= {k: np.zeros_like(v) for k, v in ours.items() if k in STATES}
        theirs = dict(ours)
        for call in range(CALLS):
            ours["input"] = theirs["input"] = tone(call, ours["input"].shape)
            got = model.run(ours)
            want = dict(zip(outputs, session.run(None, theirs), strict=True))
            for output, expected in want.items():
                np.testing.assert_allclose(got[output], expected, rtol=1e-4, atol=2e-4,
                                           err_msg=f"{output}, call {call}")
            ours |= {k: got[v] for k, v in STATES.items() if k in ours}
            theirs |= {k: want[v] for k, v in STATES.items() if k in theirs}
