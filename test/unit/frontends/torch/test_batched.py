"""Rules of vmap and of forward derivatives that read no size as a number: one graph for all sizes, equal to eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch.func import grad, hessian, jacfwd, vmap

from xcc.frontends.torch.oblivious import compile_all_sizes

F = torch.nn.functional
ROWS = torch.tensor([2, 0, 2])
ORDER = torch.tensor([[1, 0], [0, 1], [2, 2]])


def check(f: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """What is traced, run by torch."""
    torch._dynamo.reset()
    counters.clear()
    traced = aot_autograd(fw_compiler=lambda graph, _: make_boxed_func(graph.forward))
    compiled = compile_all_sizes(f, lambda graph, inputs, **_: traced(graph, inputs), {})
    for shape in shapes:
        x = torch.rand(shape, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), f(x))
    assert counters["stats"]["unique_graphs"] == 1


def joined(x: Any) -> Any:
    longer = torch.cat([x, x[:1] * 2, torch.ones(1, 4, dtype=x.dtype)])
    return longer.sin().chunk(2, 1)[0], torch.hstack([x, x]).split([1, 7], 1)[1]


def gathered(x: Any) -> Any:
    return (x.gather(0, ORDER) * x.gather(-1, x.argsort(1))[:3, :2], x.sort(1)[0] + x.amax(1, keepdim=True),
            x.index_select(0, ROWS), x.index_select(-1, ROWS))


def scattered(x: Any) -> Any:
    return (x.scatter(0, ORDER, x[:3, :2]), x.scatter(1, x.argsort(1), 2.0) * x, x.scatter_add(-1, x.argsort(1), x),
            x.scatter_reduce(0, ORDER, x[:3, :2], "sum"), x.index_add(0, ROWS, x[:3], alpha=2))


def viewed(x: Any) -> Any:
    return x[1:, :-1] * x[:-1, 1:], x.diagonal() * 2, x.unfold(1, 2, 1) ** 2, x[0].unbind(0)[1] * x[0, 2]


def layers(x: Any) -> Any:
    return (F.layer_norm(x, (4,)), F.cross_entropy(x, x.argmax(1)), F.gelu(x),
            torch.linalg.cross(x[:, :3], x[:, 1:], dim=1))


@pytest.mark.parametrize("f", [joined, gathered, scattered, viewed, layers])
def test_batches(f: Callable[..., Any]) -> None:
    """Gradients, and the values they are computed with."""
    def total(x: Any) -> Any:
        values = f(x)
        return sum(y.sum() for y in values), values

    check(vmap(grad(total, has_aux=True)), (2, 3, 4), (5, 3, 4))


def test_batches_of_batches() -> None:
    check(vmap(vmap(lambda x: (*joined(x), gathered(x)[0]))), (2, 3, 3, 4), (3, 1, 3, 4))


@pytest.mark.parametrize("second", [hessian, lambda f: jacfwd(jacfwd(f))])
def test_second_derivatives(second: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return (x * x.cumsum(0)).mean() + x.softmax(0)[0] + ((x[:, None] @ x[None]) ** 2).sum() - x[1:].exp().sum()

    check(second(f), (5,), (2,))
