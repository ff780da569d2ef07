"""Products of parts give what those of whole concatenations give, by the ops' numpy definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linalg_cases import build_kernel, evaluate

from xcc.dialects import xt
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.xt import split_concatenations

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("a, parts, axis, options", [
    ((2, 3, 4, 8), [(2, 3, 9, 8), (2, 3, 1, 8)], 2,
     {"lhs_batch": (0, 1), "rhs_batch": (0, 1), "lhs_contract": (3,), "rhs_contract": (3,)}),
    ((2, 3, 5, 10), [(2, 3, 6, 8), (2, 3, 3, 8), (2, 3, 1, 8)], 2,
     {"lhs_batch": (0, 1), "rhs_batch": (0, 1), "lhs_contract": (3,), "rhs_contract": (2,)}),
    ((8, 3), [(4, 8, 2), (4, 8, 5)], 2, {"lhs_contract": (0,), "rhs_contract": (1,)}),
    ((4, 7, 3), [(4, 5, 2), (4, 2, 2)], 1, {"lhs_contract": (0, 1), "rhs_contract": (0, 1)}),
])
@pytest.mark.parametrize("side", [0, 1])
def test_parts(a: Any, parts: Any, axis: int, options: dict[str, Any], side: int, dtype: Any,
               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_concatenations, "LESS", 0)

    def body(x: Any, *pieces: Any) -> Any:
        whole = xt.concatenate(*pieces, axis=axis)
        if side:
            return xt.dot_general(x, whole, **options)
        swapped = {f"{'rhs' if k[:3] == 'lhs' else 'lhs'}{k[3:]}": v for k, v in options.items()}
        return xt.dot_general(whole, x, **swapped)

    inputs = [(RNG.standard_normal(s) * 4).astype(dtype) for s in (a, *parts)]
    module, _ = build_kernel(body, inputs)
    before = evaluate(module, inputs)[0]
    with module.context:
        parse_pass("split-concatenations{bytes=1 rows=100}").run(module, PassContext())
        assert module.operation.verify()
    assert str(module).count('"xt.dot_general"') == len(parts)
    np.testing.assert_allclose(evaluate(module, inputs)[0], before, rtol=2e-3 if dtype == np.float16 else 1e-5,
                               atol=2e-2 if dtype == np.float16 else 1e-4)
