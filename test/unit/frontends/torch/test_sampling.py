"""Embeddings, resizing, grids and images as columns of PyTorch programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_programs import check, check_traced, imported


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"])
@pytest.mark.parametrize("factor", [2.0, 0.6, 1.7])
def test_interpolate(mode: str, factor: float) -> None:
    n = {"linear": 1, "trilinear": 3}.get(mode, 2)
    x = torch.randn(2, 3, *(5, 6, 7)[:n])
    check_traced(lambda x: F.interpolate(x, scale_factor=factor, mode=mode), x, sizes="fake")
    sizes = (8, 3, 7)[:n]
    check_traced(lambda x: F.interpolate(x, size=sizes, mode=mode), x, sizes="fake")
    if mode in ("linear", "bilinear", "trilinear", "bicubic"):
        check_traced(lambda x: F.interpolate(x, size=sizes, mode=mode, align_corners=True), x, sizes="fake")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing(mode: str) -> None:
    x = torch.rand(1, 2, 9, 11)
    check_traced(lambda x: F.interpolate(x, size=(4, 5), mode=mode, antialias=True), x, sizes="fake")


class Grow(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        double = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return double, F.interpolate(double, size=x.shape[2:], mode="bilinear")


def test_symbolic_sizes_stay_whole() -> None:
    height, width = torch.export.Dim("height"), torch.export.Dim("width")
    args, options = (torch.randn(1, 2, 4, 6),), {"dynamic_shapes": ({2: height, 3: width},)}
    program = check(Grow(), args, (torch.randn(1, 2, 3, 1),), **options)
    assert "aten.upsample_nearest2d.vec" in {n.op for n in program.graph.nodes}


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grids(mode: str, padding: str) -> None:
    theta, x = torch.randn(2, 2, 3), torch.randn(2, 3, 5, 6)
    for corners in (False, True):
        check_traced(lambda t, x, c=corners: F.grid_sample(
            x, F.affine_grid(t, [2, 3, 4, 3], align_corners=c), mode=mode, padding_mode=padding, align_corners=c),
            theta, x, tolerance=1e-4, sizes="fake")


def test_columns_and_shuffles() -> None:
    x = torch.randn(2, 4, 6, 8)
    options = {"kernel_size": (2, 3), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
    check_traced(lambda x: F.unfold(x, **options), x)
    check_traced(lambda x: F.fold(F.unfold(x, **options), (6, 8), **options), x)
    check_traced(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), x)


@pytest.mark.parametrize("size, step", [(6, 2), (3, 1), (4, 4), (2, 3), (5, 2), (20, 1)])
def test_frames(size: int, step: int) -> None:
    """Windows of a few whole steps are blocks side by side, others are read element by element."""
    x = torch.randn(3, 23, 4)
    program = check_traced(lambda x: (x.unfold(1, size, step), x.transpose(1, 2).unfold(-1, size, step)), x,
                           others=((torch.randn(3, 31, 4),),))
    assert ("xt.gather" in imported(program)) == (size % step != 0 or size > 16)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bags(mode: str, padding: int | None) -> None:
    weight, indices = torch.randn(9, 4), torch.tensor([1, 2, 2, 7, 0, 3, 2])
    offsets = torch.tensor([0, 2, 2, 6])
    check_traced(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, padding_idx=padding),
                 weight, indices, offsets, others=((weight, indices[:0], offsets * 0),))
    bags = check_traced(lambda w, i: F.embedding_bag(i, w, mode=mode, padding_idx=padding), weight,
                        indices[:6].view(3, 2))
    if mode != "max":       # rows are read where they are, but where not all count
        assert ("xt.gather" in imported(bags)) == (padding is not None)
    check_traced(lambda w, i: F.embedding(i, w), weight, indices)
