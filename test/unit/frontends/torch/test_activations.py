"""Activations and losses of PyTorch programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_programs import check_traced

SLOPES = torch.tensor([-1.0, 0.5, 0.0, 0.3, -0.2, 1.0])
ACTIVATIONS: dict[str, Any] = {
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7), "relu6": F.relu6, "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "prelu": lambda x: F.prelu(x, SLOPES), "elu": lambda x: F.elu(x, 0.7), "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.3), "softplus": lambda x: F.softplus(x, 2.0, 3.0), "mish": F.mish,
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "glu": lambda x: F.glu(x, 1), "gelu": F.gelu,
    "threshold": lambda x: F.threshold(x, 0.2, -3.0), "hardshrink": F.hardshrink, "softshrink": F.softshrink,
    "logsigmoid": F.logsigmoid, "tanhshrink": F.tanhshrink, "softsign": F.softsign, "silu": F.silu,
    "einsum": lambda x: torch.einsum("bcd, Bcd -> bBc", x, x)}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    x = torch.randn(3, 6, 5) * 3
    x[0, 0] = torch.tensor([0.0, 0.2, 30.0, -100.0, 0.5])
    check_traced(ACTIVATIONS[name], x, sizes="fake", others=(() if name == "einsum" else ((torch.randn(3, 6, 5),),)))


GRADIENTS: dict[str, Any] = {
    "silu": torch.ops.aten.silu_backward, "mish": torch.ops.aten.mish_backward,
    "rrelu": lambda g, x: torch.ops.aten.rrelu_with_noise_backward(g, x, x.abs(), 0.1, 0.3, True, False)}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_in_programs(name: str) -> None:
    """Ops that torch.export does not take apart."""
    x = torch.randn(3, 6, 5) * 3
    x[0, 0] = torch.tensor([0.0, 0.2, 30.0, -100.0, 0.5])
    check_traced(GRADIENTS[name], torch.randn(3, 6, 5), x)


LOSSES: dict[str, Any] = {
    "mse": F.mse_loss, "smooth_l1": lambda x, t, **k: F.smooth_l1_loss(x, t, beta=0.4, **k),
    "huber": lambda x, t, **k: F.huber_loss(x, t, delta=0.4, **k),
    "bce": lambda x, t, **k: F.binary_cross_entropy(x.sigmoid(), t, **k),
    "logits": lambda x, t, **k: F.binary_cross_entropy_with_logits(x, t, pos_weight=1 - SLOPES[:5], **k)}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(name: str, reduction: str) -> None:
    check_traced(lambda x, t: LOSSES[name](x, t, reduction=reduction), torch.randn(4, 5), torch.rand(4, 5))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(6, 5), (5,), (2, 5, 3)])
def test_cross_entropy(shape: tuple[int, ...], reduction: str) -> None:
    x, weight = torch.randn(shape), torch.rand(5)
    target = torch.randint(0, 5, (*shape[:-2], shape[0]) if len(shape) == 2 else shape[:0] if len(shape) == 1
                           else (2, 3))
    for w, ignore in ((None, -100), (weight, 1)):
        check_traced(lambda x, t, w=w, i=ignore: F.cross_entropy(x, t, w, ignore_index=i, reduction=reduction),
                     x, target, sizes="fake")
