"""Functions of distributions and the like, forward and backward, compiled for this CPU and beside eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import distributions

import xcc.torch

pytestmark = pytest.mark.usefixtures("fresh_torch")

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(torch, name) for name in ("lgamma", "digamma", "erfc", "erfinv", "i0", "angle")},
    **{name: getattr(torch.special, name) for name in ("erfcx", "i0e", "i1", "i1e", "ndtri")},
    "zeta": lambda x: torch.special.zeta(torch.tensor([[3.0], [1], [2.5], [0.5]], dtype=x.dtype), x),
    "trigamma": lambda x: torch.polygamma(1, x.double() + 1e-6),       # torch's of f32 is wrong by 1e-1 near poles
    "polygamma": lambda x: torch.polygamma(3, x.clamp(-100, 1e6) + 1e-6),
    "polygamma of even order": lambda x: torch.polygamma(2, x.clamp(-100, 1e6) + 1e-6),
    "igamma": lambda x: torch.igamma(torch.tensor([[0.3], [1], [50]], dtype=x.dtype), x),
    "igammac": lambda x: torch.igammac(torch.tensor([[0.3], [1], [50]], dtype=x.dtype), x),
    "hypot": lambda x: torch.hypot(x, 2 - x)}


def values(dtype: torch.dtype) -> torch.Tensor:
    """On both sides of where a function is computed another way, at poles, and at the ends."""
    inf, nan = float("inf"), float("nan")
    edges = torch.tensor([0.0, -0.0, 0.5, 1, 2, 8, 14, -1, -3, 1 - 1e-7, 1e-7, 1e-3, 1e-30, 50, 1e4, 1e20, inf, nan])
    return torch.cat((torch.linspace(-6.3, 16, 150), torch.linspace(-1, 1, 50), edges)).to(dtype)


@pytest.mark.parametrize("dtype, within, names", [(torch.float32, 2e-5, ("angle", "hypot", "lgamma", "ndtri")),
                                                  (torch.float64, 1e-8, tuple(FUNCTIONS))])
def test_functions(dtype: torch.dtype, within: float, names: tuple[str, ...]) -> None:
    x = values(dtype)
    functions = {name: FUNCTIONS[name] for name in names}
    got = xcc.torch.compile(lambda x: [f(x) for f in functions.values()], strict=True)(x)
    for (name, f), made in zip(functions.items(), got, strict=True):
        torch.testing.assert_close(made, f(x), rtol=within, atol=within * 1e-2, equal_nan=True,
                                   msg=lambda text, name=name: f"{name}: {text}")


def loss(x: Any) -> Any:
    entropy = distributions.Dirichlet(x, validate_args=False).entropy()
    return entropy.sum() + distributions.Normal(0.0, 1.0, validate_args=False).icdf(x).sum()


def places(x: Any) -> Any:
    """Gradients of what is scattered by a mask and repeated; elements put."""
    mask = torch.ones_like(x, dtype=torch.bool).tril()
    y = x.masked_scatter(mask, x.reshape(-1) * 2)
    y = torch.repeat_interleave(y, torch.arange(1, 4), 0, output_size=6)
    return (y.put(torch.tensor([1, -2]), x[0, :2], accumulate=True) * y.put(torch.tensor([0, 3]), x[1, :2])).sum()


@pytest.mark.parametrize("f", [loss, places])
def test_gradients(f: Callable[[Any], Any]) -> None:
    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for columns in (4, 2):
        x = torch.rand(3, columns).mul(0.8).add(0.1).requires_grad_()
        torch.testing.assert_close(*(torch.autograd.grad(g(x), x) for g in (compiled, f)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_ctc_loss(packed: bool) -> None:
    """Of one compilation: an empty target, repeated labels, one that does not fit, labels behind the end of any value;
    packed ones, whose lengths are numbers, without the one that does not fit."""
    def f(x: Any, labels: Any, steps: Any, lengths: Any) -> Any:
        return F.ctc_loss(x.log_softmax(-1), labels, steps, lengths, 2, "none", zero_infinity=not packed)

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    labels = torch.tensor([[1, 1, 3, 0], [4, 0, -1, -1], [7, 7, 7, 7], [-9, 0, 0, 0]])
    lengths = torch.tensor([4, 2, 3 if packed else 4, 0])
    for most in (9, 7):
        x, steps = torch.randn(most, 4, 8, requires_grad=True), torch.tensor([most, 3, 6, 1])
        given: Any = (labels, steps, lengths)
        if packed:
            rows = [row[:n] for row, n in zip(labels, lengths, strict=True)]
            given = torch.cat(rows), steps.tolist(), lengths.tolist()
        made, expected = ([y := g(x, *given), *torch.autograd.grad(y.sum(), x)] for g in (compiled, f))
        for got, want in zip(made, expected, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [31, 33, 256, 257])
def test_places_in_a_sorted_row(size: int) -> None:
    """Counted in short rows, found by halves in others: at, between and beyond the elements, some of them equal."""
    row = (torch.randn(size) * 9).round().sort()[0]
    x = torch.cat((row, row + 0.5, torch.tensor([float("nan"), float("inf"), -float("inf")])))

    def places(x: Any, row: Any) -> Any:
        return torch.bucketize(x, row), torch.searchsorted(row, x, side="right", out_int32=True), \
            torch.bucketize(x[:-3].long(), row.long())

    for got, want in zip(xcc.torch.compile(places, strict=True)(x, row), places(x, row), strict=True):
        assert torch.equal(got, want)


def test_places_in_a_sorted_row_of_a_free_size() -> None:
    """Found by halves: a comparison with each element would take as long as both sizes multiplied."""
    compiled = xcc.torch.compile(lambda row, x: torch.searchsorted(row, x), strict=True, versions=0)
    for size in (3, 1, 1000):
        row = (torch.randn(size) * 9).round().sort()[0]
        x = torch.cat((row, row + 0.5, torch.tensor([float("nan"), -float("inf")])))
        assert torch.equal(compiled(row, x), torch.searchsorted(row, x))
