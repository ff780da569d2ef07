"""Numbers at equal distances, and places that are counted."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_programs import check_traced


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float64])
def test_linspace(dtype: torch.dtype) -> None:
    """Whole numbers lie between ends that are cut to whole numbers first; torch's own decomposition cuts the sums."""
    ends = [(4.3, 50.0), (-3, 9), (7, 7), (50, -50)]
    check_traced(lambda x: [torch.linspace(*pair, steps, dtype=dtype) + x for pair in ends
                            for steps in (0, 1, 2, 5, 50)], torch.zeros((), dtype=dtype))


def test_linspace_between_tensors() -> None:
    check_traced(lambda a, b: (torch.linspace(a, b, 7), torch.linspace(a, 3, 7), torch.linspace(1, b, 7)),
                 torch.tensor(0.5), torch.tensor(9.25))


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_places_in_a_number(value: float) -> None:
    """A tensor without dims has one place, without coordinates."""
    check_traced(torch.argwhere, torch.tensor(value))


@pytest.mark.parametrize("size", [(3, 3), (12, 7), (20, 9)])
def test_antialiasing_between_corners(size: tuple[int, int]) -> None:
    def resized(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, size, mode="bilinear", align_corners=True, antialias=True)

    check_traced(resized, torch.randn(1, 2, 10, 20), sizes="fake")
