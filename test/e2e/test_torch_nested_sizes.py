"""``xcc.torch.compile`` of models whose sizes nest so deep that torch reasons about them for minutes."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch._dynamo.utils import counters
from torch._subclasses import FakeTensorMode

import xcc.torch
from xcc.frontends.torch import nested_sizes

pytestmark = pytest.mark.usefixtures("fresh_torch")
F = torch.nn.functional


def windows(x: torch.Tensor) -> torch.Tensor:
    """[n, w] -> [windows, 3]: padded to a multiple of 4, halved, padded to one of 3."""
    x = F.pad(x, (0, -x.shape[1] % 4)).unflatten(1, (-1, 2)).sum(2)
    return F.pad(x, (0, -x.shape[1] % 3)).reshape(-1, 3) * 2


def graphs(*calls: torch.Tensor) -> tuple[list[int], list[int]]:
    """How many there were after each call, each of which equals eager, and the dims that warnings name."""
    compiled, made = xcc.torch.compile(windows, strict=True, versions=0), []
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        for x in calls:
            torch.testing.assert_close(compiled(x), windows(x))
            made.append(counters["stats"]["unique_graphs"])
    said = " ".join(str(w.message) for w in caught if "mark_dynamic" in str(w.message))
    return made, [dim for dim in range(2) if f"size()[{dim}]" in said]


def test_all_sizes_are_free_while_that_is_quick() -> None:
    FakeTensorMode.cache_clear()
    assert graphs(torch.randn(2, 9), torch.randn(1, 17), torch.randn(3, 4)) == ([1, 1, 1], [])
    assert FakeTensorMode.cache_info().bypasses["sizes of parts of sizes"]


def test_nested_sizes_are_numbers_when_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that nest, and no others; other values of them are another graph, which is settled at once. What is marked
    stays free."""
    monkeypatch.setattr(nested_sizes, "_PATIENCE", 50)
    given = [torch.randn(shape) for shape in ((2, 9), (3, 9), (1, 9), (3, 17), (2, 17))]
    assert graphs(*given) == ([1, 1, 1, 2, 2], [1])
    torch._dynamo.reset()
    for x in given:
        torch._dynamo.mark_dynamic(x, (0, 1))
    assert graphs(*given[:2], given[4]) == ([3, 3, 3], [])
