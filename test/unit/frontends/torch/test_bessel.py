"""Bessel functions against mpmath's: torch's own are off by 5e-7 in f64, near 5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from torch_programs import evaluated, traced

EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "bessel_j": mpmath.besselj, "bessel_y": mpmath.bessely, "modified_bessel_i": mpmath.besseli,
    "modified_bessel_k": mpmath.besselk, "scaled_modified_bessel_k": lambda n, x: mpmath.besselk(n, x) * mpmath.exp(x),
    "spherical_bessel_j": lambda n, x: mpmath.sin(x) / x}
EDGES = torch.tensor([0.0, -2.5, float("inf"), float("nan")], dtype=torch.float64)
NAMES = [f"{name}{order}" for name in EXACT for order in (0, 1) if name != "spherical_bessel_j" or not order]


@pytest.mark.parametrize("name", NAMES)
def test_values(name: str) -> None:
    """On both sides of where a function is computed another way; oscillating ones to a part of their height."""
    f = getattr(torch.special, name)
    x = torch.cat((torch.linspace(0.05, 40, 50), torch.tensor([1e-8, 2.0, 2.01, 20.0, 20.1, 12345.0]))).double()
    x = x[:-1] if name.startswith("modified_bessel_i") else x
    program = traced(f, (x,))
    want = np.array([float(EXACT[name[:-1]](int(name[-1]), float(v))) for v in x])
    oscillates = name.startswith(("bessel", "spherical"))
    np.testing.assert_allclose(*evaluated(program, (x,)), want, rtol=1e-11, atol=3e-14 if oscillates else 0)
    np.testing.assert_allclose(*evaluated(program, (EDGES,)), f(EDGES).numpy(), rtol=1e-6)
