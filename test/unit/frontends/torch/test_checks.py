"""Checks of values, which a program may make: nothing is computed for them."""

from __future__ import annotations

from typing import Any

import torch
from torch_programs import check


class Checked(torch.nn.Module):
    """One check by an op without converter, one whose value is a result, too."""

    def forward(self, x: Any) -> Any:
        torch._check_tensor_all(torch.special.airy_ai(x) < 2)     # type: ignore[attr-defined]
        known = torch.ops.aten._is_all_true(x > -100)
        torch._check(known.item())
        return x * 2, known, torch.ops.aten._is_any_true(x > 100)


def test_what_checks_alone_read_is_not_imported() -> None:
    program = check(Checked(), (torch.ones(3, 4),), (torch.full((3, 4), 200.0),))
    assert [n.op.split(".")[1] for n in program.graph.nodes] == ["gt", "_is_all_true", "mul", "gt", "_is_any_true"]
