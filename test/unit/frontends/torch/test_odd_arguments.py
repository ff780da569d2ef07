"""Arguments that models seldom give: what test/e2e/torch_calls.py has found."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_programs import check, check_traced, gradients

from xcc.diagnostics import UserError


@pytest.mark.parametrize("by", [float("inf"), -float("inf"), -2.5, 3.0])
def test_floored_quotients(by: float) -> None:
    check_traced(lambda x: x // by, torch.tensor([-5.0, 5.0, 0.0, 7.5, -7.5]))
    check_traced(lambda x: torch.div(x, by, rounding_mode="floor"), torch.arange(-3, 4))


def test_numbers_ahead_of_a_tensor() -> None:
    x, y = torch.tensor([1, 2, -3, 5]), torch.randn(4) + 2
    check_traced(lambda x: (7 % x, -7 % x, 5 & x, 6 | x, 3 ^ x), x)
    check_traced(lambda y: (5.5 % y, True & (y > 0)), y)


def test_results_without_elements() -> None:
    x = torch.randn(3, 4, 5, 4)
    check_traced(lambda x: F.adaptive_max_pool2d(x, (0, 3), return_indices=True), x, sizes="fake")
    check_traced(lambda x: F.adaptive_avg_pool3d(x, (2, 0, 1)), x, sizes="fake")


def test_padding_of_one_element_that_is_cut_off() -> None:
    kept = torch.ones(2, 2).tril(-1) > 0
    check_traced(lambda x: (torch.eye(2) - torch.where(kept, F.pad(x, (0, 1, 0, 1))[None], 0.0))[:, :1, :1],
                 torch.randn(1, 1))


@pytest.mark.parametrize("indices", [[1, 0, 3], [2, 9], [-2, 1], [-9, 4, 4], []])
def test_parts_between_indices_that_do_not_grow(indices: list[int]) -> None:
    check_traced(lambda x: torch.tensor_split(x, indices, -1), torch.randn(2, 5))


def test_what_lies_behind_the_last_offset_is_in_no_bag() -> None:
    def bags(weight: Any, indices: Any, offsets: Any) -> Any:
        return torch.embedding_bag(weight, indices, offsets, False, 0, False, None, True)[0]

    check_traced(bags, torch.randn(10, 3), torch.tensor([1, 5, 4, 5, 9]), torch.tensor([0, 0, 3]), sizes="fake")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_gradients_of_antialiasing_between_corners(mode: str) -> None:
    def resized(x: Any) -> Any:
        return F.interpolate(x, (3, 8), mode=mode, align_corners=True, antialias=True)

    check_traced(gradients(resized), torch.randn(1, 2, 10, 20), sizes="fake")


@pytest.mark.parametrize("factor", [1.2, 2.2])
@pytest.mark.parametrize("shape, mode, antialias", [
    ((1, 2, 4), "linear", False), ((1, 2, 4), "nearest", False), ((1, 2, 4, 4), "bilinear", False),
    ((1, 2, 4, 4), "nearest", False), ((1, 2, 4, 4), "bicubic", False), ((1, 2, 4, 4), "bicubic", True),
    ((1, 2, 4, 4, 4), "trilinear", False), ((1, 2, 4, 4, 4), "nearest", False), ((1, 2, 4, 4), "nearest-exact", False)])
def test_factors_that_leave_or_double_the_size(shape: tuple[int, ...], mode: str, antialias: bool, factor: float
                                               ) -> None:
    """Some of torch's kernels copy then, others do not: 4 elements become 4 and 8."""
    class Resized(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return F.interpolate(x, scale_factor=factor, mode=mode, antialias=antialias)

    x = torch.randn(*shape[:2], *(n + 3 for n in shape[2:]))
    spatial = {d: torch.export.Dim.AUTO for d in range(2, x.dim())}
    check(Resized(), (x,), (torch.randn(shape),), (torch.randn(*shape[:-1], 1),), dynamic_shapes=(spatial,))


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_rolls(size: int) -> None:
    check_traced(lambda x: (x.roll(3, 0), x.roll(-2)), torch.randn(6, 2), others=((torch.randn(size, 2),),))


def test_biases_of_narrow_floats_are_added_before_they_are_rounded() -> None:
    """1 + 2^-9 and -1 are 2^-9: as a sum of two bf16 they are 0."""
    x = torch.tensor([[1.0, 2.0**-9]], dtype=torch.bfloat16)
    w, b = torch.ones(1, 2, dtype=torch.bfloat16), torch.tensor([-1.0], dtype=torch.bfloat16)
    one = w[..., None, None]
    assert float(F.linear(x, w, b)) == 2.0**-9
    check_traced(lambda x, w, b, k: (F.linear(x, w, b), torch.addmm(b, x, w.T), F.conv2d(x[..., None, None], k, b)),
                 x, w, b, one)


@pytest.mark.parametrize("target", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("factor", [torch.tensor(2.0), torch.rand(5), torch.rand(5).bfloat16()])
def test_factors_of_a_loss_are_wider_than_it(factor: torch.Tensor, target: torch.dtype) -> None:
    x, t = torch.randn(3, 5).bfloat16(), torch.rand(3, 5).to(target)
    check_traced(lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=w), x, t, factor,
                 tolerance=2e-2)


def test_a_number_added_to_a_product_without_elements() -> None:
    """Of bools torch gives the number's shape to the result, of floats the product's."""
    with pytest.raises(UserError, match="addmv.*expand it"):
        check_traced(torch.addmv, torch.tensor(True), torch.ones(0, 3).bool(), torch.ones(3).bool())


@pytest.mark.parametrize("start", [None, 1.5])
@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
def test_segments(kind: str, start: float | None) -> None:
    """Of no, one and several elements, equal ones and zeros among them, in one dim and behind another one."""
    def rows(x: Any, lengths: Any) -> Any:
        return torch.segment_reduce(x, kind, lengths=lengths, initial=start).nan_to_num(0.0, 0.0, 0.0)

    def columns(x: Any, ends: Any) -> Any:
        return torch.segment_reduce(x, kind, offsets=ends, axis=1, initial=start).nan_to_num(0.0, 0.0, 0.0)

    x = torch.tensor([[1.0, -2], [0, 3], [5, 4], [0, 0], [4, 0], [-1, 4], [2, -3], [-1, 4]])
    check_traced(gradients(rows), x, torch.tensor([2, 0, 5, 1]), sizes="fake")
    check_traced(rows, x, torch.tensor([2, 0, 5, 1]), sizes="fake")
    check_traced(columns, x.reshape(2, 4, 2), torch.tensor([[0, 2, 2, 4], [0, 1, 4, 4]]), sizes="fake")


@pytest.mark.parametrize("x", [[[3, 1, 3, 1, 2], [0, 2, 2, 2, 5]], [[2.0], [2.0]], [[1.0, math.nan, math.nan]], 3])
def test_the_value_that_comes_most_often(x: Any) -> None:
    check_traced(lambda x: torch.mode(x, -1, keepdim=True), torch.tensor(x))


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_rows_are_scaled_to_a_norm(order: float) -> None:
    check_traced(lambda x, at: torch.ops.aten.embedding_renorm(x, at, 1.0, order), torch.randn(6, 3),
                 torch.tensor([[1, 4], [1, 0]]))


@pytest.mark.parametrize("rows", [0, 1, 3, 20, 37])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(rows: int, upper: bool, left: bool) -> None:
    """Of one block and several, the last one shorter; the triangle that is not read is NaN."""
    hidden = torch.ones(rows, rows).tril(-1) if upper else torch.ones(rows, rows).triu(1)
    a = torch.where(hidden > 0, torch.nan, torch.randn(2, 1, rows, rows) * 0.3 + 2 * torch.eye(rows))
    b = torch.randn(3, *((rows, 4) if left else (4, rows)))
    for ones in (False, True):
        check_traced(lambda a, b, ones=ones: torch.linalg.solve_triangular(
            a, b, upper=upper, left=left, unitriangular=ones), a, b, sizes="fake", tolerance=1e-5)
