"""Training with ``torch.compile(backend="xcc")``: losses, parameters and optimizers' states equal to eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from xcc.frontends.torch.backend import backend

STRICT = {"strict": True}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield


def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(f, backend=backend, options=STRICT)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-2, foreach=False),
    "SGD, foreach": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, foreach=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=False),
    "AdamW, foreach": lambda p: torch.optim.AdamW(p, lr=1e-2, amsgrad=True, foreach=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_in_place(name: str) -> None:
    model = perceptron()
    twin = copy.deepcopy(model)
    plain, own = OPTIMIZERS[name](model.parameters()), OPTIMIZERS[name](twin.parameters())
    step = compiled(own.step)
    places = [p.data_ptr() for p in twin.parameters()]
    for _ in range(20):
        grads = [torch.randn_like(p) for p in model.parameters()]
        for m in (model, twin):
            for p, grad in zip(m.parameters(), grads, strict=True):
                p.grad = grad.clone()
        plain.step()
        step()
    assert [p.data_ptr() for p in twin.parameters()] == places
    torch.testing.assert_close(list(twin.parameters()), list(model.parameters()), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(own.state_dict()["state"], plain.state_dict()["state"], rtol=1e-4, atol=1e-5)


def test_a_whole_step_is_one_function() -> None:
    """Forward, backward, clipped gradients and the optimizer, as loops for training have them."""
    model = perceptron()
    twin = copy.deepcopy(model)

    def step_of(m: nn.Module) -> Callable[..., Any]:
        optimizer = torch.optim.AdamW(m.parameters(), lr=1e-2)

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(m(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return step

    plain, own = step_of(model), compiled(step_of(twin))
    for _ in range(4):
        x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
        torch.testing.assert_close(own(x, y), plain(x, y), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(list(twin.parameters()), list(model.parameters()), rtol=1e-3, atol=1e-4)
