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


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("by_channel", [False, True])
def test_an_observer_moves_its_state_and_rounds_by_it(by_channel: bool, symmetric: bool) -> None:
    """To the bit, in the order that the op returns them: also where it saw nothing yet, or nothing but zeros, and with
    either half turned off."""
    declare_fake_ops()
    torch.manual_seed(0)

    def f(x: Any, on: Any, rounds: Any, least: Any, most: Any) -> Any:
        state = [least.clone(), most.clone(), torch.full_like(least, 0.5), torch.full_like(least, 3, dtype=torch.int32)]
        out = torch.fused_moving_avg_obs_fake_quant(x, on, rounds, *state, 0.25, -8, 7, 0, by_channel, symmetric)
        return out, *state

    places, inf = 4 if by_channel else 1, float("inf")
    unseen, seen = (torch.full((places,), inf), torch.full((places,), -inf)), (-torch.rand(places), torch.rand(places))
    on, off = torch.tensor([1]), torch.tensor([0])
    x = torch.cat((torch.randn(1, 6) * 2, torch.rand(1, 6) + 1, torch.zeros(1, 6), torch.randn(1, 6) * 1e-6))
    check_traced(f, x, on, on.clone(), *unseen, tolerance=0, others=(
        (x[:, :5], on, on, *seen), (x, off, on, *seen), (x, on, off, *seen), (x * 0, on, on, *unseen)))
    check_traced(gradients(lambda x: f(x, torch.ones(1), torch.ones(1), -torch.ones(places), torch.ones(places))[0]), x,
                 others=((x[:, :3],),))


def test_an_observer_of_channels_gets_its_size_in_torch() -> None:
    """Its state is empty until it saw something: that call breaks the graph, later ones do not."""
    declare_fake_ops()

    def f(x: Any, on: Any, *state: Any) -> Any:
        return torch.fused_moving_avg_obs_fake_quant(x, on, on, *state, 0.25, -8, 7, 0, True)

    def empty() -> list[Any]:
        return [torch.empty(0), torch.empty(0), torch.empty(0), torch.empty(0, dtype=torch.int32)]

    on, x, ours, theirs = torch.tensor([1]), torch.randn(4, 6), empty(), empty()
    compiled = torch.compile(f, backend="aot_eager")
    for times in (1, 2):
        torch.testing.assert_close(compiled(x * times, on, *ours), f(x * times, on, *theirs))
        torch.testing.assert_close(ours, theirs)
    assert torch._dynamo.explain(f)(x, on, *ours).graph_break_count == 0
