"""Products of no rows, no columns, no terms: zeros, of any size, on each kind of chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import check, on_chip

from xcc.dialects import xt


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
@pytest.mark.parametrize("sizes", [(3, 4, 0), (0, 4, 5), (3, 0, 5), (0, 0, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_empty_products(sizes: tuple[int, int, int], dtype: Any, chip: str) -> None:
    m, n, k = sizes
    a, b, c = (np.ones(s, dtype) for s in ((2, m, k), (2, k, n), (n,)))

    def body(a: Any, b: Any, c: Any) -> Any:
        product = xt.dot_general(a, b, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,))
        return xt.add(product, xt.broadcast(c, (2, m, n), (2,)))

    if not chip:
        check(body, a, b, c)
        return
    with on_chip(chip):
        check(body, a, b, c)
