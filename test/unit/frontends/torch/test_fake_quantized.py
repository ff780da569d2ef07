"""Fake quantization, forward and backward: by a scale for all and one for each channel, given and learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_programs import check_traced, gradients

from xcc.frontends.torch.fake_ops import declare_fake_ops

ZEROS = torch.tensor([3, 0, 15, 7], dtype=torch.int32)
GIVEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "numbers": lambda x, scale, zero: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15),
    "tensors": lambda x, scale, zero: torch.fake_quantize_per_tensor_affine(x, scale[:1].detach(), ZEROS[:1], -8, 7),
    "channels": lambda x, scale, zero: torch.fake_quantize_per_channel_affine(x, scale.detach(), ZEROS, 1, 0, 15),
    "half": lambda x, scale, zero: torch.fake_quantize_per_channel_affine(
        x.half(), scale.detach(), ZEROS, 1, 0, 15).float(),
    "learned": lambda x, scale, zero: torch._fake_quantize_learnable_per_tensor_affine(
        x, scale[:1], zero[:1], 0, 15, 0.5),
    "learned by channel": lambda x, scale, zero: torch._fake_quantize_learnable_per_channel_affine(
        x, scale, zero, 1, 0, 15, 0.5)}


@pytest.mark.parametrize("case", GIVEN)
def test_rounded_values_and_gradients(case: str) -> None:
    """Some are clamped, one lies half way between two numbers (0.25 by 0.1); at other sizes, too."""
    declare_fake_ops()
    torch.manual_seed(0)
    f, scale, zero = GIVEN[case], torch.rand(4) * 0.2 + 0.05, torch.tensor([3.4, -1.0, 20.0, 7.5])
    x, others = torch.cat((torch.randn(5, 4), torch.full((1, 4), 0.25))), ((torch.randn(3, 4), scale, zero),)
    check_traced(f, x, scale, zero, others=others)
    check_traced(gradients(lambda *given: (f(*given), sum(t.sum() for t in given))), x, scale, zero, others=others)
