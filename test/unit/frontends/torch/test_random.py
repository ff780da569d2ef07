"""Random numbers of PyTorch programs: their distributions, and that they are the seed's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_programs import exported

from xcc.dialects.xt.interpret import interpret
from xcc.frontends.torch.importer import load

X = torch.linspace(0.1, 0.9, 4096)


def drawn(function: Callable[[Any], Any], seed: int = 7) -> np.ndarray[Any, Any]:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    module, weights = load(exported(Module(), (X,)))
    return interpret(module, {"x": X.numpy(), "seed": np.int64(seed)}, weights)[0]


DRAWS: dict[str, tuple[Callable[[Any], Any], float, float]] = {     # what is drawn, its mean and deviation
    "dropout": (lambda x: F.dropout(torch.ones_like(x), 0.25), 1.0, (1 / 3)**0.5),
    "rand": (lambda x: torch.rand_like(x), 0.5, 12**-0.5),
    "randn": (lambda x: torch.randn(4096), 0.0, 1.0),
    "normal": (lambda x: torch.normal(x, 0.5), 0.5, (0.25 + 0.64 / 12)**0.5),
    "uniform": (lambda x: torch.empty_like(x).uniform_(2, 4), 3.0, 3**-0.5),
    "exponential": (lambda x: torch.empty_like(x).exponential_(2.0), 0.5, 0.5),
    "log normal": (lambda x: torch.empty_like(x).log_normal_(0.5, 0.5).log(), 0.5, 0.5),
    "cauchy": (lambda x: (torch.empty_like(x).cauchy_(2.0, 3.0) > 2.0).float(), 0.5, 0.5),
    "geometric": (lambda x: torch.empty_like(x).geometric_(0.25), 4.0, 12**0.5),
    "randint": (lambda x: torch.randint(-2, 3, (4096,)), 0.0, 2**0.5),
    "bernoulli": (lambda x: torch.bernoulli(x), 0.5, 0.5),
    "permutation": (lambda x: torch.randperm(4096), 2047.5, 4096 * 12**-0.5),
    "multinomial": (lambda x: torch.multinomial(torch.tensor([0.2, 0.0, 0.8]), 4096, True), 1.6, 0.8),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name: str) -> None:
    function, mean, deviation = DRAWS[name]
    x = drawn(function).astype(np.float64)
    assert abs(x.mean() - mean) < 5 * deviation / len(x)**0.5
    assert abs(x.std() - deviation) < 0.1 * deviation


def test_numbers_are_the_seeds() -> None:
    same, again, other = (drawn(lambda x: F.dropout(x, 0.5), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(same, again)
    assert (same != other).any()


def test_each_node_draws_its_own() -> None:
    assert drawn(lambda x: torch.rand_like(x) - torch.rand_like(x)).any()


def test_what_is_drawn_without_replacement_differs() -> None:
    assert sorted(drawn(lambda x: torch.randperm(100))) == list(range(100))
    assert len(set(drawn(lambda x: torch.multinomial(x, 1000)).tolist())) == 1000


def test_dropout_without_training_is_the_identity() -> None:
    np.testing.assert_array_equal(drawn(lambda x: torch.native_dropout(x, 0.5, False)[0]), X.numpy())
