"""Random FX graphs, with writes in place and views, against eager. `XCC_EXAMPLES=100 pytest FILE` draws more."""

from __future__ import annotations

import pytest
from compiled import EXAMPLES
from torch_graphs import check


@pytest.mark.parametrize("seed", range(max(1, int(12 * EXAMPLES))))
def test_equals_eager(seed: int) -> None:
    if not check(seed):
        pytest.skip("torch.compile without xcc does not give what eager gives")
