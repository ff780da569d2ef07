"""``freeze=True``: parameters are constants of the compiled model until they change."""

from __future__ import annotations

import pytest
import torch

import xcc.torch
from xcc.frontends.torch import backend, frozen

pytestmark = pytest.mark.usefixtures("fresh_torch")


def test_frozen_parameters_are_constants_until_they_change() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
    compiled = xcc.torch.compile(model, strict=True, freeze=True)
    x = torch.randn(2, 3, 9, 9)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
            model[0].weight.mul_(2)             # in place
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
            model[0].bias = torch.nn.Parameter(torch.randn(8))
    trained = torch.nn.Linear(4, 4)
    with pytest.warns(UserWarning, match="freeze is for inference"):
        xcc.torch.compile(trained, freeze=True)(torch.randn(2, 4)).sum().backward()


def test_layers_that_share_a_graph_are_frozen_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled layer by layer, as large models are: a layer whose parameters change is compiled again, alone."""
    made: list[int] = []
    monkeypatch.setattr(backend, "_model", lambda *a, real=backend._model: made.append(1) or real(*a))
    calls: list[frozen.FrozenCall] = []
    monkeypatch.setattr(backend, "FrozenCall", lambda *a, real=frozen.FrozenCall: calls.append(real(*a)) or calls[-1])
    layers = [torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh()) for _ in range(3)]
    compiled = torch.compile(lambda layer, x: layer(x), backend="xcc", options={"strict": True, "freeze": True})
    x = torch.randn(2, 6)

    def expect(compilations: int) -> None:
        for layer in layers:
            torch.testing.assert_close(compiled(layer, x), layer(x), rtol=1e-4, atol=1e-5)
        assert len(made) == compilations and len(calls) == 1

    with torch.no_grad():
        expect(3)
        expect(3)
        layers[1][0].weight.mul_(2)
        expect(4)
        layers[2][0].bias = torch.nn.Parameter(torch.randn(6))
        expect(5)
        assert len(calls[0]._kept) == 3         # what held the former bias is gone
