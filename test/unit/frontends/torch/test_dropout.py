"""Dropout inside of attention and between recurrent layers, and gradients that leave out what the forward left out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from test_gradients import cudnn, efficient, flash
from torch_programs import evaluated, exported, traced

P = 0.25


class Attention(torch.nn.Module):
    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=P)


def operands() -> tuple[Any, ...]:
    """Query and key; a value that makes the output the weights."""
    torch.manual_seed(0)
    return torch.randn(2, 3, 32, 32), torch.randn(2, 3, 32, 32), torch.eye(32).expand(2, 3, 32, 32).contiguous()


def weights(q: Any, k: Any, scale: float, causal: bool = False) -> Any:
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    return torch.softmax(scores, -1)


def test_weights_are_left_out() -> None:
    q, k, v = operands()
    program = exported(Attention(), (q, k, v))
    same, again, other = (evaluated(program, (q, k, v), seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(same, again)
    left = same != 0
    assert (left != (other != 0)).any() and abs(left.mean() - (1 - P)) < 0.02
    np.testing.assert_allclose(same[left], (weights(q, k, 32**-0.5) / (1 - P)).numpy()[left], rtol=1e-5)


@pytest.mark.parametrize("kernel", [flash, efficient, cudnn])
def test_gradients_leave_out_the_same(kernel: Any) -> None:
    q, k, v = operands()
    grad = torch.randn(2, 3, 32, 32)
    given = (grad, q, k, v)
    out, *got = evaluated(traced(partial(kernel, p=P), given, "fake"), given)
    leaves = [t.requires_grad_() for t in (q, k, v)]
    full = weights(q, k, 0.3, causal=True)
    left = torch.tensor(out != 0)
    assert abs(left.sum() / (full != 0).sum() - (1 - P)) < 0.03
    want = (full * left / (1 - P)) @ v
    np.testing.assert_allclose(out, want.detach().numpy(), atol=1e-5)
    for g, w in zip(got, torch.autograd.grad(want, leaves, grad), strict=True):
        np.testing.assert_allclose(g, w.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_between_layers(kind: Any) -> None:
    x = torch.randn(5, 3, 4)
    model = kind(4, 6, 2, dropout=1.0)
    got, *_ = evaluated(exported(model, (x,)), (x,))
    np.testing.assert_allclose(got, model(x)[0].detach().numpy(), rtol=1e-5, atol=1e-5)     # all of it is left out
    model.dropout = 0.5
    program = exported(model, (x,))
    same, again, other = (evaluated(program, (x,), seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(same, again)
    assert (same != other).any()
