"""A parameter repeated for each element of a batch: its gradient sums the batch; one of 1 has nothing to sum."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import xcc.torch  # noqa: E402


class Queries(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.Parameter(torch.randn(4, 8))
        self.project = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(self.rows.unsqueeze(0).repeat(x.shape[0], 1, 1)) @ x.mT


def test_gradients_of_rows_repeated_by_a_free_batch() -> None:
    torch.manual_seed(0)
    model = Queries()
    compiled = xcc.torch.compile(model, strict=True)
    for batch in (1, 3):
        x = torch.randn(batch, 5, 8)
        expected = torch.autograd.grad(model(x).pow(2).sum(), list(model.parameters()))
        found = torch.autograd.grad(compiled(x).pow(2).sum(), list(model.parameters()))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
