"""``torch.cond``, ``while_loop``, ``scan`` and ``map``: their bodies become regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.map import map as over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch_programs import check, exported

from xcc.diagnostics import UserError
from xcc.frontends.torch.importer import load

X = torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(0))
OTHERS = (-X, X[:2, :4] * 9)
SIZES = ({0: torch.export.Dim("b"), 1: torch.export.Dim("s")},)


class Program(torch.nn.Module):
    """A function of a layer and a tensor."""

    def __init__(self, f: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.f = torch.nn.Linear(8, 8), f
        self.register_buffer("rows", torch.arange(8.0))

    def forward(self, x: Any) -> Any:
        return self.f(self, x)


def branches(m: Any, x: Any) -> Any:
    """Parameters and buffers are read in a branch alone."""
    return torch.cond(x.sum() > 0, lambda t: (m.layer(t), t.sum()), lambda t: (t * m.rows, t.amax()), (x,))


def sizes_decide(m: Any, x: Any) -> Any:
    return torch.cond(x.shape[1] > 5, lambda t: t * 2, lambda t: t.cos(), (x,))


def inside_each_other(m: Any, x: Any) -> Any:
    def inner(t: Any) -> Any:
        return torch.cond(t.mean() > 5, lambda u: u.sin(), lambda u: u * 3, (t,))

    return torch.cond(x.sum() > 0, lambda t: inner(t * 2), lambda t: t.sum(0).softmax(-1) * t, (x,))


def until(m: Any, x: Any) -> Any:
    return while_loop(lambda i, y: (y.abs().max() < 50) & (i < 20), lambda i, y: (i + 1, m.layer(y) * 3),
                      (torch.tensor(0), x))


def over_steps(m: Any, x: Any) -> Any:
    return scan(lambda c, t: (c * 0.9 + m.layer(t), c.tanh() + t), torch.zeros(x.shape[0], 8), x, dim=1)


def backwards(m: Any, x: Any) -> Any:
    return scan(lambda c, t: ({"a": c["a"] + t.sum()}, [t * c["a"]]),
                {"a": torch.zeros(())}, x, reverse=True)


def each(m: Any, x: Any) -> Any:
    return over(lambda t, k: m.layer(t).softmax(-1) * k, x, torch.tensor(2.0))


@pytest.mark.parametrize("f", [branches, sizes_decide, until, over_steps, backwards, each])
def test_one_program_serves_all_sizes(f: Callable[[Any, Any], Any]) -> None:
    check(Program(f), (X,), *((x,) for x in OTHERS), dynamic_shapes={"x": SIZES[0]}, strict=False)


def test_branches_inside_branches() -> None:
    check(Program(inside_each_other), (X,), *((x,) for x in OTHERS[:1]), strict=False)


@pytest.mark.parametrize("f, said", [
    (lambda m, x: over(lambda t: torch.nn.functional.dropout(t, 0.5), x), "draw them before the loop"),
    (lambda m, x: torch.cond(x.sum() > 0, lambda t: torch.special.airy_ai(t), lambda t: t.cos(), (x,)),
     "no converter for aten.special_airy_ai"),
])
def test_what_a_body_may_not_have(f: Callable[[Any, Any], Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load(exported(Program(f), (X,), strict=False))
