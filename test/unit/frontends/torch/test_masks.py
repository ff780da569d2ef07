"""Masks whose last dim is stretched are laid out for torch's fused attention."""

from __future__ import annotations

import pytest
import torch

from xcc.frontends.torch.masks import lay_out_masks


@pytest.mark.parametrize(("stretched", "by_name"), [(True, True), (True, False), (False, True)])
def test_stretched_masks(stretched: bool, by_name: bool) -> None:
    found = []

    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        lay_out_masks(module)
        found.extend(n for n in module.graph.nodes if n.op == "call_method" and n.target == "contiguous")
        return module.forward

    def attention(q: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        rows = seen[:, None, :, None] if stretched else seen[:, None, None, :]
        mask = rows.expand(2, 1, 5, 5)
        given = {"attn_mask": mask} if by_name else {}
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, *([] if by_name else [mask]), **given)

    q, seen = torch.randn(2, 3, 5, 8), torch.ones(2, 5, dtype=torch.bool)
    seen[1, 3:] = stretched         # where rows are stretched, one that sees nothing would be NaN in eager
    torch._dynamo.reset()
    got = torch.compile(attention, backend=backend)(q, seen)
    assert torch.equal(got, attention(q, seen))
    assert [n.meta["example_value"].stride(-1) for n in found] == ([1] if stretched else [])
