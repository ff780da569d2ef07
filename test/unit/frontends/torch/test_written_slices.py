"""Writes to slices: parts side by side, whatever sizes they have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_programs import check_traced, imported


def halves(x: Any) -> Any:
    y = torch.empty_like(x)
    half = x.shape[-1] // 2
    y[..., :half], y[..., half:] = -x[..., half:2 * half], x[..., :x.shape[-1] - half]
    return y


def inner(x: Any) -> Any:
    y = x.clone()
    y[1:-1, 2:] = x[:-2, :-2] + 1
    y[-1:] = 0
    return y


def flags(x: Any) -> Any:
    y = x > 0
    y[:, 1:3] = False
    return y


def turns(x: Any) -> Any:
    y = torch.empty(x.shape[0], 2 * x.shape[1])
    y[:, ::2], y[:, 1::2] = x, -x
    return y


def thirds(x: Any) -> Any:
    y = torch.zeros(x.shape[0], 3 * x.shape[1], dtype=torch.bool)
    y[:, 2::3], y[:, ::3] = x > 0, True
    return y


@pytest.mark.parametrize("sizes", ["symbolic", "fake"])
@pytest.mark.parametrize("f", [halves, inner, flags, turns, thirds,
                               lambda x: F.pad(x[None, None], (2, 1, 1, 2), mode="circular")])
def test_parts(f: Any, sizes: str) -> None:
    others = ((torch.randn(7, 12),), (torch.randn(3, 8),)) if sizes == "symbolic" else ()
    program = check_traced(f, torch.randn(5, 6), sizes=sizes, others=others)
    assert "xt.iota" not in imported(program)


def test_steps_are_chosen() -> None:
    def every_other(x: Any) -> Any:
        y = x.clone()
        y[:, 1::2] = x[:, :x.shape[1] // 2]
        return y

    program = check_traced(every_other, torch.randn(5, 6), others=((torch.randn(3, 9),),))
    assert "xt.select" in imported(program)
