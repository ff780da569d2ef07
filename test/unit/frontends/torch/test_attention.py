"""Attention of PyTorch programs: the whole op, and what stands behind the dispatcher."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_programs import check, check_traced, evaluated, exported

aten: Any = torch.ops.aten


class Attention(torch.nn.Module):
    """One call of scaled_dot_product_attention."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return F.scaled_dot_product_attention(q, k, v, mask, **self.options)


def operands(*lead: int, rows: int = 5, columns: int = 7) -> tuple[Any, Any, Any]:
    return torch.randn(*lead, rows, 8), torch.randn(*lead, columns, 8), torch.randn(*lead, columns, 6)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}])
def test_ranks_and_options(lead: tuple[int, ...], options: dict[str, Any]) -> None:
    check(Attention(**options), operands(*lead))


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7), (2, 3, 5, 7), (1, 1, 1, 7)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks(shape: tuple[int, ...], kind: str) -> None:
    mask = torch.rand(shape) > 0.4 if kind == "bool" else torch.randn(shape)
    check(Attention(), (*operands(2, 3), mask))


def test_a_row_that_sees_nothing_is_zero() -> None:
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    check(Attention(), (*operands(2, 3), mask))


def test_heads_in_groups_and_a_batch_of_one() -> None:
    q, k, v = torch.randn(2, 6, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    check(Attention(enable_gqa=True), (q, k, v))
    check(Attention(), (q, torch.randn(1, 6, 7, 8), torch.randn(1, 6, 7, 8)))


def test_sizes_of_one_program() -> None:
    batch, rows = torch.export.Dim("batch"), torch.export.Dim("rows")
    shape = {0: batch, 2: rows}
    args = tuple(torch.randn(2, 3, 5, 8) for _ in range(3))
    program = exported(Attention(is_causal=True), args, dynamic_shapes=(shape,) * 3)
    assert [n.op for n in program.graph.nodes] == ["aten.scaled_dot_product_attention.default"]
    for size in ((1, 3, 1, 8), (3, 3, 9, 8)):
        args = tuple(torch.randn(size) for _ in range(3))
        expected = F.scaled_dot_product_attention(*args, is_causal=True).numpy()
        assert abs(evaluated(program, args)[0] - expected).max() < 1e-5


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_with_sums_for_backward(causal: bool, masked: bool) -> None:
    mask = torch.randn(5, 5) if masked else None
    args = tuple(torch.randn(2, 3, 5, 8) for _ in range(3))
    check_traced(lambda q, k, v: aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal and not masked, attn_mask=mask, scale=0.4), *args, sizes="fake")


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_that_torch_has_as_one_op(norm_first: bool) -> None:
    shapes = ((24, 8), (24,), (8, 8), (8,)), ((8,), (8,), (8,), (8,), (16, 8), (16,), (8, 16), (8,))
    attention, others = ([torch.randn(s) for s in some] for some in shapes)
    for mask, kind in masks():
        check_traced(lambda x, *t, mask=mask, kind=kind: aten._transformer_encoder_layer_fwd(
            x, 8, 2, *t[:4], norm_first, norm_first, 1e-3, *t[4:], mask, kind), torch.randn(2, 5, 8), *attention,
            *others, sizes="fake", tolerance=1e-4)


@pytest.mark.parametrize("average", [False, True])
def test_attention_that_torch_has_as_one_op(average: bool) -> None:
    weights = [torch.randn(s) for s in ((24, 8), (24,), (8, 8), (8,))]
    for mask, kind in masks():
        check_traced(lambda x, *t, mask=mask, kind=kind: aten._native_multi_head_attention(
            x, x, x, 8, 2, *t, mask, True, average, kind), torch.randn(2, 5, 8), *weights, sizes="fake", tolerance=1e-4)


def masks() -> list[tuple[Any, int | None]]:
    """None, of positions, of keys, of both; as torch numbers them."""
    ahead, hidden = torch.ones(5, 5).triu(1).bool(), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    both = ahead | hidden[:, None, None].expand(2, 2, 5, 5)
    return [(None, None), (ahead, 0), (hidden, 1), (both, 2)]
