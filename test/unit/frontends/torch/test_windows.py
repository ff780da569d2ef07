"""Convolutions and pools of PyTorch programs, on drawn shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_programs import check, check_traced


def draw_convolution(rng: np.random.Generator, transposed: bool) -> tuple[Any, ...]:
    """x, weight, bias and options of a convolution that fits."""
    n = int(rng.integers(1, 4))
    groups = int(rng.choice([1, 1, 2, 3]))
    ins, outs = (groups * int(rng.integers(1, 4)) for _ in range(2))
    kernel = [int(k) for k in rng.integers(1, 4, n)]
    options: dict[str, Any] = {"groups": groups}
    for name, high in (("stride", 4), ("padding", 3), ("dilation", 3)):
        options[name] = [int(v) for v in rng.integers(0 if name == "padding" else 1, high, n)]
    spatial = [int(v) for v in rng.integers(7, 10, n)]
    if transposed:
        options["output_padding"] = [int(rng.integers(0, max(s, d))) for s, d in
                                     zip(options["stride"], options["dilation"], strict=True)]
        weight = (ins, outs // groups, *kernel)
    else:
        weight = (outs, ins // groups, *kernel)
    bias = torch.randn(outs) if rng.integers(2) else None
    return n, torch.randn(2, ins, *spatial), torch.randn(*weight), bias, options


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions(seed: int, transposed: bool) -> None:
    n, x, weight, bias, options = draw_convolution(np.random.default_rng(seed), transposed)
    f = getattr(F, f"conv_transpose{n}d" if transposed else f"conv{n}d")
    check_traced(lambda x, w: f(x, w, bias, **options), x, weight, tolerance=1e-4,
                 sizes="fake" if seed else "symbolic")


class Padded(torch.nn.Module):
    """Whole convolutions, as an export has them: padding as a word, and an input without batch."""

    def forward(self, x: Any, w: Any) -> Any:
        same = F.conv2d(x, w, padding="same", dilation=(1, 2))
        return same, F.conv2d(same[0], w, padding="valid"), F.conv_transpose2d(x[0], w, stride=2)


def test_whole_convolutions() -> None:
    batch = torch.export.Dim("batch")
    x, w = torch.randn(2, 3, 7, 8), torch.randn(3, 3, 2, 4)
    program = check(Padded(), (x, w), (x[:1], w), dynamic_shapes=({0: batch}, None), tolerance=1e-4)
    ops = [node.op for node in program.graph.nodes]
    assert ops.count("aten.conv2d.padding") == 2 and "aten.conv_transpose2d.input" in ops


def draw_pool(rng: np.random.Generator) -> tuple[int, Any, dict[str, Any]]:
    n = int(rng.integers(1, 4))
    kernel = [int(v) for v in rng.integers(1, 4, n)]
    options: dict[str, Any] = {"kernel_size": kernel, "ceil_mode": bool(rng.integers(2)),
                               "stride": [int(v) for v in rng.integers(1, 4, n)],
                               "padding": [int(rng.integers(0, k // 2 + 1)) for k in kernel]}
    batch = [2] if rng.integers(2) else []
    return n, torch.randn(*batch, 3, *(int(v) for v in rng.integers(5, 9, n))), options


@pytest.mark.parametrize("seed", range(8))
def test_max_pools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, x, options = draw_pool(rng)
    options["dilation"] = [int(v) for v in rng.integers(1, 3, n)]
    pool = getattr(F, f"max_pool{n}d")
    check_traced(lambda x: pool(x, **options), x, sizes="fake" if seed else "symbolic")
    check_traced(lambda x: pool(x, return_indices=True, **options), x, sizes="fake")


@pytest.mark.parametrize("seed", range(8))
def test_average_pools(seed: int) -> None:
    n, x, options = draw_pool(np.random.default_rng(seed))
    options["count_include_pad"] = seed % 2 == 0
    if n > 1 and seed % 3 == 0:
        options["divisor_override"] = 3
    check_traced(lambda x: getattr(F, f"avg_pool{n}d")(x, **options), x, sizes="fake" if seed else "symbolic")


@pytest.mark.parametrize("size, out", [((6, 9), (2, 3)), ((7, 5), (3, 4)), ((2, 4), (5, 1)), ((4, 5), (None, 6))])
def test_adaptive_pools(size: tuple[int, int], out: tuple[Any, Any]) -> None:
    x = torch.randn(8, 3, *size)
    check_traced(lambda x: F.adaptive_avg_pool2d(x, out), x, others=((torch.randn(7, 2, 8, 11),),))
    check_traced(lambda x: F.adaptive_max_pool2d(x, out, return_indices=True), x)
    if None not in out:
        check_traced(lambda x: F.adaptive_avg_pool3d(x, (2, *out)), x)
        check_traced(lambda x: F.adaptive_max_pool1d(x, out[1], return_indices=True), x[0])


def test_windows_that_end_do_not_see_what_follows() -> None:
    x = torch.arange(7.0).reshape(1, 1, 7).clone()
    x[0, 0, 4] = float("inf")
    check_traced(lambda x: F.adaptive_avg_pool1d(x, 3), x, sizes="fake")
