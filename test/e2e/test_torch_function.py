"""Compiled models as functions of torch tensors: ``xcc.torch.function``."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import xcc.torch
from xcc.diagnostics import UserError


class Both(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.softmax(-1), n + 1


class Rows(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x[:, 0] > 0]


def compiled(model: torch.nn.Module, *args: Any, **options: Any) -> Any:
    return xcc.torch.function(xcc.compile(torch.export.export(model, args, **options)))


@pytest.fixture(scope="module")
def both() -> Any:
    rows = torch.export.Dim("rows")
    return compiled(Both(), torch.randn(4, 8), torch.arange(4), dynamic_shapes={"x": {0: rows}, "n": None})


@pytest.mark.parametrize("rows", [4, 0, 1, 7])
def test_tensors_in_and_out(both: Any, rows: int) -> None:
    x, n = torch.randn(rows, 8), torch.arange(4)
    for got in (both(x, n), both(x, n=n), both(x.t().contiguous().t(), n.tolist()),
                both(torch.nn.Parameter(x), n)):
        torch.testing.assert_close(got[0], x.softmax(-1))
        assert torch.equal(got[1], n + 1)


def test_results_are_the_callers_own(both: Any) -> None:
    x, n = torch.randn(3, 8), torch.arange(4)
    first = both(x, n)[0]
    both(torch.randn(3, 8), n)
    torch.testing.assert_close(first, x.softmax(-1))


@pytest.mark.parametrize(("args", "message"), [
    ((torch.randn(3, 8),), "missing input 'n'"), ((torch.randn(3, 8).double(), [0] * 4), "'x': element type is f64"),
    ((torch.randn(3, 7), [0] * 4), "dim 1 is 7, the model takes 8"), ((torch.randn(3), [0] * 4), "shape is"),
    ((torch.randn(3, 8), [0] * 4, 1), "takes 2 inputs, got 3"), ((torch.randn(3, 8), "four"), "'n': no tensor of i64")])
def test_what_does_not_fit_is_named(both: Any, args: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        both(*args)


class Counted(torch.nn.Module):
    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        count.add_(1)
        return x * count


class Cleared(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> None:
        x.zero_()


def test_what_is_written_in_place_is_no_result() -> None:
    x, count = torch.randn(3), torch.zeros(1)
    f = compiled(Counted(), x, count)
    for n in (1, 2):
        torch.testing.assert_close(f(x, count), x * n)
        assert count.item() == n
    with pytest.raises(UserError, match="'count' is updated in place"):
        compiled(Counted(), x, torch.zeros(3))(x, torch.zeros(6)[::2])
    assert compiled(Cleared(), x)(x) is None and not x.any()


def test_sizes_that_only_a_run_tells() -> None:
    f = compiled(Rows(), torch.randn(6, 2))
    for _ in range(3):
        x = torch.randn(6, 2)
        assert torch.equal(f(x), x[x[:, 0] > 0])


class Convolution(torch.nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv2d(x, w, **self.options)


@pytest.mark.parametrize(("image", "filter_", "options"), [
    ((1, 40, 9, 7), (64, 40, 3, 3), {"padding": 1}), ((2, 64, 8, 8), (96, 64, 1, 1), {"stride": 2}),
    ((1, 16, 9, 7), (128, 8, 3, 2), {"groups": 2}), ((2, 8, 9, 7), (65, 8, 2, 2), {"dilation": 2})])
def test_filters_that_come_with_the_call(image: Any, filter_: Any, options: Any) -> None:
    x, w = torch.randn(image), torch.randn(filter_)
    model = Convolution(**options)
    torch.testing.assert_close(compiled(model, x, w)(x, w), model(x, w), rtol=1e-4, atol=1e-4)
