"""What a forward saves for its backward lies channels last in both graphs, where convolutions make it; parts of one
tensor are saved as the whole; what is made of sizes alone is not saved."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from xcc.frontends.torch import backend as xcc_backend
from xcc.frontends.torch.capture import capture_fx


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.second, self.head = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8), torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = torch.relu(self.norm(self.first(x)))
        z = torch.sin(self.second(y) + y)
        return self.head(torch.nn.functional.max_pool2d(z, 2).mean((2, 3))), y, torch.sin(z).view(-1)


def graphs_of(model: torch.nn.Module, x: torch.Tensor, dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The forward and the backward as they are captured; torch runs them."""
    found = []

    def recorded(module: Any, *rest: Any, **named: Any) -> Any:
        found.append(capture_fx(module).graph)
        return xcc_backend._boxed(module)

    monkeypatch.setattr(xcc_backend, "compile_graph", recorded)
    out, y, flat = torch.compile(model, backend=xcc_backend.backend, dynamic=dynamic)(x)
    (out.square().mean() + y.square().mean() + flat.sum()).backward()
    return found


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_saved(dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    forward, backward = graphs_of(Model(), torch.randn(2, 3, 12, 10), dynamic, monkeypatch)
    last = (0, 2, 3, 1)
    saved = [o.order for o in forward.outputs if not o.updates]
    assert saved[:3] == [(), (), ()]        # what the caller gets
    assert saved.count(last) >= 2
    assert sum(i.order == last for i in backward.inputs) == saved.count(last)


def test_without_convolutions_nothing_is_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y = torch.sin(x)
            return torch.exp(y) * y, y.relu(), x.sum()

    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    forward, backward = graphs_of(Plain(), x, False, monkeypatch)
    assert not any(v.order for v in (*forward.outputs, *backward.inputs))


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_made_of_sizes_is_made_again(dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            at = torch.arange(x.shape[2])
            seen = at[None].expand(2, -1).cumsum(1)[:, None, None] >= at[:, None]
            kept = torch.nn.functional.dropout(x, 0.5)     # random numbers are none of that, nor is a checkpoint
            kept = torch.erf(checkpoint(torch.sin, kept, use_reentrant=False))
            return torch.nn.functional.scaled_dot_product_attention(kept, x, x, seen), x.sum(), x.max()

    x = torch.randn(2, 3, 40, 8, requires_grad=True)
    forward, backward = graphs_of(Masked(), x, dynamic, monkeypatch)
    shapes = [v.spec.shape for v in backward.inputs if v.kind != "size" and hasattr(v.spec, "shape")]
    assert not any(len(shape) > 2 and shape[-1] == shape[-2] for shape in shapes)
    ops = [node.op for node in backward.nodes]
    assert "aten.cumsum.default" in ops and not any("rand" in op or "native_dropout.default" in op for op in ops)
    assert "aten.erf.default" not in ops        # its result is saved for attention


class Attention(torch.nn.Module):
    """Queries, keys and values are parts of one product, or of a copy of it."""

    def __init__(self, copied: bool) -> None:
        super().__init__()
        self.inner, self.copied = torch.nn.Linear(16, 48), copied

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = self.inner(x).unflatten(-1, (3, 16)).movedim(2, 0)
        q, k, v = (p.unflatten(-1, (4, 4)).transpose(1, 2) for p in (parts.contiguous() if self.copied else parts))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v), x.mean(), x.max()


@pytest.mark.parametrize("copied", [False, True])
def test_parts_of_one_product_are_saved_whole(copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, x = Attention(copied), torch.randn(2, 5, 16)
    model(x)[0].square().mean().backward()
    real = [p.grad for p in model.parameters()]
    model.zero_grad()
    _, backward = graphs_of(model, x, False, monkeypatch)
    assert len([i for i in backward.inputs if i.spec.shape in ((10, 48), (2, 5, 48))]) == 3
    for p, g in zip(model.parameters(), real, strict=True):
        torch.testing.assert_close(p.grad, g)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_logits_not_their_logarithms(dynamic: bool, smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the type that the product made them in; of each row two numbers."""
    found: list[Any] = []

    def recorded(module: Any, *rest: Any, **named: Any) -> Any:
        found.append(capture_fx(module).graph)
        return xcc_backend._boxed(module)

    def loss(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.cross_entropy(head(x), target, label_smoothing=smoothing)

    monkeypatch.setattr(xcc_backend, "compile_graph", recorded)
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 300)
    x, target = torch.randn(12, 8, requires_grad=True), torch.randint(0, 300, (12,))
    want, = torch.autograd.grad(loss(x, target), x)
    given, = torch.autograd.grad(torch.compile(loss, backend=xcc_backend.backend, dynamic=dynamic)(x, target), x)
    torch.testing.assert_close(given, want)
    shaped = [i.spec for i in found[1].inputs if hasattr(i.spec, "shape")]
    assert [s.dtype for s in shaped if len(s.shape) == 2 and str(s.shape[1]) == "300"] == ["bf16"]
