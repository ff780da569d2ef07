"""Ops on lists of tensors, as optimizers use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_programs import check_traced

from xcc.frontends.torch.foreach import foreach_decompositions

CASES: dict[str, Callable[[list[Any], list[Any]], Any]] = {
    "scalars": lambda a, b: (torch._foreach_add(a, 2), torch._foreach_mul(a, 0.5), torch._foreach_div(b, 3.0),
                             torch._foreach_sub(a, [1.0, 2.0]), torch._foreach_pow(b, 2)),
    "lists": lambda a, b: (torch._foreach_add(a, b, alpha=0.1), torch._foreach_mul(a, b), torch._foreach_div(a, b),
                           torch._foreach_sub(a, b, alpha=2), torch._foreach_lerp(a, b, 0.3)),
    "products": lambda a, b: (torch._foreach_addcmul(a, b, b, 0.4), torch._foreach_addcdiv(a, a, b, value=2.0),
                              torch._foreach_addcmul(a, b, b, [0.4, 0.5])),
    "limits": lambda a, b: (torch._foreach_maximum(a, b), torch._foreach_maximum(a, 0.1), torch._foreach_minimum(a, b),
                            torch._foreach_clamp_max(a, 0.2), torch._foreach_clamp_min(a, [0.1, 0.2])),
    "unary": lambda a, b: (torch._foreach_neg(a), torch._foreach_sqrt(b), torch._foreach_reciprocal(b),
                           torch._foreach_abs(a), torch._foreach_sign(a), torch._foreach_norm(a), torch._foreach_max(a),
                           torch._foreach_norm(a, 1)),
    "a tensor": lambda a, b: (torch._foreach_mul(a, b[0].sum()), torch._foreach_div(a, b[0].sum()),
                              torch._foreach_pow(0.9, b)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_tensor(name: str) -> None:
    def f(*tensors: Any) -> Any:
        return CASES[name](list(tensors[:2]), list(tensors[2:]))

    check_traced(f, torch.randn(3, 4), torch.randn(5), torch.rand(3, 4) + 0.5, torch.rand(5) + 0.5)


def test_all_that_give_tensors_have_a_rule() -> None:
    names = {str(op).split("_foreach_")[1] for op in foreach_decompositions()}
    assert {"add.List", "lerp.ScalarList", "addcdiv.Scalar", "sqrt.default", "pow.ScalarAndTensor"} <= names
    assert not any(n.split(".")[0].endswith("_") or n.endswith("out") for n in names)
