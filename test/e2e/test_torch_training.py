"""Training with ``torch.compile(backend="xcc")``: losses, parameters and optimizers' states equal to eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.autograd import forward_ad

import xcc.torch
from xcc.frontends.torch.backend import backend

pytestmark = pytest.mark.usefixtures("fresh_torch")

STRICT = {"strict": True}


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


class Residual(nn.Module):
    """Convolutions, norms of batches with running statistics, a pool, a sum of two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(2))
        self.last = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(torch.relu(self.norms[0](self.first(x))), 3, 2, 1)
        x = torch.relu(x + self.norms[1](self.second(x)))
        return self.last(x.mean((2, 3)))


class Words(nn.Module):
    """Embeddings, causal attention, a product with the embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.mix = nn.Embedding(11, 8), nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)

    def forward(self, words: Any) -> Any:
        x = self.table(words)
        q, k, v = self.mix(self.norm(x)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return (x @ self.table.weight.T).flatten(0, 1)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, Any]]]] = {
    "convolutions": (Residual, lambda: (torch.randn(4, 3, 9, 9), torch.randint(0, 3, (4,)))),
    "attention": (Words, lambda: (torch.randint(0, 11, (2, 5)), torch.randint(0, 11, (10,)))),
}


@pytest.mark.parametrize("name", MODELS)
def test_losses_and_buffers_are_eagers(name: str) -> None:
    build, batch = MODELS[name]
    model = build()
    twin = copy.deepcopy(model)
    ways = [(model, lambda x, y: F.cross_entropy(model(x), y)),
            (twin, compiled(lambda x, y: F.cross_entropy(twin(x), y)))]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m, _ in ways]
    for _ in range(5):
        given = batch()
        losses = []
        for (_m, f), optimizer in zip(ways, optimizers, strict=True):
            optimizer.zero_grad()
            losses.append(f(*given))
            losses[-1].backward()
            optimizer.step()
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(list(twin.buffers()), list(model.buffers()), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_running_statistics_of_narrow_types(dtype: torch.dtype) -> None:
    """Statistics are of the wide sum, and rounded once, whatever type the op gives them in."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)).train().to(dtype)
    twin, x = copy.deepcopy(model), torch.randn(4, 3, 9, 9).to(dtype)
    want, got = model(x), compiled(lambda x: twin(x))(x)
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)
    for y in (want, got):
        (y.float() ** 3).mean().backward()
    torch.testing.assert_close(list(twin.buffers()), list(model.buffers()), rtol=1e-2, atol=1e-2)
    scale = model[0].weight.grad.abs().max().item()
    torch.testing.assert_close(twin[0].weight.grad, model[0].weight.grad, rtol=5e-2, atol=5e-2 * scale)


@pytest.mark.parametrize("recomputed", [False, True])
def test_a_gradient_has_the_mask_of_its_forward(recomputed: bool) -> None:
    """Also where the backward computes the forward again."""
    w, x = torch.randn(8, 16, requires_grad=True), torch.randn(4, 8)

    def hidden(x: Any) -> Any:
        return F.dropout(torch.tanh(x @ w), 0.5)

    def f(x: Any) -> Any:
        return (torch.utils.checkpoint.checkpoint(hidden, x, use_reentrant=False) if recomputed else hidden(x)).sin()

    out = compiled(f)(x)
    got, = torch.autograd.grad(out.sum(), w)
    left = out.detach() != 0
    assert 0 < left.sum() < left.numel()
    want, = torch.autograd.grad((torch.tanh(x @ w) * left * 2).sin().sum(), w)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_checkpoints_repeat_each_draw() -> None:
    """Several ops, one of them with one result; others in the next call, and after another seed."""
    x = torch.randn(16, 16, requires_grad=True)

    def hidden(x: Any) -> Any:
        return F.dropout(x.exp(), 0.5) * torch.rand_like(x) + F.dropout(x.exp(), 0.25)

    own = compiled(lambda x: torch.utils.checkpoint.checkpoint(hidden, x, use_reentrant=False))
    found = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        out = own(x)
        grad, = torch.autograd.grad(out.sum(), x)
        torch.testing.assert_close(grad, out.detach(), rtol=1e-4, atol=1e-5)      # each term is its own derivative
        found.append(grad)
    assert torch.equal(found[0], found[2]) and not torch.equal(found[0], found[1])


def test_forward_derivatives_of_products_and_with_numbers() -> None:
    """Tangents that are zero meet a number, and the gradient of a product makes zeros for one."""
    def along(x: Any, t: Any) -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(x, t).sin() * 2).tangent

    def curvature(x: Any, w: Any) -> Any:
        return torch.func.hessian(lambda a: torch.tanh(w @ a).sum())(x)

    for f, others in ((along, (4,)), (curvature, (3, 4))):
        x, other = torch.randn(4), torch.randn(others)
        torch.testing.assert_close(xcc.torch.compile(f, strict=True)(x, other), f(x, other))
